"""python -m lab_utils.dry_run MODULE:FUNCTION: the dry run as a command, for a terminal or anybody's CI."""

import argparse
import inspect
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

from lab_utils.common import command, files, loading
from lab_utils.dry_run import isolation, rules
from lab_utils.dry_run.frontends import old_names
from lab_utils.dry_run.frontends.cells import CannotJudge
from lab_utils.dry_run.records import Finding, Stage
from lab_utils.dry_run.report.comparison import Comparison
from lab_utils.dry_run.report.outcome import COULD_NOT_RUN, EXIT_STATUS
from lab_utils.dry_run.report.report import Report
from lab_utils.dry_run.target import Target, load, load_main
from lab_utils.port import contrib
from lab_utils.runtime import chips
from lab_utils.runtime.chips import POPULAR

_EPILOG = """\
FUNCTION takes no arguments and returns what to judge, with its data:
    (estimator, input_fn)            a TPUEstimator; use_tpu may be False
    (model, dataset)                 a compiled Keras model and a tf.data dataset
    (step, (features, labels))       a function of one batch, and an example batch or a dataset
As a third value, it may return a dict of options for dry_run, such as {"eval_input_fn": eval_input_fn}.

With --main, a program needs no such function: the dry run calls its own main with the flags after "--", and
stops it at its training, which is judged but not done. Everything that the program does before that, such as
writing files, is done.

If the module defines flags with absl, they have their default values, but FUNCTION may set them.

examples:
    tpu-dry-run my_port.py:port --topology v5e:2x4 --html report.html
    tpu-dry-run --main train.py --contrib --stages trace,read -- --use_tpu=True
    tpu-dry-run my_port.py:port --ignore TPU305 --json report.json
    tpu-dry-run my_port.py:port --topology all --train_steps 10000 --prices prices.yaml
    tpu-dry-run my_port.py:port --topology v6e:2x4 --largest_batch

The results of the compiler are cached in ~/.cache/lab_utils. (Set XDG_CACHE_HOME to move
this folder. With --no_cache, the dry run does not use it.)

exit status: 0 if ready, 1 if there are findings (errors or warnings), 2 if the port could not be judged
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; returns its exit status."""
    flags = parsed(sys.argv[1:] if arguments is None else arguments)
    if flags.rule:
        print(rules.page(flags.rule))
        return 0
    if flags.rules:
        for rule in rules.catalogue().values():
            print(f"{rule.id}  {rule.stage:<8}{rule.severity:<8}  {rule.title}")
        return 0
    try:
        report = _report(flags)
    except (CannotJudge, TypeError, ValueError) as error:
        print(f"{flags.main or flags.target}: {error}", file=sys.stderr)
        return EXIT_STATUS[COULD_NOT_RUN]
    except SystemExit as end:  # the program's own, at a place where none is expected
        print(f"{flags.main or flags.target} ends itself: SystemExit: {end}", file=sys.stderr)
        return EXIT_STATUS[COULD_NOT_RUN]
    if not (command.has_output() or flags.json or flags.html):
        print("the report cannot be shown: the standard output is closed", file=sys.stderr)
        return EXIT_STATUS[COULD_NOT_RUN]
    _show(report, flags)
    return report.exit_status


