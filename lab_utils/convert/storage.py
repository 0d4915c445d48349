"""Files on this machine or in a bucket, by the same few functions.

Local paths go straight to the operating system, which is faster than Beam's file systems and supports any
file name (Beam reads `[` and `*` in it as a pattern). Paths with a scheme, such as gs://bucket/photos, go
through Beam.
"""

import os
import posixpath
import shutil
from collections.abc import Iterable
from typing import TYPE_CHECKING, BinaryIO

from lab_utils.common.files import is_remote
from lab_utils.convert.errors import RejectError, StorageError
from lab_utils.convert.logs import quiet

if TYPE_CHECKING:
    from apache_beam.io.filesystem import FileSystem

_UNCOMPRESSED = "uncompressed"  # else Beam would unpack files by their extension


def _remote(path: str) -> "FileSystem":
    # Imported when needed: reading a local manifest should not wait two seconds for Beam.
    with quiet():
        from apache_beam.io.filesystems import FileSystems
    try:
        return FileSystems.get_filesystem(path)
    except ValueError:
        raise StorageError(
            f"cannot reach {path}: Beam has no file system for it here; give a local path, or one in a "
            "bucket (gs://, with apache-beam[gcp])"
        ) from None


def join(folder: str, name: str) -> str:
    """Returns the path of `name` in `folder`; `name` itself where it is absolute or has a scheme."""
    if is_remote(name):
        return name
    return posixpath.join(folder, name) if is_remote(folder) else os.path.join(folder, name)


def parent(path: str) -> str:
    """Returns the folder that holds the path."""
    return posixpath.dirname(path) if is_remote(path) else os.path.dirname(os.path.abspath(path))


def open_to_read(path: str) -> BinaryIO:
    """Opens a file for reading its bytes as they are; raises OSError."""
    if is_remote(path):
        return _remote(path).open(path, compression_type=_UNCOMPRESSED)
    return open(path, "rb")


def open_to_write(path: str) -> BinaryIO:
    """Opens a file for writing; raises OSError."""
    if is_remote(path):
        return _remote(path).create(path, compression_type=_UNCOMPRESSED)
    return open(path, "wb")


def exists(path: str) -> bool:
    """Says whether there is a file or folder of this path."""
    return _remote(path).exists(path) if is_remote(path) else os.path.exists(path)


def size(path: str) -> int:
    """Returns the file's size in bytes; raises OSError where there is none."""
    return _remote(path).size(path) if is_remote(path) else os.path.getsize(path)


def make_folder(path: str, *, parents: bool = True) -> None:
    """Makes a folder, and those above it unless told not to; buckets have none, and need none."""
    if is_remote(path):
        return
    if parents:
        os.makedirs(path, exist_ok=True)
    else:
        os.mkdir(path)


def list_names(folder: str) -> set[str]:
    """Returns the names of the files and sub-folders in a folder; none where it does not exist."""
    if not is_remote(folder):
        return set(os.listdir(folder)) if os.path.lexists(folder) else set()
    prefix = folder.rstrip("/") + "/"
    entries = _remote(folder).match([prefix + "**"])[0].metadata_list
    return {entry.path.removeprefix(prefix).split("/")[0] for entry in entries}


def move(source: str, target: str, names: Iterable[str]) -> None:
    """Moves files of these names from one folder into another; they replace those that bear the same name."""
    old = [join(source, name) for name in names]
    new = [join(target, name) for name in names]
    if not is_remote(source):
        for old_path, new_path in zip(old, new, strict=True):
            os.replace(old_path, new_path)
    elif old:
        _remote(source).rename(old, new)


def remove_folder(folder: str) -> None:
    """Removes a folder and what is in it, if it is there."""
    if not is_remote(folder):
        shutil.rmtree(folder, ignore_errors=True)
    elif list_names(folder):
        _remote(folder).delete([folder.rstrip("/") + "/**"])


def read_image(path: str) -> bytes:
    """Returns the content of an image's file.

    Raises:
        RejectError: if there is none, or it cannot be read. Trouble with a bucket is raised as it comes
            instead, for another attempt.
    """
    if not is_remote(path) and os.path.exists(path) and not os.path.isfile(path):
        raise RejectError(f"not a file: {path}")  # a pipe would block the reader for ever
    try:
        with open_to_read(path) as file:
            return file.read()
    except (FileNotFoundError, NotADirectoryError):
        raise RejectError(f"file not found: {path}") from None
    except StorageError as error:
        raise RejectError(str(error)) from None
    except Exception as error:  # each file system has its own errors
        if not is_remote(path) and isinstance(error, OSError):
            raise RejectError(f"cannot be read ({error.strerror}): {path}") from None
        if is_remote(path) and not exists(path):
            raise RejectError(f"file not found: {path}") from None
        raise
