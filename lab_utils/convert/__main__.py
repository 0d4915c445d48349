"""Command line of the converter: python -m lab_utils.convert --help."""

import argparse
import sys
import time
from pathlib import Path

from lab_utils.common import command, files
from lab_utils.convert import ConversionError, convert
from lab_utils.convert.errors import printable
from lab_utils.convert.manifest import MANIFEST

_ENGINES = """\
Every flag that is not listed here goes to Beam and to its engine, such as --runner DataflowRunner
--project P --region R. Workers on other machines need all files in a bucket, or in folders that all machines
share under the same paths; lab_utils/convert/engines.md has whole commands.
"""
_REQUIRED = {
    "train_csv": (
        "rows path,label without a header; a path is absolute, relative to the CSV, or gs://..."
    ),
    "eval_csv": "the same for evaluation",
    "labels_file": "one class per line; the first class has the id 1 in the records",
    "output_dir": "a new or empty folder, local or gs://...",
}
_NUMBERS = {
    "train_shards": (int, None, "number of training shards (default: one for about 1,000 rows)"),
    "eval_shards": (int, None, "number of evaluation shards (default: one for about 1,000 rows)"),
    "shorter_side": (
        int,
        None,
        "scale larger images down to this number of pixels (default: do not scale)",
    ),
    "max_reject_share": (
        float,
        0.01,
        "largest share of rows that may give no example (default 0.01)",
    ),
    "workers": (
        int,
        None,
        "number of images to read and decode at once (default: one for each core)",
    ),
}


def main(arguments: list[str] | None = None) -> int:
    """Runs the conversion that the arguments describe; returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m lab_utils.convert",
        description="Convert images named in CSV files into TFRecord shards, with Apache Beam.",
        epilog=_ENGINES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    for name, text in _REQUIRED.items():
        parser.add_argument(f"--{name}", required=True, help=text)
    for name, (kind, default, text) in _NUMBERS.items():
        parser.add_argument(f"--{name}", type=kind, default=default, help=text)
    parser.add_argument(
        "--overwrite",
        action="store_true",
        help="replace an earlier result, which stays until the new one is complete",
    )
    flags, beam_flags = parser.parse_known_args(arguments)
    start, since = time.perf_counter(), time.time()
    try:
        manifest = convert(**vars(flags), beam_flags=beam_flags)
    except ConversionError as error:
        print(f"error: {printable(str(error))}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print(f"interrupted; {_published(flags.output_dir, since)}", file=sys.stderr)
        return 130
    print(manifest)
    print(f"  {time.perf_counter() - start:.1f} s (measured here)")
    return 0


def _published(folder: str, since: float) -> str:
    """What an interrupted run has published: its manifest comes last, and some clearing up after it."""
    if files.is_remote(folder):
        return f"if {folder} has a new {MANIFEST}, the result is complete"
    try:
        new = Path(files.expanded(folder), MANIFEST).stat().st_mtime >= since
    except (OSError, ValueError):
        new = False
    return "the new result is complete" if new else "no new result was published"


if __name__ == "__main__":
    command.run(main)
