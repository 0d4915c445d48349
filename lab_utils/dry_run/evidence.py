"""What a run of a program read of this machine, or the reason why that cannot be told.

Python tells of what it opens and lists (audit events), `os.stat` and its like are watched, and
private/reading.py tells of what TensorFlow reads. Each file and folder is noted by its state. What could
have been read otherwise is a doubt: time, sockets, other processes, libraries that read files by themselves
(doubts.py), a file that is younger than the run. Evidence with a doubt proves nothing.
"""

import functools
import glob
import hashlib
import os
import re
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from stat import S_ISDIR
from typing import Any
from unittest import mock

from lab_utils.dry_run import cache, doubts
from lab_utils.dry_run.private import process

_SLACK = 2.0  # seconds; the coarsest clock of a file system
_MOST = 50_000  # files and names
ABSENT = "absent"
_stat, _lstat = os.stat, os.lstat

_EVENTS = re.compile(
    r"socket\.(connect|getaddrinfo|gethostby|sendto)|subprocess\.Popen|os\.(system|exec|posix_spawn|fork)"
    r"|sqlite3\.connect|urllib\.Request|builtins\.input|pty\.spawn"
)


def state(path: str) -> str:
    """Size, times and number of a file, or that there is none. The time of change cannot be set by hand."""
    try:
        found = _stat(path)
    except (OSError, ValueError):
        return ABSENT
    if S_ISDIR(found.st_mode):
        return f"folder {found.st_dev} {found.st_ino}"
    return f"{found.st_size} {found.st_mtime_ns} {found.st_ctime_ns} {found.st_dev} {found.st_ino}"


def _there(path: str) -> bool:
    try:
        _lstat(path)
    except (OSError, ValueError):
        return False
    return True


def listing(folder: str, without: frozenset[str] = frozenset(), modules: bool = False) -> str:
    """A digest of the names in a folder; with `modules`, of those alone that Python could import."""
    try:
        with os.scandir(folder) as entries:
            names = sorted(
                f"{entry.name}{'/' * entry.is_dir()}"
                for entry in entries
                if entry.name != "__pycache__" and os.path.join(folder, entry.name) not in without
            )
    except OSError:
        return ABSENT
    if modules:
        names = [
            each for each in names if re.search(r"(/|\.py[co]?|\.so|\.pth|\.zip|\.egg)$", each)
        ]
    return hashlib.sha256(os.fsencode("\n".join(names))).hexdigest()


def matched(pattern: str) -> list[str] | None:
    """The files that a pattern of TensorFlow's or Python's may match; None where that cannot be told."""
    folder, name = os.path.split(pattern)
    if glob.has_magic(folder) or re.search(r"[{}\\]|\*\*", pattern):
        return None
    return sorted(glob.glob(os.path.join(glob.escape(folder), name), include_hidden=True))


