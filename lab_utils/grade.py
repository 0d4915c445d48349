"""`python -m lab_utils.grade`: the notebooks of a class, graded (teach/grade)."""

from lab_utils.common import command
from lab_utils.teach.grade.__main__ import main

if __name__ == "__main__":
    command.run(main)
