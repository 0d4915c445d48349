"""`python -m lab_utils.author.site`; see the package's docstring."""

import sys

from lab_utils.author.site import main

if __name__ == "__main__":
    sys.exit(main())
