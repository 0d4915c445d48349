"""A check that takes long shows that it is at work, and since when."""

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from lab_utils.runtime import CellLine, in_notebook

PATIENCE, TICK = 3.0, 1.0  # seconds before the first word, and between two
SILENCE = "LAB_UTILS_SILENT_CHECKS"  # set where notebooks are run to keep their outputs


@contextmanager
def shown(what: str) -> Iterator[None]:
    """Context manager: a line in the notebook's cell counts the seconds; it is gone afterwards."""
    if not in_notebook() or os.environ.get(SILENCE):
        yield
        return
    done, start = threading.Event(), time.monotonic()

    def tick() -> None:
        if done.wait(PATIENCE):
            return
        line = CellLine()
        line.write(f"{what}, {PATIENCE:.0f} s ...")
        while not done.wait(TICK):
            line.write(f"{what}, {time.monotonic() - start:.0f} s ...")
        line.write("")

    ticker = threading.Thread(target=tick, daemon=True)
    ticker.start()
    try:
        yield
    finally:
        done.set()
        ticker.join()
