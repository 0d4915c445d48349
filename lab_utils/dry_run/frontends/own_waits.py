"""A program waits for what nobody makes in a dry run: its sleeps end at once, and its waiting ends."""

import asyncio
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

PATIENCE = 60  # seconds from a call of the Estimator to the next
_MOST_SLEEPS = 20  # of a second or more, none of which is slept


class Enough(BaseException):
    """Ends the program: it repeats its calls, or waits for what they would have made."""


@contextmanager
def cut_short() -> Iterator[Callable[[], None]]:
    """Context manager: long sleeps of the program end at once, and raise Enough where they go on and on.

    Yields:
        A function to call at each call of an Estimator: the program is ended by Enough `PATIENCE` seconds
        after the last one, unless it uses the alarm itself.
    """
    counted = _Counted()
    in_main = threading.current_thread() is threading.main_thread()
    watched = in_main and os.name != "nt" and signal.getsignal(signal.SIGALRM) == signal.SIG_DFL
    with (
        mock.patch.object(time, "sleep", counted.sleep),
        mock.patch.object(asyncio, "sleep", counted.sleep_async),
    ):
        if not watched:
            yield lambda: None
            return
        signal.signal(signal.SIGALRM, _end)
        try:
            yield _wait_on
        finally:
            if signal.getsignal(signal.SIGALRM) is _end:
                signal.setitimer(signal.ITIMER_REAL, 0)
            else:  # the program's own
                signal.alarm(0)
            signal.signal(signal.SIGALRM, signal.SIG_DFL)


def _wait_on() -> None:
    if signal.getsignal(signal.SIGALRM) is _end:
        signal.setitimer(signal.ITIMER_REAL, PATIENCE)


def _end(number: int, frame: Any) -> None:
    raise Enough(f"it made no other call within {PATIENCE} s")


class _Counted:
    """Sleeps that are counted, and not slept where they are long."""

    def __init__(self) -> None:
        self._real, self._real_async, self._count = time.sleep, asyncio.sleep, 0

    def sleep(self, seconds: float) -> None:
        """As time.sleep."""
        if seconds < 1 or threading.current_thread() is not threading.main_thread():
            return self._real(seconds)
        self._note()

    async def sleep_async(self, delay: float, result: Any = None) -> Any:
        """As asyncio.sleep."""
        if delay < 1:
            return await self._real_async(delay, result)
        self._note()
        return await self._real_async(0, result)

    def _note(self) -> None:
        self._count += 1
        if self._count > _MOST_SLEEPS:
            raise Enough
