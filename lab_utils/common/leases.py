"""Locks that the kernel frees when a process dies, however it ends.

A folder that a run made for itself (its staging folder, its scratch folder) can be removed once that run is
certainly dead; and of two runs that end together, one publishes.
"""

import contextlib
import errno
import os
import platform
import time
from collections.abc import Iterator
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

OWNER = "owner"
_HELD = {errno.EWOULDBLOCK, errno.EACCES}
_RETRY = 0.1  # seconds


class Held(Exception):
    """Another process holds the lock."""


@contextlib.contextmanager
def locked(
    path: str | os.PathLike[str], wait: float = 0, flags: int = os.O_RDONLY
) -> Iterator[int]:
    """Context manager: holds the lock of a local file or folder.

    Args:
        path: it exists, or `flags` make it.
        wait: seconds to wait for another process.
        flags: to open it with.

    Yields:
        Its descriptor, which a child process may inherit to hold the lock too; 0 where the file system has no
        locks.

    Raises:
        Held: another process holds it.
        OSError: it cannot be opened.
    """
    descriptor = os.open(path, flags, 0o666)
    end = time.monotonic() + wait
    try:
        while (free := _lock(descriptor)) is False:
            if time.monotonic() >= end:
                raise Held(path)
            time.sleep(_RETRY)
        yield descriptor if free else 0
    finally:
        os.close(descriptor)


def _lock(descriptor: int) -> bool | None:
    """Whether this process has the lock now; None where there are no locks."""
    if fcntl is None:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    except OSError as error:
        return False if error.errno in _HELD else None


@contextlib.contextmanager
def owned(folder: str) -> Iterator[None]:
    """Context manager: marks a local folder as this process's own while it lives."""
    with locked(folder) as there:
        if there:  # the mark comes after the lock: who sees it can rely on the lock
            Path(folder, OWNER).write_text(_machine())
        yield


def is_dead(folder: str) -> bool:
    """Whether the owner of a local folder was a process of this machine that has certainly ended."""
    try:
        if Path(folder, OWNER).read_text() != _machine():
            return False
        with locked(folder) as there:
            return bool(there)
    except (OSError, Held):  # no mark, no rights, or alive
        return False


def _machine() -> str:
    """Names this machine since its last start: locks may be seen by its own processes only."""
    with contextlib.suppress(OSError):
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return platform.node()
