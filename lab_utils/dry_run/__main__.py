"""python -m lab_utils.dry_run MODULE:FUNCTION: the dry run as a command, for a terminal or anybody's CI."""

import argparse
import atexit
import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import ExitStack, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

from lab_utils.common import command, files, interrupts, scratch
from lab_utils.dry_run import rules, unchanged
from lab_utils.dry_run.arguments import parsed
from lab_utils.dry_run.arguments import parser as arguments_parser
from lab_utils.dry_run.records import Stage
from lab_utils.dry_run.report import terminal
from lab_utils.dry_run.report.formats import FORMATS
from lab_utils.dry_run.report.outcome import COULD_NOT_RUN, EXIT_STATUS
from lab_utils.dry_run.target import TargetError, load, load_main
from lab_utils.port import contrib
from lab_utils.runtime import chips

if TYPE_CHECKING:
    from lab_utils.dry_run.report.report import Report

# In the environment of the child that judges: where its exit status belongs, and the name of its answer.
_STATUS_FILE, _NAME = "LAB_UTILS_DRY_RUN_STATUS_FILE", "LAB_UTILS_DRY_RUN_NAME"
_GRACE = 5  # seconds in which a program ends after Ctrl-C


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; returns its exit status."""
    parser = arguments_parser()
    given = list(sys.argv[1:] if arguments is None else arguments)
    end = given.index("--") if "--" in given else len(given)
    flags = parsed(parser, given[:end])
    flags.program = given[end + 1 :]
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
    if not flags.target and not flags.main:
        parser.error("name what to judge: MODULE:FUNCTION, or --main FILE.py")
    if flags.target and flags.main:
        parser.error(f"{flags.target}: with --main, the program's own flags follow after --")
    if flags.program and not flags.main:
        parser.error("flags after -- are a program's own: name it with --main FILE.py")
    flags.target = flags.target or flags.main
    for name in ("json", "html", "trace"):  # a program may change the folder
        if path := getattr(flags, name):
            setattr(flags, name, path.absolute())
    if len(set(_outputs(flags))) < len(_outputs(flags)):
        parser.error("--json, --html and --trace name one file twice: give each its own")
    stages = [name for part in flags.stages.split(",") if (name := part.strip())]
    if not stages:
        parser.error(f"--stages names none; there are {', '.join(Stage)}")
    if unknown := [name for name in stages if name not in list(Stage)]:
        parser.error(f"--stages: there is no {', '.join(unknown)}; there are {', '.join(Stage)}")
    try:
        flags.select, flags.ignore = rules.chosen(flags.select), rules.chosen(flags.ignore)
    except ValueError as error:
        parser.error(str(error))
    with ExitStack() as stack:
        watch = None
        if (name := os.environ.pop(_NAME, None)) and not flags.no_cache:
            watch = stack.enter_context(
                unchanged.watched(name, _outputs(flags), os.environ["TMPDIR"])
            )
        with nullcontext() if flags.format == "text" else contextlib.redirect_stdout(sys.stderr):
            report = _dry_run(flags, stages, watch)
        if not report:
            return EXIT_STATUS[COULD_NOT_RUN]
        try:
            text = _shown(report, flags)
        except OSError as error:
            if error.filename is None:  # of the output: command.py knows what to do
                raise
            print(f"{error.filename} cannot be written: {error.strerror}", file=sys.stderr)
            return EXIT_STATUS[COULD_NOT_RUN]
        if watch and report.carried_out(stages) and (report.spans or not flags.trace):
            watch.keep(unchanged.Answer(report.exit_status, text, _outputs(flags)))
    return report.exit_status


def _outputs(flags: argparse.Namespace) -> list[Path]:
    return [path for path in (flags.json, flags.html, flags.trace) if path]


def _dry_run(
    flags: argparse.Namespace, stages: list[str], watch: unchanged.Watch | None
) -> "Report | None":
    """The report; None where there is none, which is told."""
    try:
        from lab_utils import estimator  # noqa: F401  (the target's module may use tf.estimator)
    except ImportError as error:  # no TensorFlow, or one that this was not made for
        print(f"{flags.target}: {command.missing(error)}", file=sys.stderr)
        return None
    with watch.tensorflow() if watch else nullcontext():
        return _judged(flags, stages)


def _judged(flags: argparse.Namespace, stages: list[str]) -> "Report | None":
    from lab_utils.dry_run.api import dry_run, refusal
    from lab_utils.dry_run.trace.messages import settings_finding

    options = {
        "topology": flags.topology,
        "stages": stages,
        "steps": flags.steps,
        "feed_seconds": flags.feed_seconds,
        "largest_batch": flags.largest_batch,
        "cache": not flags.no_cache,
        "select": flags.select,
        "ignore": flags.ignore,
    }
    if flags.contrib:
        contrib.install()
    try:
        try:
            subject, data, more = (
                load_main(flags.main, flags.program, chips.cores(flags.topology))
                if flags.main
                else load(flags.target)
            )
        except TargetError as error:
            found = error.__cause__ and settings_finding(error.__cause__)
            if not found:
                raise
            report = refusal(flags.target, flags.topology, found)
        else:
            report = dry_run(subject, data, **options | more)
            if any(base.__module__.startswith("tf_keras") for base in type(subject).__mro__):
                said = "Keras 3: tf.keras was Keras 2 here, the package tf-keras."
                report.not_checked.append(said)
    except (TargetError, TypeError, ValueError) as error:
        print(f"{flags.target}: {error}", file=sys.stderr)
        return None
    if stood_in := contrib.used():
        report.not_checked.append(
            f"tf.contrib itself: {', '.join(sorted(stood_in))} had stand-ins."
        )
    return report


def _shown(report: "Report", flags: argparse.Namespace) -> str:
    """Prints and writes the report as asked; returns what it printed."""
    text = FORMATS[flags.format](report)
    coloured = flags.format == "text" and sys.stdout.isatty() and "NO_COLOR" not in os.environ
    print(terminal.render(report, colour=True) if coloured else text)
    if flags.json:
        files.write(flags.json, report.to_json() + "\n")
    if flags.html:
        report.write_html(flags.html)
    if flags.trace and report.spans:
        report.write_trace(flags.trace)
    elif flags.trace:
        print(f"{flags.trace} is not written: no step was compiled", file=sys.stderr)
    return text


def supervised() -> int:
    """The command in a child process, so that a program that ends its process cannot pass for ready.

    The child leaves its exit status in a file; a child that ends without one could not judge.
    """
    if (told := os.environ.pop(_STATUS_FILE, None)) is not None:
        _end_with_parent()
        atexit.register(_end_children)  # the first: it comes last
        status = command.status_of(main, EXIT_STATUS[COULD_NOT_RUN])
        Path(told).write_text(str(status))
        return _left(status)
    name = unchanged.name()
    if answer := unchanged.recalled(name):
        print(answer.text)
        return answer.status
    with scratch.folder() as folder:  # its temporary files go, too, however it ends
        file = Path(folder) / "status"
        with interrupts.held_back():
            child = subprocess.Popen(
                [sys.executable, "-m", "lab_utils.dry_run", *sys.argv[1:]],
                env=os.environ | {_STATUS_FILE: str(file), _NAME: name, "TMPDIR": folder},
            )
            signal.signal(signal.SIGTERM, lambda *_: child.terminate())
        status, interrupted = _end_of(child)
        if file.exists():
            return status
        if interrupted:
            return 130
    how = f"signal {-status}" if status < 0 else f"status {status}"
    advice = (
        "; signal 9 is often the system's, for want of memory: try a smaller batch"
        if status == -9
        else ""
    )
    print(
        f"No verdict: the process was ended with {how} before there was a report{advice}. Does the program, "
        "or a library of it, call os._exit?",
        file=sys.stderr,
    )
    return EXIT_STATUS[COULD_NOT_RUN]


def _end_of(child: subprocess.Popen) -> tuple[int, bool]:
    """Its exit status, and whether Ctrl-C ended it: it has heard that too, unless its program is deaf."""
    interrupted = False
    while True:
        try:
            status = child.wait(_GRACE if interrupted else None)
            return status, interrupted or status in (130, -signal.SIGINT)
        except KeyboardInterrupt:
            interrupted = True
        except subprocess.TimeoutExpired:
            child.kill()


def _end_with_parent() -> None:
    parent = os.getppid()

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _left(status: int) -> int:
    """Ends what the program left behind: Python would wait for its threads and processes, maybe for good."""
    ours = (threading.main_thread(), threading.current_thread())
    if any(not thread.daemon and thread not in ours for thread in threading.enumerate()):
        _end_now(status)
    ending = threading.Timer(_GRACE, _end_now, [status])  # pools end their workers before that
    ending.daemon = True
    ending.start()
    return status


def _end_now(status: int) -> None:
    _end_children()
    with contextlib.suppress(ValueError, OSError):
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(status)


def _end_children() -> None:
    for process in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.Error):
            # The resource tracker removes what a pool shared, and ends by itself after us.
            if not any("resource_tracker" in word for word in process.cmdline()):
                process.kill()


def console() -> int:
    """The command `tpu-dry-run`."""
    return command.status_of(supervised, EXIT_STATUS[COULD_NOT_RUN])


if __name__ == "__main__":
    sys.exit(console())
