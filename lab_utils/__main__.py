"""`python -m lab_utils`: what there is to run, `doctor` and `progress`."""

import sys

from lab_utils.common import command

_HELP = """usage: python -m lab_utils COMMAND

  python -m lab_utils doctor             says what this machine lacks (--class N: for N learners at once)
  python -m lab_utils progress           says what is done in each lab, and how many minutes are left
  python -m lab_utils.grade --help       the notebooks of a class -> grades.csv and a page of the class
  python -m lab_utils.flowers            the whole flowers job, photographs to predictions
  python -m lab_utils.datasets --help    photographs: download, split, draw
  python -m lab_utils.convert --help     images and CSV files to TFRecords
  python -m lab_utils.flowers.task --help     train, evaluate, export
  python -m lab_utils.flowers.predict --help  predict from image files
  python -m lab_utils.dry_run --help     a port through the TPU compiler, without a TPU
  python -m lab_utils.port FILE.py       a program of your own as a port: a diff, and what is left
  python -m lab_utils.runtime --verify   on a chip: does it train, and how close to the bound?
"""


def main() -> int:
    """Runs the command line; returns its exit status."""
    arguments = sys.argv[1:]
    if arguments[:1] == ["doctor"]:
        from lab_utils.runtime import doctor

        return doctor.main(arguments[1:])
    if arguments[:1] == ["progress"]:
        from lab_utils.check import progress

        return progress.show(arguments[1:])
    is_help = not arguments or arguments[0] in ("-h", "--help", "help")
    if not is_help:
        print(f"python -m lab_utils: there is no command {arguments[0]!r}\n", file=sys.stderr)
    print(_HELP, end="", file=sys.stdout if is_help else sys.stderr)
    return 0 if is_help else 2


if __name__ == "__main__":
    command.run(main)
