"""The processes in which notebooks are run: their folder, what the kernel holds them to, their end."""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
from typing import Any

import psutil

from lab_utils.check import life
from lab_utils.dry_run import cache

# The worker's folder stands for each: the grader's own may be named already.
_FOLDERS = ("HOME", "TMPDIR", "IPYTHONDIR", "XDG_STATE_HOME", "XDG_CACHE_HOME", "KERAS_HOME")
_MOST_PROCESSES = 4096  # and threads, beside those of the machine when it starts
_LARGEST_FILE = 2**30  # bytes that a learner's code may write into one file


def start(home: str, descriptor: int, job: dict[str, Any]) -> subprocess.Popen:
    """A worker in `home`, which is its folder, its home and its temporary folder."""
    kept = {name: value for name, value in os.environ.items() if name != "NBGRADER_EXECUTION"}
    own = dict.fromkeys(_FOLDERS, home)
    # What the grader has compiled need not be compiled again.
    with contextlib.suppress(OSError):  # a user without a home has no cache
        own[cache.SHARED] = str(cache.folder().parents[1])
    quiet = {"MPLBACKEND": "Agg", life.SILENCE: "1", "TF_CPP_MIN_LOG_LEVEL": "3"}
    worker = subprocess.Popen(
        [sys.executable, "-P", "-m", "lab_utils.teach.grade.worker", str(descriptor)],
        cwd=home,
        env=kept | own | quiet,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        pass_fds=[descriptor],
        start_new_session=True,
    )
    with contextlib.suppress(OSError):  # ended at once, or limits that nobody may set
        _limit(worker.pid)
    with contextlib.suppress(OSError):  # ended at once
        worker.stdin.write(json.dumps(job).encode())
        worker.stdin.close()
    return worker


def _limit(pid: int) -> None:
    """What the kernel holds a process to: the size of files, and the number of a user's processes.

    It goes first where memory is short. The number is not kept for root.
    """
    if sys.platform == "linux":
        import resource

        with open("/proc/loadavg") as file:
            running = int(re.search(r"/(\d+)", file.read())[1])  # threads count, too
        limits = {
            resource.RLIMIT_FSIZE: _LARGEST_FILE,
            resource.RLIMIT_NPROC: running + _MOST_PROCESSES,
        }
        for limit, wanted in limits.items():
            _, most = resource.getrlimit(limit)
            most = wanted if most == resource.RLIM_INFINITY else min(wanted, most)
            resource.prlimit(pid, limit, (most, most))
        with open(f"/proc/{pid}/oom_score_adj", "w") as file:
            file.write("1000")


def memory(pid: int) -> int:
    """Bytes that a process and its children hold."""
    total = 0
    with contextlib.suppress(psutil.Error):
        process = psutil.Process(pid)
        for each in (process, *process.children(recursive=True)):
            with contextlib.suppress(psutil.Error):
                total += each.memory_info().rss
    return total


def end(worker: subprocess.Popen, home: str) -> None:
    """Ends a worker and all that it has started; `home` tells those that have left its tree."""
    with contextlib.suppress(psutil.Error):
        for child in psutil.Process(worker.pid).children(recursive=True):
            with contextlib.suppress(psutil.Error):
                child.kill()
    with contextlib.suppress(OSError):
        os.killpg(worker.pid, signal.SIGKILL)
    worker.wait()
    own = (home, os.path.realpath(home))
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            if process.cwd() in own or process.environ().get("HOME", "") in own:
                process.kill()
