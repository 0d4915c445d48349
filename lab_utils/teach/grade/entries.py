"""The files of a class, also those in archives and in archives of archives. Nothing is unpacked to a disk."""

import contextlib
import io
import tarfile
import unicodedata
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

LARGEST = 256 * 2**20  # bytes of a notebook, with all that it shows
_LARGEST_ARCHIVE = 2**30
_MOST = 20_000  # members of an archive
_DEEPEST = 4  # archives in archives
_SYSTEM = {"__MACOSX", "node_modules", "__pycache__", "Thumbs.db", "desktop.ini"}
_TARS = (".tar", ".tgz", ".tar.gz", ".tar.bz2", ".tar.xz")
_OTHER_ARCHIVES = (".rar", ".7z", ".gz")
UNREAD = (
    "pdf",
    "png",
    "jpg",
    "jpeg",
    "gif",
    "mp4",
    "mov",
    "heic",
    "pptx",
    "xlsx",
    "csv",
    "tfrecord",
)


@dataclass(frozen=True)
class Entry:
    """A file: its place below the class's folder, an archive being a folder; `problem` if it is unreadable.

    An empty folder is an entry too, whose last part is "".
    """

    parts: tuple[str, ...]
    data: bytes = b""
    problem: str = ""


def entries(place: Path) -> Iterator[Entry]:
    """What a folder or an archive holds, in the order of names.

    Raises:
        OSError: the folder cannot be read.
    """
    if place.is_file():
        found = _opened((), place.read_bytes(), 0) if _kind(place.name) else None
        yield from found or ()
        return
    yield from _folder(place, ())


def _folder(folder: Path, above: tuple[str, ...]) -> Iterator[Entry]:
    paths = sorted(path for path in folder.iterdir() if _visible(path.name))
    if not paths:
        yield Entry((*above, ""))
    for path in paths:
        parts = (*above, _name(path.name))
        try:
            if path.is_dir() and not path.is_symlink():
                yield from _folder(path, parts)
            elif path.is_file() and (_wanted(path.name) or _kind(path.name)):
                size, most = path.stat().st_size, _LARGEST_ARCHIVE if _kind(path.name) else LARGEST
                yield from _file(parts, path.read_bytes() if size <= most else None, 0)
            elif path.is_file():
                yield Entry(parts)
        except OSError as error:
            yield Entry(parts, problem=f"cannot be opened: {error.strerror}")


def _file(parts: tuple[str, ...], data: bytes | None, depth: int) -> Iterator[Entry]:
    """A file as it is, or what an archive holds; `data` is None for what is too large."""
    if data is None:
        yield Entry(parts, problem=f"is larger than {LARGEST // 2**20} MiB")
    elif not _kind(parts[-1]):
        yield Entry(parts, data)
    elif depth == _DEEPEST:
        yield Entry(parts, problem="is an archive in archives: unpack it")
    else:
        yield from _opened(parts, data, depth)


def _opened(parts: tuple[str, ...], data: bytes, depth: int) -> Iterator[Entry]:
    inside = (*parts[:-1], _stem(parts[-1])) if parts else ()
    found = False
    try:
        read = _zipped if _kind(parts[-1] if parts else "zip.zip") == "zip" else _tarred
        if parts and _kind(parts[-1]) == "other":
            raise ValueError("is an archive that cannot be opened here: unpack it")
        for name, content in read(data):
            names = tuple(map(_name, PurePosixPath(name.replace("\\", "/")).parts))
            if names and all(map(_visible, names)):
                found = True
                yield from _file((*inside, *names), content, depth + 1)
        if not found:
            raise ValueError("is an empty archive")
    except (zipfile.BadZipFile, tarfile.TarError, zlib.error, EOFError, NotImplementedError):
        yield Entry(parts or ("archive",), problem="is a damaged archive: ask for it again")
    except RuntimeError:
        yield Entry(parts or ("archive",), problem="is an archive with a password: unpack it")
    except (ValueError, OSError) as error:
        yield Entry(parts or ("archive",), problem=str(error))


def _zipped(data: bytes) -> Iterator[tuple[str, bytes | None]]:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        if len(archive.infolist()) > _MOST:
            raise ValueError(f"holds more than {_MOST} files: unpack it")
        for info in archive.infolist():
            name = info.filename
            if not info.flag_bits & 0x800:  # not said to be UTF-8
                name = _as_written(name)
            if not info.is_dir():
                yield name, _content(name, info.file_size, lambda info=info: archive.read(info))


def _as_written(name: str) -> str:
    """A name that zipfile read as cp437, as macOS (UTF-8) and Western Windows (cp850) write it."""
    with contextlib.suppress(UnicodeEncodeError):  # it stood in the archive as Unicode too
        raw = name.encode("cp437")
        try:
            return raw.decode("utf-8")
        except UnicodeDecodeError:
            return raw.decode("cp850")
    return name


def _tarred(data: bytes) -> Iterator[tuple[str, bytes | None]]:
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        for number, member in enumerate(archive):
            if number > _MOST:
                raise ValueError(f"holds more than {_MOST} files: unpack it")
            if member.isfile():
                read = archive.extractfile(member).read
                yield member.name, _content(member.name, member.size, read)


def _content(name: str, size: int, read) -> bytes | None:
    if size > LARGEST:
        return None
    return read() if _wanted(name) or _kind(name) else b""


def _kind(name: str) -> str:
    """How an archive of this name is opened; "" for no archive."""
    name = name.lower()
    if name.endswith(".zip"):
        return "zip"
    if name.endswith(_TARS):
        return "tar"
    return "other" if name.endswith(_OTHER_ARCHIVES) else ""


def _stem(name: str) -> str:
    ending = next((e for e in (".zip", *_TARS) if name.lower().endswith(e)), "")
    return name[: len(name) - len(ending)]


def _wanted(name: str) -> bool:
    return name.rpartition(".")[2].lower() not in UNREAD


def _visible(name: str) -> bool:
    return not name.startswith(".") and name not in _SYSTEM


def _name(name: str) -> str:
    """One spelling of each letter: macOS writes é as two signs."""
    return unicodedata.normalize("NFC", name)
