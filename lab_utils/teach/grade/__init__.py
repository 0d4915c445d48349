"""Grades the notebooks of a class: `python -m lab_utils.grade FOLDER -o grades.csv`.

A notebook is not run as it stands. The learner's cells are taken from it, with the given cells of our lab
before them and our checks after them (`cells`), and run in a process of their own (`worker`), under limits
of time and memory (`runs`). What is secured:

- a submission gains nothing by printing verdicts, by defining `check` or `working`, by replacing functions of
  the package, of Python or of TensorFlow, by importing our solutions, or by changing the check cells:
  before each check such functions are put back, and the checks are read from the package again;
- a cell that raises, loops, ends its process or takes too much memory costs its own TODOs at most: what it
  defines is run without the rest of it;
- modules, packages and magics that only the learner's place has stand in; pip and its like install nothing;
- files of the grader that it changes are noticed, and nothing is graded from there on;
- it runs in a folder of its own, with its own home and temporary folder, which are deleted.

What is not: the check calls the learner's function in the same process, so that code written against this
grader can reach it from there; and it runs with the rights of the person who grades. So grade as a user who
may change nothing but the results, or in a container. The solutions are public: that somebody copied one
cannot be seen. `remarks` names what a person should look at.
"""
