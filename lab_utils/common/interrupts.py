"""Ctrl-C and SIGTERM: held back while native code is imported, and SIGTERM heard as Ctrl-C."""

import contextlib
import signal
from collections.abc import Iterator

# What asks a command to end; Windows has no SIGHUP.
NUMBERS = [
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
]


@contextlib.contextmanager
def held_back() -> Iterator[None]:
    """Context manager: both wait until it is left.

    For an import that an interrupt would end in an abort, or that would swallow it.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT, signal.SIGTERM))
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def as_ctrl_c() -> None:
    """From here on SIGTERM and SIGHUP end this process as Ctrl-C does; nohup's SIGHUP stays ignored."""
    for number in NUMBERS:
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, signal.default_int_handler)