@dataclass
class Evidence:
    """States of what was read; `doubts` say why that may not be all.

    Attributes:
        files: path -> state at the end.
        folders: path -> listing at the end.
        modules: path -> listing of what can be imported, for the folders in which Python looks.
        patterns: pattern -> the files that it matches.
        without: files that the dry run itself writes.
    """

    without: frozenset[str] = frozenset()
    files: dict[str, str] = field(default_factory=dict)
    folders: dict[str, str] = field(default_factory=dict)
    modules: dict[str, str] = field(default_factory=dict)
    patterns: dict[str, list[str]] = field(default_factory=dict)
    doubts: list[str] = field(default_factory=list)
    _began: float = field(default_factory=time.time)
    _there: dict[str, bool] = field(default_factory=dict)  # at the first look
    _own: set[str] = field(default_factory=set)  # temporary folders of this run
    _kept: tuple[str, ...] = ()  # what an earlier dry run worked out is as good as doing it again

    def read(self, path: Any) -> None:
        """Notes that a file was looked at."""
        if not isinstance(path, str | bytes | os.PathLike):
            return  # a descriptor, which was opened before
        name = os.path.abspath(os.fsdecode(os.fspath(path)))
        if name in self._there or self._left_out(name):
            return
        self._there[name] = _there(name)
        if len(self._there) > _MOST:
            self.doubts.append(f"more than {_MOST:,} files and names")

    def listed(self, path: Any) -> None:
        """Notes that a folder was listed."""
        if isinstance(path, int):
            return  # a descriptor
        name = os.path.abspath(os.fsdecode(path if path is not None else "."))
        if not self._left_out(name):
            self.folders.setdefault(name, listing(name, self.without))

    def searched(self, pattern: str) -> None:
        """Notes that a pattern was looked for."""
        if re.match(r"[a-z0-9]+://", pattern):
            self.doubts.append(f"{pattern} lies elsewhere")
        elif (found := matched(pattern)) is None:
            self.doubts.append(f"the pattern {pattern}")
        else:
            self.patterns.setdefault(pattern, found)
            for each in found:
                self.read(each)

    def event(self, name: str, arguments: tuple) -> None:
        """An audit event of Python's."""
        if name == "open":
            path, mode, flags = arguments
            if not (isinstance(mode, str) and mode[:1] in "wx") and not (
                mode is None and isinstance(flags, int) and flags & os.O_ACCMODE == os.O_WRONLY
            ):
                self.read(path)
        elif name in ("os.listdir", "os.scandir"):
            self.listed(arguments[0])
        elif name in ("tempfile.mkdtemp", "tempfile.mkstemp"):
            self._own.add(os.path.abspath(arguments[0]))
        elif name == "os.mkdir" and not self._is_own(os.path.abspath(os.fsdecode(arguments[0]))):
            self.read(arguments[0])
        elif _EVENTS.match(name) and not _is_child(name, arguments):
            self.doubts.append(f"{name} {str(arguments)[:100]}")

    def finished(self) -> "Evidence":
        """Itself, with the states at the end; a file that changed meanwhile is a doubt."""
        _busy.now = True  # our own looks are none of the program's
        self._finish()
        _busy.now = False
        return self

    def _finish(self) -> None:
        for path, at_start in list(self.modules.items()):
            if listing(path, modules=True) != at_start:
                self.doubts.append(f"{path} has changed meanwhile")
        for path in [*sys.path, *sys.path_importer_cache]:
            folder = os.path.abspath(path or ".")
            if folder not in self.modules and not doubts.is_inner(folder):
                self.modules[folder] = listing(folder, modules=True)
                self._doubt_new_modules(folder)
        for path, at_start in self.folders.items():
            if listing(path, self.without) != at_start:
                self.doubts.append(f"{path} has changed meanwhile")
        for pattern, at_start in self.patterns.items():
            if matched(pattern) != at_start:
                self.doubts.append(f"other files match {pattern} than before")
        programs = (".py", ".ipynb")
        opened = {path for path, there in self._there.items() if there and path.endswith(programs)}
        for path in sorted(opened | doubts.code_files()):
            self.read(path)
            if doubts.is_users(path) and not self._is_own(path):
                self.doubts += doubts.of_code(path)
        self.doubts += doubts.unknown_packages()
        for path, was_there in self._there.items():
            self.files[path] = state(path)
            if _there(path) != was_there or self._is_young(path):
                self.doubts.append(f"{path} has changed meanwhile")

    def begin(self) -> None:
        """Takes the folders in which Python looks for modules, as they are before the program runs."""
        self._kept = tuple(str(place) for place in cache.places())
        for path in sys.path:
            folder = os.path.abspath(path or ".")
            self.modules[folder] = listing(folder, modules=True)

    def _left_out(self, path: str) -> bool:
        return (
            path.startswith(("/proc/", "/sys/", *self._kept))
            or path in ("/dev/null", "/dev/urandom", "/dev/tty", *self.without)
            or "__pycache__" in path.split(os.sep)
            or self._is_own(path)
        )

    def _is_own(self, path: str) -> bool:
        return any(path == own or path.startswith(own + os.sep) for own in self._own)

    def _is_young(self, path: str) -> bool:
        try:
            found, link = _stat(path), _lstat(path)
        except OSError:
            return False
        if S_ISDIR(found.st_mode):
            return False
        newest = max(found.st_ctime, found.st_mtime, link.st_ctime)
        return newest > self._began - _SLACK

    def _doubt_new_modules(self, folder: str) -> None:
        for path in glob.glob(os.path.join(glob.escape(folder), "*.py")):
            if self._is_young(path):
                self.doubts.append(f"{path} is new")


def unchanged(kept: dict[str, Any], without: frozenset[str]) -> bool:
    """Whether all that evidence, as `kept` in a file, names is as it was."""
    return (
        all(state(path) == was for path, was in kept["files"].items())
        and all(listing(path, without) == was for path, was in kept["folders"].items())
        and all(listing(path, modules=True) == was for path, was in kept["modules"].items())
        and all(matched(pattern) == was for pattern, was in kept["patterns"].items())
    )


_gathering: list[Evidence] = []  # at most one
_busy = threading.local()


@contextmanager
def gathering(without: frozenset[str] = frozenset(), scratch: str = "") -> Iterator[Evidence]:
    """Context manager: what Python reads from here on is noted, but for the folder `scratch`."""
    evidence = Evidence(without, _own={scratch} - {""})
    evidence.begin()
    _install()
    _gathering.append(evidence)
    with ExitStack() as stack:
        stack.callback(_gathering.clear)
        for name in ("stat", "lstat", "access", "readlink"):
            original = getattr(os, name)
            watched = _watched(original)
            stack.enter_context(mock.patch.object(os, name, watched))
            for able in (os.supports_fd, os.supports_dir_fd, os.supports_follow_symlinks):
                if original in able:
                    able.add(watched)
        yield evidence


@functools.cache
def _install() -> None:
    def hook(name: str, arguments: tuple) -> None:
        if not _gathering or name.partition(".")[0] not in _SOURCES or getattr(_busy, "now", False):
            return
        # Where Python looks for modules is noted by what could be imported there.
        if name == "os.listdir" and "importlib" in sys._getframe(1).f_code.co_filename:
            return
        _busy.now = True
        try:
            _gathering[0].event(name, arguments)
        finally:
            _busy.now = False

    sys.addaudithook(hook)  # it cannot be taken away again


_SOURCES = {
    "open",
    "os",
    "tempfile",
    "socket",
    "subprocess",
    "sqlite3",
    "urllib",
    "builtins",
    "pty",
}


def _watched(original: Any) -> Any:
    @functools.wraps(original)
    def watched(path: Any, *arguments: Any, **options: Any) -> Any:
        if _gathering and options.get("dir_fd") is None and not getattr(_busy, "now", False):
            _gathering[0].read(path)
        return original(path, *arguments, **options)

    return watched


def _is_child(name: str, arguments: tuple) -> bool:
    """Whether it starts a process of ours, or asks which processor this is, as Python's platform does."""
    started = list(map(str, arguments[1])) if name == "subprocess.Popen" else []
    return process.CHILD in started or started == ["uname", "-p"]
