"""How each command of this package begins and ends, also where its output has no reader or no room."""

import errno
import os
import sys
from collections.abc import Callable
from typing import NoReturn

from lab_utils.common import interrupts

_READER_GONE, _INTERRUPTED = 141, 130  # 128 and the number of SIGPIPE, of SIGINT
_CANNOT_WRITE = (
    *(errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EROFS),
    errno.EBADF,  # a program that was run here has closed it
)
# What parts of the course import, and its extras bring.
_BY_EXTRAS = "apache_beam jax matplotlib nbclient nbformat sklearn tensorflow tf_keras"
_closed: set[str] = set()  # of the standard streams, when the command began


def begin() -> None:
    """Makes the standard streams fit to write to, before a command writes anything.

    One that is closed (`>&-`) leads nowhere from here on: Python has None in its place, and the next file to
    be opened would get its number. What an output's encoding lacks is replaced.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            _closed.add(name)
            number = os.open(os.devnull, os.O_RDWR)  # the lowest that is free: its own
            os.set_inheritable(number, True)
            stream = os.fdopen(number, mode, encoding="utf-8", closefd=False)
            setattr(sys, name, stream)
            setattr(sys, f"__{name}__", stream)
    if hasattr(sys.stdout, "reconfigure"):  # the standard error replaces by itself
        sys.stdout.reconfigure(errors="replace")


def has_output() -> bool:
    """Whether the standard output was open when this command began."""
    return "stdout" not in _closed


def run(main: Callable[[], int], cannot: int = 1) -> NoReturn:
    """Ends this process with the status of a command; see `status_of`.

    SIGTERM and SIGHUP end it as Ctrl-C does: what is done is kept, and what is half done is taken away.
    """
    interrupts.as_ctrl_c()
    sys.exit(status_of(main, cannot))


def status_of(main: Callable[[], int], cannot: int = 1) -> int | str | None:
    """The status that a command ends with, SystemExit's own included, once its output is written.

    It is 141 where the output's reader has gone, as in `| head`, and 130 after Ctrl-C: as a shell has it.
    It is `cannot` where a package or the current folder is missing, a file cannot be used, or there is no
    room to write; a sentence says so.
    """
    begin()
    try:
        try:
            status = main()
        except SystemExit as end:
            status = end.code
        sys.stdout.flush()
        return status
    except BrokenPipeError:
        _drop_output()
        return _READER_GONE
    except Exception as error:
        if not (message := _lacking(error)):
            raise
        if getattr(error, "filename", "") is None and error.errno in _CANNOT_WRITE:
            _drop_output()  # perhaps it is the output that has no room
        print(message, file=sys.stderr)
        return cannot
    except KeyboardInterrupt:
        print("\ninterrupted", file=sys.stderr)
        return _INTERRUPTED


def _lacking(error: Exception) -> str:
    """What this machine lacks for the command, and what to do; "" for other errors."""
    if isinstance(error, ModuleNotFoundError):
        return message if (message := missing(error)) != str(error) else ""
    if isinstance(error, FileNotFoundError) and not _has_folder():
        return "the current folder has been removed: change to another one with cd"
    if not isinstance(error, OSError) or not error.strerror:
        return ""
    no_room = error.errno in _CANNOT_WRITE
    if error.filename is None:
        lacking = f"{error.strerror}: the output, or a temporary file, cannot be written"
        return lacking if no_room else ""
    remedy = "Give another path, or correct what is at this one"
    if no_room:
        remedy = "Make room there, or set TMPDIR if it is a temporary file"
    return f"{error.filename}: {error.strerror}. {remedy}"


def _has_folder() -> bool:
    """Whether the current folder is still there."""
    try:
        return bool(os.getcwd())
    except FileNotFoundError:
        return False


def missing(error: ImportError) -> str:
    """What to install where a package of an extra is missing; the error's own text for others."""
    if not isinstance(error, ModuleNotFoundError) or error.name not in _BY_EXTRAS.split():
        return str(error)  # also where the package is there, and lacks a module
    return (
        f"{error.name} is not installed. In a clone, run `make setup`, or pip install "
        "'.[course,author]' (and add cpu to this list if TensorFlow is missing)"
    )


def _drop_output() -> None:
    """Lets what is still buffered go nowhere: Python would try again when it ends."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
