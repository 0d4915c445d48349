"""A dry run that comes no further for some seconds says where it is."""

import sys
import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager

from lab_utils.common.notices import in_notebook
from lab_utils.common.source import place_of_stack

SECONDS = 10  # to the first line; then twice as many each time


@contextmanager
def reported(activity: str) -> Iterator[None]:
    """Context manager: after `SECONDS`, and ever more of them, the standard error has the learner's line.

    Not in a notebook, where the line of progress ticks, and a cell's outputs stay.
    """
    if in_notebook():
        yield
        return
    main, done = threading.main_thread().ident, threading.Event()

    def watch() -> None:
        seconds, waited = SECONDS, 0
        while not done.wait(seconds):
            seconds, waited = 2 * seconds, waited + seconds
            frame = sys._current_frames().get(main)
            place = place_of_stack(traceback.extract_stack(frame)).position
            where = f" at {place}" if place else ""
            print(f"Still {activity} ({waited:.0f} s{where})", file=sys.stderr, flush=True)

    threading.Thread(target=watch, daemon=True).start()
    try:
        yield
    finally:
        done.set()
