"""Ctrl-C and SIGTERM: held back while native code is imported, and SIGTERM heard as Ctrl-C."""

import contextlib
import signal
import threading
from collections.abc import Iterator

# What asks a command to end; Windows has no SIGHUP.
NUMBERS = [
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
]


@contextlib.contextmanager
def held_back() -> Iterator[None]:
    """Context manager: both wait until it is left.

    For an import that an interrupt would end in an abort, or that would swallow it. To block them in this
    thread would not do: another thread would take them, and Python interrupts the main one all the same.
    """
    heard: list[int] = []
    before = {}
    if threading.current_thread() is threading.main_thread():  # no other one is interrupted
        for number in (signal.SIGINT, signal.SIGTERM):
            if signal.getsignal(number) is not None:  # None: native code handles it
                before[number] = signal.signal(number, lambda number, _: heard.append(number))
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        for number in heard:
            signal.raise_signal(number)


def as_ctrl_c() -> None:
    """From here on SIGTERM and SIGHUP end this process as Ctrl-C does; nohup's SIGHUP stays ignored."""
    for number in NUMBERS:
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, signal.default_int_handler)
