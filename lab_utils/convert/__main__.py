"""Command line of the converter: python -m lab_utils.convert --help."""

import argparse
import sys
import time

from lab_utils.convert import ConversionError, convert
from lab_utils.convert.publishing import abandoned


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m lab_utils.convert",
        description="Convert images named in CSV files into TFRecord shards, with Apache Beam.",
        epilog="Every other flag goes to Beam, for example --runner=DataflowRunner --project=... "
        "--region=... --temp_location=gs://...",
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
        help="processes on this machine, 0 for one a core (default 1, faster below some thousands of images)",
    )
    return parser


def main(arguments: list[str] | None = None) -> int:
    """Run the conversion that the arguments describe; return the exit status."""
    flags, beam_flags = _parser().parse_known_args(arguments)
    start = time.perf_counter()
    try:
        manifest = convert(**vars(flags), beam_flags=beam_flags)
    except ConversionError as error:
        if error.__cause__ is not None:  # not foreseen: show where it came from
            raise
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("interrupted; no new result was published", file=sys.stderr)
        return 130
    seconds = time.perf_counter() - start
    print(manifest)
    print(f"  {seconds:.1f} s (measured here)")
    for folder in abandoned(flags.output_dir):
        print(
            f"note: {folder} is of a run that did not finish, or has not yet; it is not part of the result"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
