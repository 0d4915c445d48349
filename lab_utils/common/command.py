"""How each command of this package ends, also where its output has no reader or no room."""

import errno
import os
import sys
from collections.abc import Callable
from typing import NoReturn

from lab_utils.common import interrupts

_READER_GONE, _INTERRUPTED = 141, 130  # 128 and the number of SIGPIPE, of SIGINT
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EROFS)
# What parts of the course import, and the extra of pyproject.toml that brings it.
_EXTRAS = {
    "apache_beam": "convert",
    "dask": "cluster",
    "distributed": "cluster",
    "jax": "dry-run",
    "jinja2": "author",
    "libcst": "dry-run",
    "matplotlib": "course",
    "nbclient": "author",
    "nbformat": "author",
    "sklearn": "course",
    "tensorflow": "cpu",
    "tf_keras": "cpu",
}


def run(main: Callable[[], int], cannot: int = 1) -> NoReturn:
    """Ends this process with the status of a command; see `status_of`."""
    if sys.unraisablehook is sys.__unraisablehook__:  # a stage of the job has its own
        sys.unraisablehook = interrupts.once_more
    sys.exit(status_of(main, cannot))


def status_of(main: Callable[[], int], cannot: int = 1) -> int | str | None:
    """The status that a command ends with, SystemExit's own included, once its output is written.

    It is 141 where the output's reader has gone, as in `| head`, and 130 after Ctrl-C: as a shell has it.
    It is `cannot` where a package is missing, or there is no room to write, no memory or no thread; a
    sentence says so.
    """
    _open_closed_streams()
    try:
        try:
            interrupts.let_come()
            status = main()
        except SystemExit as end:
            status = end.code
        sys.stdout.flush()
        return status
    except BrokenPipeError:
        _drop_output()
        return _READER_GONE
    except Exception as error:
        if not (told := _lacking(error)):
            raise
        if getattr(error, "filename", "") is None and error.errno in _NO_ROOM:
            _drop_output()  # perhaps it is the output that has no room
        print(told, file=sys.stderr)
        return cannot
    except KeyboardInterrupt:
        print("\ninterrupted", file=sys.stderr)
        return _INTERRUPTED


def _lacking(error: Exception) -> str:
    """What this machine lacks for the command, and what to do; "" for other errors."""
    if isinstance(error, OSError):
        return _room(error)
    if isinstance(error, ModuleNotFoundError):
        return told if (told := missing(error)) != str(error) else ""
    no_thread = isinstance(error, RuntimeError) and "can't start new thread" in str(error)
    if no_thread or isinstance(error, MemoryError):
        return (
            "The system refused memory or a thread to this process: see `ulimit -a`, and what else "
            "runs here"
        )
    return ""


def _room(error: OSError) -> str:
    """What to do where there is no room to write; "" for other errors."""
    if "No usable temporary directory" in str(error):
        return f"{error.strerror}: set TMPDIR to a folder that can be written"
    if isinstance(error, FileNotFoundError) and error.filename is None and _folder_is_gone():
        return "The folder where this was started is not there any more: go to one that is"
    if error.errno not in _NO_ROOM:
        return ""
    if error.filename is None:
        return f"{error.strerror}: the output, or a temporary file, cannot be written"
    return f"{error.filename}: {error.strerror}. Make room there, or set TMPDIR if it is a temporary file"


def _folder_is_gone() -> bool:
    try:
        os.getcwd()
    except FileNotFoundError:
        return True
    return False


def missing(error: ImportError) -> str:
    """What to install where a package of an extra is missing; the error's own text for others."""
    package = (error.name or "").partition(".")[0]
    if not isinstance(error, ModuleNotFoundError) or package not in _EXTRAS:
        return str(error)
    return (
        f"{package} is not installed. The course's extra brings it: in a clone, "
        f"pip install '.[{_EXTRAS[package]}]'"
    )


def _open_closed_streams() -> None:
    """Opens standard streams that are closed, as by `>&-`.

    The next file that is opened would have their number, and get what native code prints.
    """
    for number, (name, mode) in enumerate((("stdin", "r"), ("stdout", "w"), ("stderr", "w"))):
        try:
            os.fstat(number)
        except OSError:
            opened = os.open(os.devnull, os.O_RDWR)  # the lowest number that is free
            if opened != number:
                os.dup2(opened, number)
                os.close(opened)
            setattr(sys, name, os.fdopen(number, mode, closefd=False))


def _drop_output() -> None:
    """Lets what is still buffered go nowhere: Python would try again when it ends."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
