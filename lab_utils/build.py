"""`python -m lab_utils.build`: makes the labs from their solutions (author/build.py)."""

import sys

from lab_utils.author.build import main

if __name__ == "__main__":
    sys.exit(main())
