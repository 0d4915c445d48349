"""Grades the notebooks of a class: `python -m lab_utils.grade FOLDER -o grades.csv`.

A notebook is not run as it stands. The learner's cells are taken from it, with the given cells of our lab
before them (`cells`), and run in a process of their own (`worker`), under limits of time and memory (`runs`).
After them each TODO is checked by our checks, which are read from our files then. What is not a worker's to
say, such as points and remarks, the grader's own process writes.

Nobody can win against code that runs in the same process as the checks, with the rights of the person who
grades: grading.md shows how to grade in a container, and `remarks` names what a person should look at.
"""
