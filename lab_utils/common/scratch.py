"""Temporary folders, which the next run removes where a process was killed."""

import atexit
import contextlib
import glob
import os
import shutil
import tempfile
from collections.abc import Iterator

from lab_utils.common import leases

_PREFIX = "lab_utils-"
_folders: list[str] = []  # this process's, once it has one


@contextlib.contextmanager
def folder(prefix: str = _PREFIX, parent: str | os.PathLike[str] | None = None) -> Iterator[str]:
    """Makes a temporary folder, and removes it on leaving; those of killed runs go now.

    Args:
        prefix: of its name.
        parent: where it is made; in the system's place for temporary files otherwise.

    Raises:
        OSError: it cannot be made.
    """
    remove_dead(prefix, parent)
    path = tempfile.mkdtemp(prefix=prefix, dir=parent)
    with leases.owned(path):
        try:
            yield path
        finally:
            shutil.rmtree(path, ignore_errors=True)


def of_process() -> str:
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


def remove_dead(prefix: str = _PREFIX, parent: str | os.PathLike[str] | None = None) -> list[str]:
    """Removes the temporary folders of runs that were killed on this machine; returns their paths."""
    place = tempfile.gettempdir() if parent is None else os.fspath(parent)
    pattern = os.path.join(glob.escape(place), glob.escape(prefix) + "*")
    dead = [path for path in glob.glob(pattern) if leases.is_dead(path)]
    for path in dead:
        shutil.rmtree(path, ignore_errors=True)
    return dead
