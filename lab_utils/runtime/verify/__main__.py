"""`python -m lab_utils.runtime --verify`: does training reach the chip here, and how near to the bound?"""

import argparse
import json

from lab_utils.common import command, files
from lab_utils.runtime import verify


def main() -> int:
    """Runs the command line; returns its exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m lab_utils.runtime --verify",
        description="Trains for a moment, and compares with the compiler's bound.",
        epilog="Exit status: 0, 1 if the step does not learn, 2 if it could not be run.",
    )
    parser.add_argument(
        "--output", type=files.output(files.JSON), help="JSON file to write, for a bug report"
    )
    parser.add_argument(
        "--batch", type=int, default=0, help="images a core (128 on a TPU, else 16)"
    )
    parser.add_argument("--image_size", type=int, default=128, help="in pixels (default: 128)")
    arguments = parser.parse_args()
    try:
        report = verify.verify(
            arguments.batch, arguments.image_size, lambda line: print(line, flush=True)
        )
    except ImportError as error:
        parser.error(f"could not be run: {command.missing(error)}")
    except (RuntimeError, ValueError) as error:
        parser.error(f"could not be run: {error}")
    print(verify.render(report))
    if arguments.output:
        files.write(arguments.output, json.dumps(report, indent=1) + "\n")
        print(f"Written: {arguments.output}. It holds neither names nor paths.")
    return 2 if "error" in report else 0 if report["checks"]["the loss falls"] else 1


if __name__ == "__main__":
    command.run(main)
