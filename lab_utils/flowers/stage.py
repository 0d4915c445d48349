"""A stage of the job: a module in a process of its own, which ends when the job's process ends.

`python -m lab_utils.flowers.stage MODULE ARGUMENTS` is `python -m MODULE ARGUMENTS`, but for that end.
"""

import os
import runpy
import signal
import subprocess
import sys
import threading
import time

import psutil

from lab_utils.common import interrupts

# glibc keeps an arena of freed memory a thread; with two, training holds about a tenth less.
ENVIRONMENT = {"MALLOC_ARENA_MAX": "2"}
GRACE = 5  # seconds that a stage has to clean up


def run(module: str, *arguments: object, lock: int = 0) -> int:
    """Runs a stage to its end; returns its exit status.

    Whatever ends this process, SIGKILL included, ends the stage within some seconds. Until then the stage
    holds the lock whose descriptor is `lock`.
    """
    command = [sys.executable, "-m", "lab_utils.flowers.stage", module, *map(str, arguments)]
    child = None
    try:
        child = subprocess.Popen(
            command,
            env=os.environ | ENVIRONMENT,
            stdin=subprocess.PIPE,  # never written to: its end tells the stage to end
            pass_fds=[lock] if lock > 0 else [],
        )
        return child.wait()
    finally:
        if child:
            _end(child)


def _end(child: subprocess.Popen) -> None:
    child.stdin.close()
    try:
        child.wait(2 * GRACE)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()


def _end_with_job(pipe: int) -> None:
    """Waits for the job's end; then this process may clean up, and ends."""
    while os.read(pipe, 1):
        pass
    signal.pthread_kill(threading.main_thread().ident, signal.SIGTERM)
    time.sleep(GRACE)
    for process in psutil.Process().children(recursive=True):
        process.kill()
    os._exit(1)


def _interrupt(number: int, frame: object) -> None:
    """Ends the stage as Ctrl-C would. Several reasons may come together: the first one counts."""
    # Not SIG_IGN: Python has a traceback for one that has come already.
    for each in interrupts.ENDING:
        signal.signal(each, lambda *_: None)
    raise KeyboardInterrupt


def main() -> int:
    """Runs the module that the command line names, as `python -m` would."""
    signal.signal(signal.SIGTERM, _interrupt)
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # ignored in the background
        signal.signal(signal.SIGINT, _interrupt)
    pipe = os.dup(0)
    with open(os.devnull) as nothing:
        os.dup2(nothing.fileno(), 0)
    threading.Thread(target=_end_with_job, args=(pipe,), daemon=True).start()
    sys.argv = sys.argv[1:]
    try:
        runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
    except KeyboardInterrupt:  # where the module did not hear it
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
