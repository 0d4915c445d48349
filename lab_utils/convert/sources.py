"""The images' bytes, from a disk or a bucket."""

import os
import stat

from lab_utils.convert import storage
from lab_utils.convert.errors import RejectError, StorageError


def read_first(paths: tuple[str, ...]) -> bytes:
    """Returns the content of the first of the files that exists.

    Raises:
        RejectError: if none does, or it cannot be read. Trouble with a bucket is raised as it comes
            instead, for another attempt.
    """
    for path in paths:
        content = _read_remote(path) if storage.is_remote(path) else _read_local(path)
        if content is not None:
            return content
    raise RejectError(f"file not found: {paths[-1]}")


def _read_remote(path: str) -> bytes | None:
    try:
        with storage.open_to_read(path) as file:
            return file.read()
    except StorageError as error:
        raise RejectError(str(error)) from None
    except Exception:  # each file system has its own errors
        if storage.exists(path):
            raise
        return None


def _read_local(path: str) -> bytes | None:
    try:
        # A pipe or a device would keep the reader for ever.
        if not stat.S_ISREG(os.stat(path).st_mode):
            raise RejectError(f"not a file: {path}")
        with open(path, "rb") as file:
            return file.read()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError) as error:  # ValueError: a zero byte in the name
        reason = getattr(error, "strerror", error)
        raise RejectError(f"cannot be read ({reason}): {path}") from None
