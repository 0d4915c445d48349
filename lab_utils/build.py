"""`python -m lab_utils.build`: makes the labs and solutions from their sources (teach/build.py)."""

from lab_utils.common import command


def main() -> int:
    """Runs the command line. The import is inside, so that `command` can tell that nbformat is missing."""
    from lab_utils.teach.build import main

    return main()


if __name__ == "__main__":
    command.run(main)
