"""Temporary folders, which the next run removes where a process was killed."""

import atexit
import contextlib
import glob
import os
import shutil
import tempfile
import time
from collections.abc import Iterator

import filelock

OWNER = "owner"  # a file in each folder, which its process holds locked
_PREFIX = "lab_utils-"
_NEW = 60  # seconds in which its process may not have locked it yet
_folders: list[str] = []  # this process's, once it has one


@contextlib.contextmanager
def folder() -> Iterator[str]:
    """Makes a temporary folder, and removes it on leaving; those of killed runs go now.

    Raises:
        OSError: it cannot be made.
    """
    for path in glob.glob(os.path.join(glob.escape(tempfile.gettempdir()), f"{_PREFIX}*")):
        if _is_dead(path):
            shutil.rmtree(path, ignore_errors=True)
    path = tempfile.mkdtemp(prefix=_PREFIX)
    lock = filelock.FileLock(os.path.join(path, OWNER))
    with contextlib.suppress(OSError):  # no locks here: then it stays where this process is killed
        lock.acquire()
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)
        with contextlib.suppress(OSError):  # a program that was run here may have closed it
            lock.release()


def use_process_folder() -> str:
    """Has all temporary files of this process and its children, from here on, in one folder; its path.

    It is removed when the process ends: what TensorFlow's AutoGraph, an Estimator without a model_dir or a
    child that is killed leave behind goes with it. Called again, it makes sure that the folder is there:
    some systems clear such places every few days.
    """
    if not _folders:
        stack = contextlib.ExitStack()
        _folders.append(stack.enter_context(folder()))
        os.environ["TMPDIR"] = tempfile.tempdir = _folders[0]
        process = os.getpid()
        atexit.register(lambda: stack.close() if os.getpid() == process else None)  # not of a fork
    os.makedirs(_folders[0], mode=0o700, exist_ok=True)
    return _folders[0]


def _is_dead(folder: str) -> bool:
    """Whether the process that made a folder has certainly ended: nobody holds the lock in it."""
    lock = filelock.FileLock(os.path.join(folder, OWNER), timeout=0)
    try:
        if time.time() - os.stat(lock.lock_file).st_mtime < _NEW:
            return False
        with lock:
            return True
    except (OSError, filelock.Timeout):
        return False
