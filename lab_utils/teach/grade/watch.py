"""Notices where a learner's code reaches for the grader: Python tells an audit hook what it does.

What is told is for a person to look at. Only the end of the grader itself is prevented.
"""

import os
import sys
import sysconfig
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

_ROOT = Path(__file__).parents[3]
_OURS = (str(_ROOT / "lab_utils") + os.sep, "<frozen lab_utils")
_PATHS = sysconfig.get_paths()
_LIBRARIES = tuple(
    {_PATHS[name] + os.sep for name in ("stdlib", "platstdlib", "purelib", "platlib")}
)
_SOLVED = tuple(str(_ROOT / part) + os.sep for part in ("lab_utils/check/solved", "solutions"))
_HOME = os.getcwd() + os.sep  # the worker's folder, which is deleted
_FRAMES = ("tb_frame", "f_code", "gi_frame", "cr_frame", "ag_frame")
_SAID = {
    "sys._getframe": "looks at the frames of the running process",
    "sys._current_frames": "looks at the frames of the running process",
    "gc.get_objects": "searches the objects of the running process",
    "gc.get_referrers": "searches the objects of the running process",
    "sys.settrace": "follows what other code does",
    "sys.setprofile": "follows what other code does",
    "sys.addaudithook": "follows what other code does",
    "sys.monitoring.register_callback": "follows what other code does",
}


class Watch:
    """An audit hook; `at` says what is being run. Each thing is told once for a cell or a check."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        self.at = "lab"
        self._tell, self._told = tell, set()
        self._grader = {os.getppid(), -os.getpgid(os.getppid()), -1}  # as os.kill takes them
        self._busy = threading.local()
        sys.addaudithook(self._noticed)

    def _noticed(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event not in _EVENTS or getattr(self._busy, "now", False):
            return
        self._busy.now = True  # what follows looks at frames itself
        try:
            said = _said(event, arguments)
            if said and _by_learner(sys._getframe(1), event):
                self._say(said)
                if event in _ENDING and _ENDING[event] * arguments[0] in self._grader:
                    raise PermissionError("the grader cannot be ended from here")
        finally:
            self._busy.now = False

    def _say(self, said: str) -> None:
        if (self.at, said) not in self._told:
            self._told.add((self.at, said))
            self._tell(f"{self.at} {said}")


_ENDING = {"os.kill": 1, "os.killpg": -1}
# Noticed also where libraries stand between: a file that json, pathlib or runpy opens.
_HERE = ("127.", "localhost", "::1")  # a server of the learner's own
_FILES = ("open", "os.remove", "os.rename", "os.rmdir", "shutil.rmtree")
_THROUGH = (*_FILES, "socket.connect", *_ENDING)
_EVENTS = {*_SAID, *_THROUGH, "object.__getattr__", "object.__setattr__"}


def _said(event: str, arguments: tuple[Any, ...]) -> str:
    if event in _SAID:
        return _SAID[event]
    if event == "object.__getattr__":
        return _SAID["sys._getframe"] if arguments[1] in _FRAMES else ""
    if event == "object.__setattr__":
        return "replaces the code of a function" if arguments[1] == "__code__" else ""
    if event == "socket.connect":
        address = arguments[1]
        away = isinstance(address, tuple) and not str(address[0]).startswith(_HERE)
        return f"asks {address[0]}, over the network" if away else ""
    if event in _ENDING:
        return "sends signals to processes"
    return _of_file(event, arguments)


def _of_file(event: str, arguments: tuple[Any, ...]) -> str:
    path = os.fsdecode(arguments[0]) if isinstance(arguments[0], str | bytes) else ""
    place = os.path.abspath(path)
    if not path:  # a descriptor
        return ""
    if event == "open":
        if place.startswith(_SOLVED):
            return "reads our solutions"
        mode, flags = arguments[1:3]
        writes = flags & (os.O_WRONLY | os.O_RDWR) if mode is None else set(mode) & set("wax+")
        if not writes:
            return ""
    own = (_HOME, os.path.realpath(_HOME) + os.sep, "/dev/", "/proc/")
    return "" if place.startswith(own) or "__pycache__" in place else f"changes {place}"


def _by_learner(frame: Any, event: str) -> bool:
    """Whether the code at `frame`, in which an event happened, is a learner's.

    Python's own library may stand between in what passes `_THROUGH`. Other packages have files of their own.
    `inspect` gives frames to whom asks it.
    """
    while frame is not None:
        file = frame.f_code.co_filename
        if file.startswith(_OURS):
            return False
        if not file.startswith((*_LIBRARIES, "<frozen ")):
            return True
        if event in _FILES and f"-packages{os.sep}" in file:
            return False
        if event not in _THROUGH and frame.f_globals.get("__name__") != "inspect":
            return False
        frame = frame.f_back
    return False
