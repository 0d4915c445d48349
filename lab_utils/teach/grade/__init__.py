"""Grades the notebooks of a class: `python -m lab_utils.grade FOLDER -o grades.csv`.

A notebook is run from its first cell to its last, as nbgrader runs it, in a kernel, a folder and a process
of its own (`worker`), under limits of time and memory (`runs`). Then each TODO is checked there by our
checks, which are imported again from our files. What is not the kernel's to say, such as points and remarks,
the grader's own process writes.

Nobody can win against code that runs in the same process as the checks, with the rights of the person who
grades: grading.md shows how to grade in a container, and `remarks` names what a person should look at.
"""
