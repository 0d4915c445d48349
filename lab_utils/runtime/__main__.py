"""`python -m lab_utils.runtime`: what this machine is; with --verify, whether it trains."""

import argparse
import runpy
import sys

from lab_utils import runtime
from lab_utils.common import command


def main() -> int:
    """Runs the command line; returns its exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m lab_utils.runtime",
        description="Says where this runs and which accelerator is there.",
        epilog="With --verify, --help tells its further flags and its exit status.",
        add_help="--verify" not in sys.argv,
    )
    parser.add_argument(
        "--verify", action="store_true", help="train for a moment, and compare with the bound"
    )
    arguments, rest = parser.parse_known_args()
    if arguments.verify:
        sys.argv[1:] = rest
        runpy.run_module(
            "lab_utils.runtime.verify", run_name="__main__"
        )  # ends with its own status
    if rest:
        parser.error(f"{rest[0]} goes with --verify")
    print(f"{runtime.detect()}. Accelerators: {runtime.accelerators() or 'none'}.")
    return 0


if __name__ == "__main__":
    command.run(main)
