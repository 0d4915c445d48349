"""Ctrl-C and SIGTERM where no code could answer them: while a process starts, or garbage is collected.

What `python -m` starts has Ctrl-C held from `import lab_utils` on, and lets it come in `command.run`.
Processes that a command starts for itself never let it come: they end with the command.
"""

import contextlib
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from typing import Any

CTRL_C = (signal.SIGINT,)
ENDING = (signal.SIGINT, signal.SIGTERM)
_AGAIN_SECONDS = 0.1
_CAN_HOLD = hasattr(signal, "pthread_sigmask")  # not on Windows


@contextlib.contextmanager
def held_back() -> Iterator[None]:
    """Context manager for the start of a child, which begins with them held, too: see `let_come`.

    So the child is not forgotten between its start and the code that ends it, and does not end in a
    traceback because it was still importing.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ENDING) if _CAN_HOLD else None
    try:
        yield
    finally:
        if _CAN_HOLD:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)


def hold(numbers: Sequence[int] = ENDING) -> None:
    """From here on they wait."""
    if _CAN_HOLD:
        signal.pthread_sigmask(signal.SIG_BLOCK, numbers)


def let_come() -> None:
    """They come from here on, also one that was sent meanwhile."""
    if _CAN_HOLD:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDING)


def as_ctrl_c() -> None:
    """From here on SIGTERM and SIGHUP end this process as Ctrl-C does; nohup's SIGHUP stays ignored."""
    for number in (signal.SIGTERM, getattr(signal, "SIGHUP", signal.SIGTERM)):
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, _raise)


def _raise(number: int, frame: object) -> None:
    raise KeyboardInterrupt


def once_more(unraisable: Any) -> None:
    """For `sys.unraisablehook`: an interrupt that Python swallows, as in a destructor, comes again."""
    handlers = {number: signal.getsignal(number) for number in ENDING}
    heard = [number for number, handler in handlers.items() if callable(handler)]
    if not issubclass(unraisable.exc_type, KeyboardInterrupt) or not heard:
        sys.__unraisablehook__(unraisable)
        return
    to_main = threading.main_thread().ident, heard[0]
    again = threading.Timer(_AGAIN_SECONDS, signal.pthread_kill, to_main)
    again.daemon = True
    again.start()
