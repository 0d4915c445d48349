"""A dry run that comes no further for some seconds says where it is."""

import sys
import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager

from lab_utils.common.notices import in_notebook
from lab_utils.common.source import place_of_stack

SECONDS = 10  # without progress; then after twice as long each time


@contextmanager
def reported(activity: str) -> Iterator[None]:
    """Context manager: after `SECONDS` at one line of the learner's, the standard error has a line on it.

    Not in a notebook, where the line of progress ticks, and a cell's outputs stay.
    """
    if in_notebook():
        yield
        return
    main, done = threading.main_thread().ident, threading.Event()

    def watch() -> None:
        before, seconds, limit = None, 0.0, SECONDS
        while not done.wait(SECONDS):
            frame = sys._current_frames().get(main)
            place = place_of_stack(traceback.extract_stack(frame)).position
            seconds, limit = (seconds + SECONDS, limit) if place == before else (SECONDS, SECONDS)
            before = place
            if seconds >= limit:
                where = f" at {place}" if place else ""
                print(f"Still {activity} ({seconds:.0f} s{where})", file=sys.stderr, flush=True)
                limit *= 2

    threading.Thread(target=watch, daemon=True).start()
    try:
        yield
    finally:
        done.set()
