"""A stage of the job: a module in a process of its own, which ends when the job's process ends.

`python -m lab_utils.flowers.stage MODULE ARGUMENTS` is `python -m MODULE ARGUMENTS`, but for that end.
"""

import _thread
import os
import runpy
import signal
import subprocess
import sys
import threading
import time

import psutil

# glibc keeps an arena of freed memory a thread; with two, training holds about a tenth less.
ENVIRONMENT = {"MALLOC_ARENA_MAX": "2"}
GRACE = 5  # seconds that a stage has to clean up


def run(module: str, *arguments: object, lock: int = -1) -> int:
    """Runs a stage to its end; returns its exit status.

    Whatever ends this process, SIGKILL included, ends the stage within some seconds. Until then the stage
    holds the lock whose descriptor is `lock`.
    """
    command = [sys.executable, "-m", "lab_utils.flowers.stage", module, *map(str, arguments)]
    child = subprocess.Popen(
        command,
        env=os.environ | ENVIRONMENT,
        stdin=subprocess.PIPE,  # never written to: its end tells the stage to end
        pass_fds=[lock] if lock >= 0 else [],
    )
    try:
        return child.wait()
    finally:
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
    _thread.interrupt_main()  # as Ctrl-C would
    time.sleep(GRACE)
    for process in psutil.Process().children(recursive=True):
        process.kill()
    os._exit(1)


def _interrupted(number: int, frame: object) -> None:
    """Ctrl-C reaches the job and its stage, and the job's end reaches the stage too: the first one counts."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    raise KeyboardInterrupt


def main() -> None:
    """Runs the module that the command line names, as `python -m` would."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # ignored in the background
        signal.signal(signal.SIGINT, _interrupted)
    pipe = os.dup(0)
    with open(os.devnull) as nothing:
        os.dup2(nothing.fileno(), 0)
    threading.Thread(target=_end_with_job, args=(pipe,), daemon=True).start()
    sys.argv = sys.argv[1:]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
