"""`make instructor`: the guide, a page of it a lab, and the slides, into solutions/instructor/made."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from lab_utils.common import command, files

ROOT = Path(__file__).parents[2]
MADE = Path("solutions/instructor/made")


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line; returns 2 where something is missing."""
    parser = argparse.ArgumentParser(
        prog="python -m lab_utils.teach.instructor", description=__doc__
    )
    parser.add_argument(
        "--reveal", type=files.path_argument, help="reveal.js 5, as npm unpacks it: makes slides"
    )
    options = parser.parse_args(arguments)
    from lab_utils.teach import guide, slides  # here, so that `command` can tell what is missing

    try:
        made = guide.made(ROOT)
        if options.reveal:
            made |= {
                f"slides_{lab:02d}.html": slides.deck(ROOT, lab, options.reveal)
                for lab in slides.of_all(ROOT)
            }
    except (OSError, ValueError) as error:
        print(f"instructor: {error}", file=sys.stderr)
        return 2
    (ROOT / MADE).mkdir(parents=True, exist_ok=True)
    for name, content in made.items():
        files.write(ROOT / MADE / name, content)
        print(MADE / name)
    return 0


if __name__ == "__main__":
    command.run(main)
