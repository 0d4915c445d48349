"""The images' bytes, from a disk or a bucket."""

import os
import stat

from lab_utils.convert import storage
from lab_utils.convert.errors import RejectError, StorageError

_LARGEST = 10**9  # bytes: the largest image that Pillow takes, uncompressed, has 0.7 GB


def read_image(path: str) -> bytes:
    """Returns the content of an image's file.

    Raises:
        RejectError: if there is none, or it cannot be read. Trouble with a bucket is raised as it comes
            instead, for another attempt.
    """
    try:
        return _read_remote(path) if storage.is_remote(path) else _read_local(path)
    except (FileNotFoundError, NotADirectoryError):
        raise RejectError(f"file not found: {path}") from None


def _read_remote(path: str) -> bytes:
    try:
        with storage.open_to_read(path) as file:
            return file.read()
    except StorageError as error:
        raise RejectError(str(error)) from None
    except Exception:  # each file system has its own errors
        if storage.exists(path):
            raise
        raise FileNotFoundError from None


def _read_local(path: str) -> bytes:
    try:
        # A pipe or a device would block the reader for ever.
        status = os.stat(path)
        if not stat.S_ISREG(status.st_mode):
            raise RejectError(f"not a file: {path}")
        if status.st_size > _LARGEST:
            raise RejectError(f"larger than {_LARGEST / 1e9:g} GB: photographs are not")
        with open(path, "rb") as file:
            return file.read()
    except (FileNotFoundError, NotADirectoryError):
        raise
    except OSError as error:
        raise RejectError(f"cannot be read ({error.strerror}): {path}") from None
