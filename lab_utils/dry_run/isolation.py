"""The process in which the command judges a program, which may end it: the status tells the truth even then.

The command waits for that process and takes its status from shared memory, into which only `_end` writes. A
program that ends the process by itself, even by a native library's exit(0), has therefore said nothing.
"""

import contextlib
import mmap
import os
import signal
import sys
import tempfile
import threading
import traceback
from collections.abc import Callable
from typing import Any, NoReturn

import psutil

from lab_utils.common import command, interrupts, scratch
from lab_utils.dry_run.report.outcome import COULD_NOT_RUN, EXIT_STATUS

_NO_VERDICT = EXIT_STATUS[COULD_NOT_RUN]
_exit = os._exit


def supervise(judge: Callable[[], int]) -> NoReturn:
    """Ends this process with the status of `judge`, and with it all that the judged program has started.

    Threads and processes that the program left would keep Python from ending.
    """
    command.begin()
    if not hasattr(os, "fork"):  # Windows
        _judge(judge, bytearray(1))
    ended_with = mmap.mmap(-1, 1)  # a status and 1; 0 where there is none
    process = os.fork()
    if not process:
        _judge(judge, ended_with)
    ended_by = _wait(process)
    if ended_with[0]:
        sys.exit(ended_with[0] - 1)
    print(
        f"The process in which the program was judged ended {_how(ended_by)} before there was a "
        "report, so there is no verdict.",
        file=sys.stderr,
    )
    sys.exit(_NO_VERDICT)


def _how(ended_by: int) -> str:
    if ended_by >= 0:
        return f"with status {ended_by}, as exit() of a C library ends it"
    memory = ", most likely because memory ran out" if ended_by == -signal.SIGKILL else ""
    return f"by {signal.Signals(-ended_by).name}{memory}"


def _wait(process: int) -> int:
    """The status of a process when it is over, or minus the signal that ended it.

    Signals that ask this process to end are passed on to it; a second one ends both.
    """
    asked: list[int] = []
    started: list[psutil.Process] = []  # by that process, which may end before it ends them

    def pass_on(number: int, frame: Any) -> None:
        again = bool(asked)
        asked.append(number)
        with contextlib.suppress(psutil.Error):
            started.extend(psutil.Process(process).children(recursive=True))
        os.kill(process, signal.SIGKILL if again else number)

    for number in interrupts.NUMBERS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, pass_on)
    ended_by = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    _kill(started)
    if -ended_by in asked:  # as if it had come to this process alone
        signal.signal(-ended_by, signal.SIG_DFL)
        os.kill(os.getpid(), -ended_by)
    if asked and ended_by == -signal.SIGKILL:
        sys.exit(128 + signal.SIGINT)
    return ended_by


def _judge(judge: Callable[[], int], ended_with: Any) -> NoReturn:
    """Ends this process with the status of `judge`.

    Where the program asks the system to end it, or to run another program in it, SystemExit is raised at that
    line.
    """
    for name in ("_exit", "execv", "execve"):
        setattr(os, name, _refusal(name, getattr(os, name)))
    interrupts.as_ctrl_c()
    for number in _like_ctrl_c():
        signal.signal(number, _interrupt_once)
    if hasattr(os, "fork"):
        threading.Thread(target=_end_after, args=(os.getppid(),), daemon=True).start()
    judging, status = os.getpid(), None

    def judge_in_folder() -> int:
        with scratch.folder() as folder:
            os.environ["TMPDIR"] = tempfile.tempdir = folder
            return judge()

    try:
        status = command.status_of(judge_in_folder, _NO_VERDICT)
    except BaseException:  # of whatever kind, nothing was judged
        with contextlib.suppress(BaseException):  # the program may have closed the streams
            traceback.print_exc()
    if os.getpid() != judging:  # a process that the program forked, and that came back
        ended_with = bytearray(1)
    _end(status if isinstance(status, int) else _NO_VERDICT, ended_with)


def _like_ctrl_c() -> list[int]:
    """The signals that raise KeyboardInterrupt in this process: none that nohup or the program handles."""
    ours = (signal.default_int_handler, _interrupt_once)
    return [number for number in interrupts.NUMBERS if signal.getsignal(number) in ours]


def _interrupt_once(number: int, frame: Any) -> NoReturn:
    """Raises KeyboardInterrupt for the first of them only: the waiting process passes on a terminal's."""
    for each in _like_ctrl_c():
        signal.signal(each, signal.SIG_IGN)
    raise KeyboardInterrupt


def _end_after(parent: int) -> None:
    """Ends this process when the one that waits for it has been killed."""
    pause = threading.Event()
    while os.getppid() == parent:
        pause.wait(1)
    _end(_NO_VERDICT, bytearray(1))


def _refusal(name: str, real: Callable) -> Callable:
    process = os.getpid()

    def refuse(*arguments: Any) -> None:
        if os.getpid() != process:  # a process that the program forked
            real(*arguments)
        raise SystemExit(f"the program calls os.{name}")

    return refuse


def _end(status: int, ended_with: Any) -> NoReturn:
    """Ends this process and those that it started."""
    with contextlib.suppress(ValueError, OSError):  # the program may have closed it
        sys.stderr.flush()
    try:
        sys.stdout.flush()
    except (ValueError, OSError):  # the report has not reached anybody
        status = _NO_VERDICT
    with contextlib.suppress(Exception):  # also of what the program has replaced, such as open
        _kill(psutil.Process().children(recursive=True))
    ended_with[0] = status + 1
    _exit(status)


def _kill(processes: list[psutil.Process]) -> None:
    for process in processes:
        with contextlib.suppress(psutil.Error):
            process.kill()
