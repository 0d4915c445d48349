"""The arguments of the command, and its help."""

import argparse
import difflib
import math
import re
from collections.abc import Sequence
from importlib import metadata

from lab_utils.common import files
from lab_utils.dry_run import cache
from lab_utils.dry_run.records import Stage
from lab_utils.dry_run.report.formats import FORMATS
from lab_utils.runtime import chips

_EPILOG = """\
FUNCTION takes no arguments and returns what to judge, with its data:
    (estimator, input_fn)            a TPUEstimator; use_tpu may be False
    (model, dataset)                 a compiled Keras model and a tf.data dataset
    (step, (features, labels))       a function of one batch, and an example batch or a dataset
and, if it likes, a dict of options for dry_run, such as {"eval_input_fn": eval_input_fn}, as a third.

With --main a program needs no such function: its own main is run with the flags after "--", what it makes and
calls (train, evaluate, train_and_evaluate, predict, an export) is noted and judged, and nothing is trained.
All else that it does on its way there, such as writing its own files, is done:
    python -m lab_utils.dry_run --main train.py --topology v3:4x4 -- --data_dir=data --use_tpu=True

A program of TensorFlow 1 that imports tf.contrib runs with --contrib: its files are then given stand-ins.

Flags that the module defines with absl have their defaults; FUNCTION may set them.

examples:
    tpu-dry-run my_port.py:port --topology v5e:2x4 --html report.html
    tpu-dry-run --main train.py --contrib --stages trace,read -- --use_tpu=True
    tpu-dry-run my_port.py:port --ignore TPU305 --format sarif > report.sarif
A line that ends in `# tpu: ignore[TPU305] why` has its findings of that rule ignored.

What was compiled is kept in {cache}
(XDG_CACHE_HOME moves it, --no_cache leaves it alone), and for a day the report itself: the same command
prints it again where nothing that it read has changed, and all that it read is known.

exit status: 0 ready, 1 findings (errors or warnings), 2 could not run
"""


def _kept() -> str:
    try:
        return str(cache.folder())
    except OSError:  # a user id without a home, as containers have
        return "no place, since this user has no home folder"


def parser() -> argparse.ArgumentParser:
    """The command's parser."""
    made = argparse.ArgumentParser(
        prog="python -m lab_utils.dry_run",
        description="Judges a port to Cloud TPU without a TPU: traces it, reads its program, compiles it "
        "with the TPU compiler, runs it on virtual cores, and measures its input pipeline.",
        epilog=_EPILOG.replace("{cache}", _kept()),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    stages = ",".join(Stage)
    made.add_argument("target", nargs="?", metavar="MODULE:FUNCTION", help="or FILE.py:FUNCTION")
    made.add_argument(
        "--main",
        metavar="FILE.py",
        help="a program, notebook or module (package.train) to run up to its training; its flags follow --",
    )
    made.add_argument(
        "--topology",
        default="v2:2x2",
        type=_topology,
        help="such as v2:2x2, v5e:4x4 (default: v2:2x2)",
    )
    made.add_argument("--stages", default=stages, help=f"some of {stages} (default: all)")
    made.add_argument("--steps", type=_count, default=3, help="steps on virtual cores (default: 3)")
    made.add_argument(
        "--feed_seconds",
        type=_seconds,
        default=2.0,
        help="how long to measure the input (default: 2)",
    )
    made.add_argument(
        "--largest_batch", action="store_true", help="find the largest batch that fits"
    )
    made.add_argument(
        "--no_cache", action="store_true", help="compute and measure everything again"
    )
    made.add_argument(
        "--json", metavar="FILE", type=files.output(files.JSON), help="write the report as JSON"
    )
    made.add_argument(
        "--html",
        metavar="FILE",
        type=files.output(files.HTML),
        help="write the report as an HTML page",
    )
    made.add_argument(
        "--trace",
        metavar="FILE",
        type=files.output(files.JSON),
        help="write the compiled step as a trace for ui.perfetto.dev",
    )
    made.add_argument(
        "--format",
        choices=tuple(FORMATS),
        default="text",
        help="what to print: the report as text, page or JSON, SARIF 2.1.0, or GitHub's annotations "
        "(default: text)",
    )
    made.add_argument(
        "--contrib",
        action="store_true",
        help="TensorFlow 1 with tf.contrib for the program's files",
    )
    for name, what in (("select", "report no others"), ("ignore", "leave these out")):
        made.add_argument(
            f"--{name}",
            metavar="IDS",
            default="",
            help=f"rules or their beginnings, such as TPU305,TPU4: {what}",
        )
    made.add_argument("--version", action="version", version=_version())
    made.add_argument("--rule", metavar="ID", help="print the page of a rule, such as TPU101")
    made.add_argument("--rules", action="store_true", help="list the rules")
    return made


def parsed(made: argparse.ArgumentParser, given: Sequence[str]) -> argparse.Namespace:
    """What `given` says; ends the command where a flag is unknown, with the nearest that it has."""
    flags, unknown = made.parse_known_args(given)
    if not unknown:
        return flags
    name = unknown[0].partition("=")[0]
    known = set(re.findall(r"--\w+", made.format_usage()))
    near = difflib.get_close_matches(name, known, 1)
    if near:
        made.error(f"there is no flag {name}; the nearest is {near[0]}")
    if flags.main and name.startswith("-"):
        made.error(f"there is no flag {name}; flags of {flags.main} follow after --")
    made.error(f"unrecognized arguments: {' '.join(unknown)}")


def _topology(text: str) -> str:
    try:
        chips.parse(text)
    except chips.BadTopology as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    return text


def _count(text: str) -> int:
    if not text.isdecimal() or not int(text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of steps such as 3")
    return int(text)


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0 < seconds < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds such as 2")
    return seconds


def _version() -> str:
    try:
        return f"tpu-dry-run {metadata.version('tpu-porting-labs')}"
    except metadata.PackageNotFoundError:
        return "tpu-dry-run (not installed: run from its sources)"
