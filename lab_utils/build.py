"""`python -m lab_utils.build`: makes the labs and solutions from their sources (author/build.py)."""

import sys

from lab_utils.author.build import main

if __name__ == "__main__":
    sys.exit(main())
