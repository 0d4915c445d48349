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
COMMANDS = {
    "flower_photos": "download 3,670 photographs (218 MiB; CC BY 2.0)",
    "folder": "use photographs of your own, in place; copies stay on one side of the split",
}


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("python -m lab_utils.datasets", description=DESCRIPTION)
    commands = parser.add_subparsers(dest="command", required=True)
    for name, text in COMMANDS.items():
        add = commands.add_parser(name, help=text, description=text).add_argument
        if name == "folder":
            text = "a folder with one sub-folder of photographs for each class"
            add("path", type=path_argument, help=text)
        text = "where the files go; made where it is missing"
        add("--output_dir", type=path_argument, required=True, help=text)
        text = "share of each class to evaluate with (%(default)s)"
        add("--eval_fraction", type=float, default=0.2, help=text)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Runs a command; returns the exit status."""
    args = _parser().parse_args(argv)
    try:
        if args.command == "flower_photos":
            photos = download_flower_photos(args.output_dir, eval_fraction=args.eval_fraction)
        else:
            photos = from_folder(args.path, args.output_dir, args.eval_fraction)
    except (DatasetError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    for file in (photos.train_csv, photos.eval_csv, photos.labels_file):
        print(file)
    return 0


if __name__ == "__main__":
    command.run(main)