def parser() -> argparse.ArgumentParser:
    """The command's parser."""
    parser = argparse.ArgumentParser(
        prog="python -m lab_utils.dry_run",
        description="Judges a port to Cloud TPU without a TPU: traces it, reads its program, compiles it "
        "with the TPU compiler, runs it on virtual cores, and measures its input pipeline.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    flag = parser.add_argument
    json_file, html_file = files.output(files.JSON), files.output(files.HTML)
    flag("target", nargs="?", metavar="MODULE:FUNCTION", help="or FILE.py:FUNCTION")
    flag("--main", metavar="FILE.py", help="a program, notebook or module (package.train) to run up to its "
         "training; its flags follow --")  # fmt: skip
    flag("--step", metavar="NAME", default="", help="the function to judge, if a JAX program trains with "
         "several")  # fmt: skip
    flag("--topology", dest="topologies", action="append", metavar="NAME",
         help="such as v5e:4x4 (default: v5e:2x4 for JAX and Keras on JAX, else v2:2x2). If it is given "
         "several times, or as `all`, the step is compiled for each, and a table compares them")  # fmt: skip
    flag("--largest_batch", action="store_true", help="only search for the largest batch per core that "
         "fits")  # fmt: skip
    flag(
        "--train_steps",
        type=int,
        metavar="N",
        help="number of steps of the whole training, from which the table computes hours",
    )
    flag("--prices", metavar="FILE.yaml", help="prices per chip and hour for the table: lines such as "
         "`v5e: 1.20`, and lines `currency:` and `source:`")  # fmt: skip
    flag("--stages", default=",".join(Stage), help=f"some of {','.join(Stage)} (default: all)")
    flag("--steps", type=int, default=3, help="steps on virtual cores (default: 3)")
    flag(
        "--numerics",
        action="store_true",
        help="run these steps also with the rounding of a TPU's matmuls",
    )
    flag("--limit", type=float, metavar="SECONDS", help="most time that the compiler may take for a program "
         "(default: no limit)")  # fmt: skip
    flag("--no_cache", dest="cache", action="store_false", help="compute everything again")
    flag("--json", metavar="FILE", type=json_file, help="write the report as JSON")
    flag("--html", metavar="FILE", type=html_file, help="write the report as an HTML page")
    flag("--contrib", action="store_true", help="give the program TensorFlow 1 with tf.contrib")
    flag("--ignore", metavar="IDS", default="", help="rules to leave out, such as TPU305,TPU4")
    flag("--rule", metavar="ID", type=str.upper, help="print the page of a rule, such as TPU101")
    flag("--rules", action="store_true", help="list the rules")
    return parser


def parsed(arguments: Sequence[str]) -> argparse.Namespace:
    """The flags of a command line, those of the program behind "--" in `program`.

    Ends the command where they make no sense.
    """
    command = parser()
    words = list(arguments)
    end = words.index("--") if "--" in words else len(words)
    flags = command.parse_args(words[:end])
    flags.program = words[end + 1 :]
    try:
        if flags.rule:
            rules.rule(flags.rule)
        _read_topologies(flags)
        flags.stages = _stages(flags.stages)
        flags.ignore = rules.ids_in(flags.ignore)
    except (KeyError, ValueError) as error:
        command.error(error.args[0])
    if flags.rule or flags.rules:
        return flags
    if not flags.target and not flags.main:
        command.error("name what to judge: MODULE:FUNCTION, or --main FILE.py")
    if flags.target and flags.main:
        command.error(f"{flags.target}: if you use --main, put the program's own flags after --")
    if flags.step and not flags.main:
        command.error(
            f"--step {flags.step} names a function of a program, so name the program with --main"
        )
    if flags.program and not flags.main:
        command.error("flags after -- belong to a program, so name the program with --main FILE.py")
    return flags


def _read_topologies(flags: argparse.Namespace) -> None:
    """Sets `topology`, the one that is judged, and `compares`: whether a table is asked for instead.

    `topology` is None where nobody named one: what computes the program chooses it. `cores` are those of the
    largest slice named: a program of JAX is run with as many devices, and jax.pmap keeps to them.

    Raises:
        ValueError: a name or a combination of flags makes no sense.
    """
    named = flags.topologies or []
    flags.topologies = list(POPULAR) if named == ["all"] else named
    flags.topology = next(iter(flags.topologies), None)
    flags.cores = max(map(chips.cores, flags.topologies), default=chips.DEFAULT_CORES)
    several = len(flags.topologies) > 1
    flags.compares = several or flags.largest_batch
    if several and flags.largest_batch:
        raise ValueError("--largest_batch searches on one topology")
    if flags.train_steps is not None and flags.train_steps < 1:
        raise ValueError(
            f"--train_steps is the number of steps, 1 or more, not {flags.train_steps}"
        )
    if (flags.train_steps or flags.prices) and not several:
        raise ValueError("--train_steps and --prices are for a table, so name several topologies")


def _stages(text: str) -> list[Stage]:
    names = [name.strip() for name in text.split(",")]
    if unknown := set(names) - set(Stage):
        raise ValueError(f"there is no stage {', '.join(unknown)}; there are {', '.join(Stage)}")
    return [Stage(name) for name in names]


def _report(flags: argparse.Namespace) -> Report | Comparison:
    """The report on the program that the flags name, or the table that they ask for.

    Raises:
        CannotJudge: it cannot be judged.
        TypeError, ValueError: as dry_run.
    """
    if flags.contrib:
        try:
            contrib.install()
        except ImportError as error:  # no TensorFlow, or one that this was not made for
            raise CannotJudge(command.missing(error)) from error
    from lab_utils.dry_run.api import dry_run, refusal  # TensorFlow has its Estimator from here on

    try:
        if flags.main:
            old_names.give()
            target = load_main(flags.main, flags.program, flags.cores, flags.step)
        else:
            target = load(flags.target)
    except CannotJudge as error:
        finding = _settings_finding(error.__cause__)
        if not finding:
            raise
        return refusal(flags.main or flags.target, flags.topology, finding)
    parameters = inspect.signature(dry_run).parameters
    options = {name: value for name, value in vars(flags).items() if name in parameters}
    options |= target.options
    if flags.compares:
        return _compared(flags, target, options)
    report = dry_run(target.subject, target.data, observed=target.observed, **options)
    if any(base.__module__.startswith("tf_keras") for base in type(target.subject).__mro__):
        report.not_checked.append(
            "Keras 3: in this dry run, tf.keras was Keras 2 (the package tf-keras)."
        )
    report.not_checked += old_names.told()
    if names := contrib.used():
        report.not_checked.append(
            f"tf.contrib itself: the dry run used stand-ins for {', '.join(sorted(names))}."
        )
    return report


def _settings_finding(error: BaseException | None) -> Finding | None:
    """What a constructor of TensorFlow's refused, in the words of a rule; None for other errors."""
    if error is None or loading.tensorflow() is None:
        return None
    from lab_utils.dry_run.rules.messages import settings_finding  # which imports TensorFlow

    return settings_finding(error)


def _compared(flags: argparse.Namespace, target: Target, options: dict[str, Any]) -> Comparison:
    """The train step of `target` for several slices, or with several batches."""
    from lab_utils.dry_run import choose

    compare, others = choose.compare_topologies, vars(flags)
    if flags.largest_batch:
        compare = choose.largest_batch
    parameters = inspect.signature(compare).parameters
    chosen = {name: value for name, value in (others | options).items() if name in parameters}
    return compare(target.subject, target.data, observed=target.observed, **chosen)


def _show(report: Report | Comparison, flags: argparse.Namespace) -> None:
    """Prints and writes the report as asked."""
    print(report)
    if flags.json:
        files.write(flags.json, report.to_json() + "\n")
    if flags.html:
        report.write_html(flags.html)


def console() -> NoReturn:
    """The command `tpu-dry-run`."""
    isolation.supervise(main)


if __name__ == "__main__":
    console()
