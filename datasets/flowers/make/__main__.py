"""Draws the bundled flowers: `python datasets/flowers/make --output_dir F --seed 2026`."""

import argparse
from pathlib import Path

from draw import write

from lab_utils.datasets.photos import write_lists


def main() -> None:
    """Draws the pictures into a new or empty folder, and splits them."""
    parser = argparse.ArgumentParser(description="Draws flowers of five classes, and splits them.")
    parser.add_argument("--output_dir", type=Path, required=True, help="a new or empty folder")
    parser.add_argument("--per_class", type=int, default=60, help="pictures of a class (60)")
    parser.add_argument("--seed", type=int, default=0, help="another seed, other pictures (0)")
    parser.add_argument("--num_workers", type=int, default=0, help="processes; 0: one a core (0)")
    arguments = parser.parse_args()
    if arguments.output_dir.exists() and any(arguments.output_dir.iterdir()):
        parser.error(f"{arguments.output_dir} is not empty: name another folder")
    write(arguments.output_dir, arguments.per_class, arguments.seed, arguments.num_workers)
    folder = arguments.output_dir.resolve()
    write_lists(folder, folder)


if __name__ == "__main__":
    main()
