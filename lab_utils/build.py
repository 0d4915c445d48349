"""`python -m lab_utils.build`: makes the labs and solutions from their sources (author/build.py)."""

from lab_utils import command
from lab_utils.author.build import main

if __name__ == "__main__":
    command.run(main)
