"""What a dry run is doing, on one line: the stage, what goes on in it, and the time, which keeps ticking."""

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from tqdm import tqdm

from lab_utils.runtime import CellLine, in_notebook

_TICK_SECONDS = 0.5


class Progress:
    """A progress bar over the stages; it shows itself on a terminal or in a notebook only."""

    def __init__(self, stages: int, shown: bool = True) -> None:
        notebook = in_notebook()
        shown = shown and (notebook or sys.stderr.isatty())
        self._bar = tqdm(
            total=stages,
            disable=not shown,
            file=CellLine() if shown and notebook else sys.stderr,
            leave=False,
            bar_format="{desc} {bar:16} {n_fmt} of {total_fmt} stages done, {elapsed}{postfix}",
        )

    @contextmanager
    def running(self) -> Iterator[None]:
        """Context manager: the time ticks, also while a stage says nothing; the line is gone afterwards."""
        done = threading.Event()

        def tick() -> None:
            while not done.wait(_TICK_SECONDS):
                self._bar.refresh()

        ticker = threading.Thread(target=tick, daemon=True)
        ticker.start()
        try:
            yield
        finally:
            done.set()
            ticker.join()
            self._bar.close()

    def begin(self, stage: str) -> None:
        """A stage begins."""
        self._bar.set_description_str(f"Dry run: {stage:<8}", refresh=False)
        self._bar.set_postfix_str("")

    def say(self, what: str) -> None:
        """What the stage is doing now."""
        self._bar.set_postfix_str(what)

    def end(self) -> None:
        """The stage is over."""
        self._bar.update()
