"""Command line: `python -m lab_utils.datasets --help`."""

import argparse
import sys
from collections.abc import Sequence

from lab_utils.common import command
from lab_utils.common.files import path_argument
from lab_utils.datasets import DatasetError, download_flower_photos, from_folder

DESCRIPTION = """\
Finds photographs to train on, splits them into training and evaluation, and writes train.csv, eval.csv
(rows path,label) and labels.txt, as `python -m lab_utils.convert` takes them.
"""


def _fraction(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number such as 0.2") from None
    if not 0 < value < 1:
        raise argparse.ArgumentTypeError(f"{text} does not lie between 0 and 1")
    return value


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("python -m lab_utils.datasets", description=DESCRIPTION)
    commands = parser.add_subparsers(dest="command", required=True)

    def command(name: str, text: str) -> argparse.ArgumentParser:
        sub = commands.add_parser(name, help=text, description=text)
        sub.add_argument(
            "--output_dir",
            type=path_argument,
            required=True,
            help="where the files go; made where it is missing",
        )
        sub.add_argument(
            "--eval_fraction",
            type=_fraction,
            default=0.2,
            help="share of each class to evaluate with (%(default)s)",
        )
        return sub

    command(
        "flower_photos",
        "download the 3,670 photographs of flower_photos (218 MiB; CC BY 2.0); resumes where it stopped",
    )
    folder = command(
        "folder", "use photographs of your own, in place; copies stay on one side of the split"
    )
    folder.add_argument(
        "path",
        type=path_argument,
        help="a folder with one sub-folder of photographs for each class",
    )
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Runs a command; returns the exit status."""
    args = _parser().parse_args(argv)
    try:
        if args.command == "flower_photos":
            photos = download_flower_photos(args.output_dir, eval_fraction=args.eval_fraction)
        else:
            photos = from_folder(args.path, args.output_dir, args.eval_fraction)
    except DatasetError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except OSError as error:
        where = error.filename or args.output_dir
        print(f"error: {where}: {error.strerror or error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("stopped; nothing half-done was kept under a finished name", file=sys.stderr)
        return 130
    for file in (photos.train_csv, photos.eval_csv, photos.labels_file):
        print(file)
    return 0


if __name__ == "__main__":
    command.run(main)
