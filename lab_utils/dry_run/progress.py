"""What a dry run is doing, for how long, and at which of the learner's lines."""

import shutil
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from lab_utils.common.notices import CellLine, in_notebook
from lab_utils.common.source import place_of_stack

_TICK = 0.5  # seconds
SECONDS = 10  # to the first line in a log; to the next one twice as many each time


@contextmanager
def progress(
    activity: str, found: Callable[[], str] = lambda: ""
) -> Iterator[Callable[[str], None]]:
    """Context manager: says what goes on; yields a function that changes the words.

    In a notebook and on a terminal one line ticks, and is gone afterwards; in a notebook what `found` tells
    stands below it, such as the findings so far. Elsewhere, as in the log of a CI, only what takes long has a
    line on the standard error.
    """
    main, over, start = threading.main_thread().ident, threading.Event(), time.monotonic()
    words, terminal = [activity], sys.stderr.isatty()
    live = in_notebook() or terminal
    cell = CellLine() if in_notebook() else None

    def write(text: str) -> None:
        if cell:
            cell.write(text)
        elif terminal:
            width = shutil.get_terminal_size().columns - 1
            print(f"\r\033[K{text[:width]}", end="", file=sys.stderr, flush=True)
        elif text:
            print(text, file=sys.stderr, flush=True)

    def tick() -> None:
        seconds = _TICK if live else SECONDS
        while not over.wait(seconds):
            place = place_of_stack(traceback.extract_stack(sys._current_frames().get(main)))
            where = f", at {place.position}" if place else ""
            line = f"Dry run: {words[0]} ({time.monotonic() - start:.0f} s{where})"
            write(f"{line}\n{found()}" if cell else line)
            seconds *= 1 if live else 2

    ticker = threading.Thread(target=tick, daemon=True)
    ticker.start()
    try:
        yield lambda what: words.__setitem__(0, what)
    finally:
        over.set()
        ticker.join()
        write("")
