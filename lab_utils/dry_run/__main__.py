"""python -m lab_utils.dry_run MODULE:FUNCTION: the dry run as a command, for a terminal or anybody's CI."""

import argparse
import importlib
import importlib.util
import os
import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

from lab_utils import source
from lab_utils.dry_run import rules
from lab_utils.dry_run.records import Stage
from lab_utils.dry_run.report.outcome import COULD_NOT_RUN, EXIT_STATUS
from lab_utils.files import path_argument

_EPILOG = """\
FUNCTION takes no arguments and returns what to judge, with its data:
    (estimator, input_fn)            a TPUEstimator; use_tpu may be False
    (model, dataset)                 a compiled Keras model and a tf.data dataset
    (step, (features, labels))       a function of one batch, and an example batch or a dataset
and, if it likes, a dict of options for dry_run, such as {"eval_input_fn": eval_input_fn}, as a third.

Flags that the module defines with absl have their defaults; FUNCTION may set them.

exit status: 0 ready, 1 findings (errors or warnings), 2 could not run
"""


class TargetError(Exception):
    """What MODULE:FUNCTION names cannot be used; the message says why, and what to do."""


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m lab_utils.dry_run",
        description="Judges a port to Cloud TPU without a TPU: traces it, reads its program, compiles it "
        "with the TPU compiler, runs it on virtual cores, and measures its input pipeline.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    stages = ",".join(Stage)
    parser.add_argument("target", nargs="?", metavar="MODULE:FUNCTION", help="or FILE.py:FUNCTION")
    parser.add_argument(
        "--topology", default="v2:2x2", help="such as v2:2x2, v5e:4x4 (default: v2:2x2)"
    )
    parser.add_argument("--stages", default=stages, help=f"some of {stages} (default: all)")
    parser.add_argument("--steps", type=int, default=3, help="steps on virtual cores (default: 3)")
    parser.add_argument(
        "--feed_seconds", type=float, default=2.0, help="how long to measure the input (default: 2)"
    )
    parser.add_argument(
        "--largest_batch", action="store_true", help="find the largest batch that fits"
    )
    parser.add_argument(
        "--no_cache", action="store_true", help="compute and measure everything again"
    )
    parser.add_argument(
        "--json", metavar="FILE", type=path_argument, help="write the report as JSON"
    )
    parser.add_argument(
        "--html", metavar="FILE", type=path_argument, help="write the report as an HTML page"
    )
    parser.add_argument("--rule", metavar="ID", help="print the page of a rule, such as TPU101")
    parser.add_argument("--rules", action="store_true", help="list the rules")
    parser.add_argument(
        "--pages", metavar="DIR", type=path_argument, help="write the rules' pages as HTML"
    )
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; returns its exit status."""
    parser = _parser()
    flags = parser.parse_args(arguments)
    if flags.rule:
        try:
            print(rules.page(flags.rule.upper()))
        except KeyError as error:
            parser.error(error.args[0])
        return 0
    if flags.rules:
        for rule in rules.catalogue().values():
            print(f"{rule.id}  {rule.stage:<8}{rule.severity:<8}  {rule.title}")
        return 0
    if flags.pages:
        from lab_utils.dry_run.report import site as pages_html

        try:
            written = pages_html.write_pages(flags.pages)
        except OSError as error:
            parser.error(f"--pages {flags.pages}: {error.strerror}")
        print(f"{len(written)} pages: open {flags.pages / 'index.html'}")
        return 0
    if not flags.target:
        parser.error("name what to judge: MODULE:FUNCTION")
    stages = [name.strip() for name in flags.stages.split(",")]
    if unknown := [name for name in stages if name not in list(Stage)]:
        parser.error(f"--stages: there is no {', '.join(unknown)}; there are {', '.join(Stage)}")
    for path in (flags.json, flags.html):
        if path and not path.absolute().parent.is_dir():
            parser.error(f"{path}: there is no folder {path.absolute().parent}")
    return _dry_run(flags, stages)


def _dry_run(flags: argparse.Namespace, stages: list[str]) -> int:
    from lab_utils import estimator  # noqa: F401  (the target's module may use tf.estimator)
    from lab_utils.dry_run.api import dry_run, refusal
    from lab_utils.dry_run.report import terminal
    from lab_utils.dry_run.trace.messages import settings_finding

    options = {
        "topology": flags.topology,
        "stages": stages,
        "steps": flags.steps,
        "feed_seconds": flags.feed_seconds,
        "largest_batch": flags.largest_batch,
        "cache": not flags.no_cache,
    }
    try:
        try:
            subject, data, more = load(flags.target)
        except TargetError as error:
            found = error.__cause__ and settings_finding(error.__cause__)
            if not found:
                raise
            report = refusal(flags.target, flags.topology, found)
        else:
            report = dry_run(subject, data, **options | more)
    except (TargetError, TypeError, ValueError) as error:
        print(f"{flags.target}: {error}", file=sys.stderr)
        return EXIT_STATUS[COULD_NOT_RUN]
    print(terminal.render(report, colour=sys.stdout.isatty() and "NO_COLOR" not in os.environ))
    if flags.json:
        flags.json.write_text(report.to_json() + "\n", encoding="utf-8")
    if flags.html:
        report.write_html(flags.html)
    return report.exit_status


def load(target: str) -> tuple[object, object, dict]:
    """Calls the function that `target` names; returns what to judge, its data, and options for `dry_run`.

    Raises:
        TargetError: the module or function is not there or raises, or returns something else.
    """
    module_name, _, function_name = target.rpartition(":")
    if not module_name or not function_name:
        raise TargetError("name it as MODULE:FUNCTION or FILE.py:FUNCTION")
    try:
        module = _module(module_name)
        _default_flags()
        function = getattr(module, function_name, None)
        if not callable(function):
            raise TargetError(f"{module_name} has no function {function_name}")
        returned = function()
    except TargetError:
        raise
    except (Exception, SystemExit) as error:  # a script may end itself when it is imported
        said = textwrap.shorten(str(error), 1000)
        place = source.place(error) or "while it was imported or called"
        raise TargetError(f"{type(error).__name__}: {said}\n  at {place}") from error
    if not isinstance(returned, tuple | list) or len(returned) not in (2, 3):
        raise TargetError(
            f"{function_name} must return (estimator, input_fn) or the like, see --help; "
            f"it returned {type(returned).__name__}"
        )
    subject, data, *rest = returned
    return subject, data, dict(rest[0]) if rest else {}


def _default_flags() -> None:
    """Gives the flags that the target defines with absl their defaults, as its own main does not run."""
    flags = sys.modules.get("absl.flags")
    if flags and not flags.FLAGS.is_parsed():
        flags.FLAGS.mark_as_parsed()


def _module(name: str) -> ModuleType:
    """The module `name`, or the one in the file `name`; its neighbours can be imported by it."""
    if not name.endswith(".py"):
        sys.path.insert(0, str(Path.cwd()))
        return importlib.import_module(name)
    path = Path(name).absolute()
    if not path.is_file():
        raise TargetError(f"there is no file {path}")
    sys.path.insert(0, str(path.parent))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
    except BrokenPipeError:  # the reader of our output, such as `head`, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
