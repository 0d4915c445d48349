"""Command line of the converter: python -m lab_utils.convert --help."""

import argparse
import contextlib
import signal
import sys
import time
from collections.abc import Iterator

from lab_utils.common import command
from lab_utils.convert import ConversionError, convert
from lab_utils.convert.text import printable

_ENGINES = """\
Every flag that is not listed above goes to Beam and to its engine, such as --runner DaskRunner
--dask_client_address tcp://HOST:8786, or --runner DataflowRunner --project P --region R. Workers on other
machines need all files in a bucket, or in folders that all machines share under the same paths; README and
lab_utils/convert/engines.md have whole commands.
"""


class _Terminated(KeyboardInterrupt):
    """SIGTERM or SIGHUP: ends the run as Ctrl-C does."""

    def __init__(self, number: int):
        super().__init__()
        self.number = number


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m lab_utils.convert",
        description="Convert images named in CSV files into TFRecord shards, with Apache Beam.",
        epilog=_ENGINES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument(
        "--train_csv",
        required=True,
        help="rows path,label without a header; paths are absolute, relative to the CSV, or gs://...",
    )
    parser.add_argument("--eval_csv", required=True, help="the same, for evaluation")
    parser.add_argument(
        "--labels_file", required=True, help="one class a line; the first has id 1 in the records"
    )
    parser.add_argument(
        "--output_dir", required=True, help="a new or empty folder, local or gs://..."
    )
    parser.add_argument(
        "--shard_mb", type=float, default=100, help="size of a shard to aim at, in MB (default 100)"
    )
    parser.add_argument("--train_shards", type=int, help="number of training shards, instead")
    parser.add_argument("--eval_shards", type=int, help="number of evaluation shards, instead")
    parser.add_argument(
        "--shorter_side",
        type=int,
        help="scale images with a longer one down to so many pixels (default: all as they are); shards then "
        "get smaller than --shard_mb",
    )
    parser.add_argument(
        "--max_reject_share",
        type=float,
        default=0.01,
        help="fail if more than this share of a split's rows gives no example (default 0.01)",
    )
    parser.add_argument(
        "--overwrite",
        action="store_true",
        help="replace an earlier result; it stays until the new one is complete",
    )
    parser.add_argument(
        "--workers",
        type=int,
        help="processes on this machine; 0 means one for each core (default 1, which is faster "
        "below some thousands of images)",
    )
    parser.add_argument(
        "--stall_minutes",
        type=float,
        default=30,
        help="end the job when no image was converted for so many minutes (default 30)",
    )
    return parser


@contextlib.contextmanager
def _told_to_end() -> Iterator[None]:
    """Have SIGTERM and SIGHUP raise, so that a job elsewhere is cancelled and nothing is left half-made."""

    def end(number: int, _frame: object) -> None:
        raise _Terminated(number)

    before = {}
    for number in {signal.SIGTERM, getattr(signal, "SIGHUP", signal.SIGTERM)}:
        if signal.getsignal(number) == signal.SIG_DFL:  # nohup has SIGHUP ignored
            before[number] = signal.signal(number, end)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def main(arguments: list[str] | None = None) -> int:
    """Runs the conversion that the arguments describe; returns the exit status."""
    flags, beam_flags = _parser().parse_known_args(arguments)
    start = time.perf_counter()
    try:
        with _told_to_end():
            manifest = convert(**vars(flags), beam_flags=beam_flags)
    except ConversionError as error:
        print(f"error: {printable(str(error))}", file=sys.stderr)
        return 1
    except KeyboardInterrupt as interrupt:
        print("interrupted; no new result was published", file=sys.stderr)
        return 128 + getattr(interrupt, "number", signal.SIGINT)
    print(manifest)
    print(f"  {time.perf_counter() - start:.1f} s (measured here)")
    return 0


if __name__ == "__main__":
    command.run(main)
