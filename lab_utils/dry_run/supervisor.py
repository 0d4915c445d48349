"""The end of the command: nothing that a judged program does to its process passes for ready."""

import contextlib
import os
import sys
import tempfile
import traceback
from collections.abc import Callable
from typing import Any, NoReturn

import psutil

from lab_utils.common import command, scratch
from lab_utils.dry_run.report.outcome import COULD_NOT_RUN, EXIT_STATUS

_CANNOT = EXIT_STATUS[COULD_NOT_RUN]
_exit = os._exit


def supervised(judge: Callable[[], int]) -> NoReturn:
    """Ends this process with the status of `judge`, and with it all that the judged program has started.

    Threads and processes that the program left would keep Python from ending. Where it asks the system to
    end this process, or to run another program in it, SystemExit is raised at that line.
    """
    for name in ("_exit", "execv", "execve"):
        setattr(os, name, _refused(name, getattr(os, name)))
    status = None
    try:
        with scratch.folder() as folder:
            os.environ["TMPDIR"] = tempfile.tempdir = folder
            status = command.status_of(judge, _CANNOT)
    except Exception:
        traceback.print_exc()
    _end(status if isinstance(status, int) else _CANNOT)


def _refused(name: str, real: Callable) -> Callable:
    process = os.getpid()

    def refused(*arguments: Any) -> None:
        if os.getpid() != process:  # a process that the program forked
            real(*arguments)
        raise SystemExit(f"the program calls os.{name}")

    return refused


def _end(status: int) -> NoReturn:
    """Ends this process and those that it started."""
    with contextlib.suppress(ValueError, OSError):
        sys.stdout.flush()
        sys.stderr.flush()
    for process in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.Error):
            process.kill()
    _exit(status)
