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


def main(argv: Sequence[str] | None = None) -> int:
    """Runs a command; returns the exit status."""
    parser = argparse.ArgumentParser("python -m lab_utils.datasets", description=DESCRIPTION)
    commands = parser.add_subparsers(dest="command", required=True)
    text = "download 3,670 photographs (218 MiB; CC BY 2.0)"
    download = commands.add_parser("flower_photos", help=text, description=text)
    text = (
        "use photographs of your own where they are; copies of one photograph stay on one side of "
        "the split"
    )
    folder = commands.add_parser("folder", help=text, description=text)
    text = "a folder with one sub-folder of photographs for each class"
    folder.add_argument("path", type=path_argument, help=text)
    for subparser in (download, folder):
        text = "folder for the files, which is made if it is missing"
        subparser.add_argument("--output_dir", type=path_argument, required=True, help=text)
    args = parser.parse_args(argv)
    try:
        if args.command == "flower_photos":
            photos = download_flower_photos(args.output_dir)
        else:
            photos = from_folder(args.path, args.output_dir)
    except DatasetError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print(photos.train_csv, photos.eval_csv, photos.labels_file, sep="\n")
    return 0


if __name__ == "__main__":
    command.run(main)
