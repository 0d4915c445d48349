"""`python -m lab_utils.runtime`: what this machine is; with --verify, whether it trains."""

import argparse
import json

from lab_utils import runtime
from lab_utils.common import command, files


def main() -> int:
    """Runs the command line; returns its exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m lab_utils.runtime",
        description="Says where this runs and which accelerator is there.",
        epilog=(
            "Exit status of --verify: 0 if the step learns, 1 if it does not, 2 if it could not "
            "be run."
        ),
    )
    add = parser.add_argument
    add(
        "--verify",
        action="store_true",
        help="train for a moment, and compare the time of a step with its bound",
    )
    text = "with --verify: JSON file to write, for a bug report"
    add("--output", type=files.output(files.JSON), help=text)
    text = "with --verify: images per core (default: 128 on a TPU, else 16)"
    add("--batch", type=int, default=0, help=text)
    add(
        "--image_size",
        type=int,
        default=128,
        help="with --verify: size of the images in pixels (default: %(default)s)",
    )
    arguments = parser.parse_args()
    if not arguments.verify:
        print(f"{runtime.detect()}.")
        return 0
    from lab_utils.runtime import verify

    try:
        report = verify.verify(arguments.batch, arguments.image_size)
    except ImportError as error:
        parser.error(f"could not be run: {command.missing(error)}")
    except (RuntimeError, ValueError, MemoryError) as error:
        parser.error(f"could not be run: {error}")
    print(verify.render(report))
    if arguments.output:
        files.write(arguments.output, json.dumps(report, indent=1) + "\n")
        print(f"Written: {arguments.output}. The file contains no names and no paths.")
    return 2 if "error" in report else 0 if report["checks"]["the loss falls"] else 1


if __name__ == "__main__":
    command.run(main)
