"""The files that a program writes on its way to its training: they are its own, and stay; they are told."""

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT
_SHOWN = 3
# Of the contexts that are open: the folder, that of temporary files, and paths. The hook asks for neither:
# what it raised would be raised by the program's open().
_noted: list[tuple[str, str, dict[str, None]]] = []
_hooked: list[bool] = []


@contextmanager
def noted() -> Iterator[dict[str, None]]:
    """Context manager: gives the files below this folder that Python code opens for writing, in their order.

    What native code writes, such as TensorFlow's, Python is not told of. Temporary files are left out.
    """
    if not _hooked:  # a hook stays for good
        sys.addaudithook(_hear)
        _hooked.append(True)
    paths: dict[str, None] = {}
    context = (os.getcwd() + os.sep, tempfile.gettempdir() + os.sep, paths)
    _noted.append(context)
    try:
        yield paths
    finally:
        _noted.remove(context)
        for path in [each for each in paths if not os.path.isfile(context[0] + each)]:
            del paths[path]


def told(paths: dict[str, None]) -> str:
    """A sentence on the files; "" where there are none."""
    names = list(paths)
    if not names:
        return ""
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return f"It wrote files of its own, which stay: {', '.join(names[:_SHOWN])}{more}."


def _hear(event: str, arguments: tuple[Any, ...]) -> None:
    if not _noted or event != "open":
        return
    path, _, flags = arguments
    if not isinstance(path, str | bytes) or not isinstance(flags, int) or not flags & _WRITING:
        return
    for folder, temporary, paths in _noted:
        name = os.path.join(folder, os.fsdecode(path))
        if name.startswith(folder) and not name.startswith(temporary) and "__pycache__" not in name:
            paths[name.removeprefix(folder)] = None
