"""A temporary folder of each run, in the system's place for such, that the next run removes if this dies."""

import contextlib
import glob
import os
import shutil
import tempfile
from collections.abc import Iterator

from lab_utils.convert import leases

_PREFIX = "lab_utils-convert-"


@contextlib.contextmanager
def folder() -> Iterator[str]:
    """Makes a temporary folder, and removes it on leaving."""
    path = tempfile.mkdtemp(prefix=_PREFIX)
    try:
        with leases.owned(path):
            yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


def remove_dead() -> list[str]:
    """Removes the temporary folders of runs that were killed on this machine; return their paths."""
    pattern = os.path.join(glob.escape(tempfile.gettempdir()), _PREFIX + "*")
    dead = [path for path in glob.glob(pattern) if leases.is_dead(path)]
    for path in dead:
        shutil.rmtree(path, ignore_errors=True)
    return dead
