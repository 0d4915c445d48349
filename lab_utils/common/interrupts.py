"""Ctrl-C and SIGTERM: held back while native code is imported, and SIGTERM heard as Ctrl-C."""

import contextlib
import signal
from collections.abc import Iterator

ENDING = (signal.SIGINT, signal.SIGTERM)
_CAN_HOLD = hasattr(signal, "pthread_sigmask")  # not on Windows


@contextlib.contextmanager
def held_back() -> Iterator[None]:
    """Context manager: both wait until it is left.

    For an import that an interrupt would end in an abort, or that would swallow it.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ENDING) if _CAN_HOLD else None
    try:
        yield
    finally:
        if _CAN_HOLD:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)


def as_ctrl_c() -> None:
    """From here on SIGTERM and SIGHUP end this process as Ctrl-C does; nohup's SIGHUP stays ignored."""
    for number in (signal.SIGTERM, getattr(signal, "SIGHUP", signal.SIGTERM)):
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, _raise)


def _raise(number: int, frame: object) -> None:
    raise KeyboardInterrupt
