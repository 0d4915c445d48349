"""Who works in a folder: found out through the kernel, which frees the locks of a process that died.

Two uses: a folder that a run made for itself (its staging folder, its scratch folder) can be removed once
that run is certainly dead; and of two runs that end together, one publishes.
"""

import contextlib
import errno
import os
import platform
from collections.abc import Iterator
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

OWNER = "owner"
# A network file system may have no locks, or none on folders.
_NO_LOCKS = {
    errno.EBADF,
    errno.EINVAL,
    errno.ENOLCK,
    errno.ENOSYS,
    errno.ENOTSUP,
    errno.EOPNOTSUPP,
}


def _machine() -> str:
    """Names this machine since its last start: locks are seen by its own processes alone."""
    with contextlib.suppress(OSError):
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return platform.node()


class Held(Exception):
    """Another process holds the folder."""


@contextlib.contextmanager
def locked(folder: str | os.PathLike[str], wait: bool = False) -> Iterator[bool]:
    """Holds the lock of a local folder; yields False where its file system has no locks.

    Raises:
        Held: at once, if another holds it and this is not to wait.
    """
    if fcntl is None:
        yield False
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
            there = True
        except BlockingIOError:
            raise Held(folder) from None
        except OSError as error:
            if error.errno not in _NO_LOCKS:
                raise
            there = False
        yield there
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def owned(folder: str) -> Iterator[None]:
    """Marks a local folder as this process's own while it lives."""
    with locked(folder) as there:
        if there:  # the mark comes after the lock: who sees it can rely on the lock
            Path(folder, OWNER).write_text(_machine())
        yield


def is_dead(folder: str) -> bool:
    """Says whether the owner of a local folder was a process of this machine that has certainly ended."""
    try:
        if Path(folder, OWNER).read_text() != _machine():
            return False
        with locked(folder) as there:
            return there
    except (OSError, Held):  # no mark, no rights, or alive
        return False
