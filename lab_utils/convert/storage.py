"""Files on this machine or in a bucket, by the same few functions.

Local paths go straight to the operating system, which is faster than Beam's file systems and takes any
file name (Beam reads `[` and `*` in it as a pattern). Paths with a scheme, such as gs://bucket/photos, go
through Beam.
"""

import os
import posixpath
import shutil
from collections.abc import Iterable
from typing import TYPE_CHECKING, BinaryIO

from lab_utils.convert.errors import ConversionError
from lab_utils.convert.logs import quiet

if TYPE_CHECKING:
    from apache_beam.io.filesystem import FileSystem

_UNCOMPRESSED = "uncompressed"  # else Beam would unpack files by their extension


def is_remote(path: str) -> bool:
    """Say whether the path has a scheme (gs://, s3:// ...) and so belongs to one of Beam's file systems."""
    return "://" in path


def _remote(path: str) -> "FileSystem":
    # Imported when needed: reading a local manifest should not wait two seconds for Beam.
    with quiet():
        from apache_beam.io.filesystems import FileSystems

    try:
        return FileSystems.get_filesystem(path)
    except ValueError:
        raise ConversionError(
            f"cannot reach {path}: Beam lacks what it needs for this kind of path; "
            "for gs:// install apache-beam[gcp]"
        ) from None


def join(folder: str, name: str) -> str:
    """Return the path of `name` in `folder`; `name` itself where it is absolute or has a scheme."""
    if is_remote(name):
        return name
    return posixpath.join(folder, name) if is_remote(folder) else os.path.join(folder, name)


def parent(path: str) -> str:
    """Return the folder that holds the path."""
    return posixpath.dirname(path) if is_remote(path) else os.path.dirname(os.path.abspath(path))


def open_to_read(path: str) -> BinaryIO:
    """Open a file for reading its bytes as they are; raises OSError."""
    if is_remote(path):
        return _remote(path).open(path, compression_type=_UNCOMPRESSED)
    return open(path, "rb")


def open_to_write(path: str) -> BinaryIO:
    """Open a file for writing; raises OSError."""
    if is_remote(path):
        return _remote(path).create(path, compression_type=_UNCOMPRESSED)
    return open(path, "wb")


def exists(path: str) -> bool:
    """Say whether there is a file or folder of this path."""
    return _remote(path).exists(path) if is_remote(path) else os.path.exists(path)


def size(path: str) -> int:
    """Return the file's size in bytes; raises OSError where there is none."""
    return _remote(path).size(path) if is_remote(path) else os.path.getsize(path)


def make_folder(path: str) -> None:
    """Make a folder and those above it; buckets have none, and need none."""
    if not is_remote(path):
        os.makedirs(path, exist_ok=True)


def list_names(folder: str) -> set[str]:
    """Return the names of the files and sub-folders in a folder; none where it does not exist."""
    if not is_remote(folder):
        return set(os.listdir(folder)) if os.path.exists(folder) else set()
    prefix = folder.rstrip("/") + "/"
    found = _remote(folder).match([prefix + "**"])[0].metadata_list
    return {entry.path.removeprefix(prefix).split("/")[0] for entry in found}


def move(source: str, target: str, names: Iterable[str]) -> None:
    """Move files of these names from one folder into another; they replace those that bear the same name."""
    old = [join(source, name) for name in names]
    new = [join(target, name) for name in names]
    if not is_remote(source):
        for old_path, new_path in zip(old, new, strict=True):
            os.replace(old_path, new_path)
    elif old:
        _remote(source).rename(old, new)


def remove_folder(folder: str) -> None:
    """Remove a folder and what is in it, if it is there."""
    if not is_remote(folder):
        shutil.rmtree(folder, ignore_errors=True)
    elif list_names(folder):
        _remote(folder).delete([folder.rstrip("/") + "/**"])
