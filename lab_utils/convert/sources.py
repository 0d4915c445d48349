"""The images' bytes, from a disk or a bucket."""

import os
import stat
import unicodedata
from collections.abc import Iterator
from typing import BinaryIO

from lab_utils.convert import habits, storage
from lab_utils.convert.errors import RejectError, StorageError

_LARGEST = 10**9  # bytes: the largest image that Pillow takes, uncompressed, has 0.7 GB


def read_first(paths: tuple[str, ...]) -> bytes:
    """Returns the content of the first of the files that exists.

    Letters with accents are looked for in both forms of Unicode: a list or a disk of macOS has another
    form than the rest of the world.

    Raises:
        RejectError: if none does, or it cannot be read. Trouble with a bucket is raised as it comes
            instead, for another attempt.
    """
    for path in _in_both_forms(paths):
        content = _read_remote(path) if storage.is_remote(path) else _read_local(path)
        if content is not None:
            return content
    raise RejectError(f"file not found: {paths[-1]}{habits.of_path(paths[-1])}")


def _in_both_forms(paths: tuple[str, ...]) -> Iterator[str]:
    yield from paths
    for path in paths:
        if not path.isascii():
            forms = (unicodedata.normalize(form, path) for form in ("NFC", "NFD"))
            yield from (form for form in forms if form not in paths)


def check_size(size: int) -> None:
    """Raises RejectError for a file of so many bytes that it can be no photograph."""
    if size > _LARGEST:
        raise RejectError(f"larger than {_LARGEST / 1e9:g} GB: photographs are not")


def _whole(file: BinaryIO) -> bytes:
    content = file.read(_LARGEST + 1)
    check_size(len(content))
    return content


def _read_remote(path: str) -> bytes | None:
    try:
        with storage.open_to_read(path) as file:
            return _whole(file)
    except StorageError as error:
        raise RejectError(str(error)) from None
    except Exception:  # each file system has its own errors
        if storage.exists(path):
            raise
        return None


def _read_local(path: str) -> bytes | None:
    try:
        # A pipe or a device would keep the reader for ever.
        found = os.stat(path)
        if not stat.S_ISREG(found.st_mode):
            raise RejectError(f"not a file: {path}")
        check_size(found.st_size)
        with open(path, "rb") as file:
            return _whole(file)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError) as error:  # ValueError: a zero byte in the name
        reason = getattr(error, "strerror", error)
        raise RejectError(f"cannot be read ({reason}): {path}") from None
