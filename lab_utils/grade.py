"""`python -m lab_utils.grade`: the notebooks of a class, graded (teach/grade)."""

from lab_utils.common import command


def main() -> int:
    """Runs the command line. The import is inside, so that `command` can tell that nbclient is missing."""
    from lab_utils.teach.grade.__main__ import main

    return main()


if __name__ == "__main__":
    command.run(main)
