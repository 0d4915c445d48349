"""The command in a child process, so that a program that ends its process cannot pass for ready."""

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import psutil

from lab_utils.common import command, scratch
from lab_utils.dry_run.report.outcome import COULD_NOT_RUN, EXIT_STATUS

# In the child's environment: where its status belongs.
_STATUS_FILE = "LAB_UTILS_DRY_RUN_STATUS_FILE"
_GRACE = 5  # seconds in which a program ends after Ctrl-C
_CANNOT = EXIT_STATUS[COULD_NOT_RUN]


def supervised(judge: Callable[[], int]) -> int:
    """The exit status of `judge`, which this same command line runs in a child process.

    The child leaves a file when it has judged; without it there is no verdict. It ends with this process.
    """
    if (file := os.environ.pop(_STATUS_FILE, None)) is not None:
        _judge(judge, Path(file))
    with scratch.folder() as folder:  # its temporary files go, too, however it ends
        file = Path(folder) / "status"
        child = subprocess.Popen(
            [sys.executable, "-m", "lab_utils.dry_run", *sys.argv[1:]],
            env=os.environ | {_STATUS_FILE: str(file), "TMPDIR": folder},
        )
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        try:
            status = child.wait()
        except (
            KeyboardInterrupt
        ):  # a terminal sends it to the child, too, whose program may be deaf
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.wait(_GRACE)
            child.kill()
            return 130
        if file.exists():
            return status
    how = f"signal {-status}" if status < 0 else f"status {status}"
    advice = "; the system sends signal 9 for want of memory: try a smaller batch" * (status == -9)
    print(
        f"No verdict: the process was ended with {how} before there was a report{advice}. Does the program, "
        "or a library of it, call os._exit?",
        file=sys.stderr,
    )
    return _CANNOT


def _judge(judge: Callable[[], int], file: Path) -> NoReturn:
    """What the child does. Threads and processes that the program left would keep Python from ending."""
    threading.Thread(target=_end_with, args=(os.getppid(),), daemon=True).start()
    status = command.status_of(judge, _CANNOT)
    file.touch()
    _end_now(int(status or 0))


def _end_with(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(1)
    _end_now(1)


def _end_now(status: int) -> NoReturn:
    """Ends this process and those that it started."""
    with contextlib.suppress(ValueError, OSError):
        sys.stdout.flush()
        sys.stderr.flush()
    for process in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.Error):
            process.kill()
    os._exit(status)
