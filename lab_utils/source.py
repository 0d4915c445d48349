"""From an op, an exception or a function to the learner's own line. No TensorFlow is imported here."""

import functools
import inspect
import linecache
import os
import re
import sys
import sysconfig
import traceback
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Protocol

# Frames of these installed packages are never the learner's. Those of other installed packages may be
# (a model that was pip-installed), and are taken where nothing nearer is found. A folder of the
# learner's own may have any name: people keep their programs in folders called tensorflow or keras.
_FRAMEWORK = re.compile(
    r".*[/\\](site|dist)-packages[/\\](tensorflow|tf_keras|keras|tensorflow_estimator|absl|numpy|six"
    r"|IPython|ipykernel|traitlets|tornado|pluggy|_pytest|pytest|nbclient|jupyter_client)([/\\]|\.py$)"
    r"|.*[/\\]lab_utils[/\\](dry_run[/\\]|(estimator|source)\.py$)"
    r"|.*[/\\]__autograph_generated_file\w*\.py$"
)
_OWN = re.compile(r"[/\\]lab_utils[/\\]dry_run[/\\]")
_STANDARD_LIBRARY = tuple(
    os.path.realpath(sysconfig.get_path(name)) + os.sep for name in ("stdlib", "platstdlib")
)
_OLD_CELL = re.compile(r"<ipython-input-(\d+)-\w+>")
_KERNEL_CELL = re.compile(r"[/\\]ipykernel_\d+[/\\]\d+\.py$")


class Frame(Protocol):
    """A frame as traceback.FrameSummary and TensorFlow's op tracebacks have it."""

    filename: str
    lineno: int
    name: str


class _Op(Protocol):
    name: str
    traceback: Iterable[Frame]


def place(source: _Op | BaseException | Callable) -> str:
    """Where `source` stands in the learner's code, in words.

    An op: "model.py:41, in model_fn: `y = tf.gather(names, ids)` (op GatherV2)". An exception: the
    learner's innermost line on its way. A function: the line of its def. In a notebook "cell In [5],
    line 3" takes the file's place. With no such line it is the op's name, or "" for an exception.
    """
    if isinstance(source, BaseException):
        return _in_words(own_frame(_frames_of(source)))
    if isinstance(source, type) or inspect.isroutine(source) or not hasattr(source, "traceback"):
        return _of_function(source)
    line = _in_words(own_frame(source.traceback))
    return f"{line} (op {source.name})" if line else f"op {source.name}"


def place_of_line(file: str, line: int) -> str:
    """A line of the learner's file, in words."""
    return _in_words(traceback.FrameSummary(file, line, "", lookup_line=False)) if file else ""


def place_of_stack(frames: Iterable[Frame]) -> str:
    """The learner's innermost line of a stack, in words; "" where there is none."""
    return _in_words(own_frame(frames))


def own_frame(frames: Iterable[Frame]) -> Frame | None:
    """The learner's innermost frame among `frames` (outermost first); None where all are frameworks'.

    The learner's call of the dry run itself does not count: what an op has to do with came after it.
    """
    frames = list(frames)
    called = next((n for n, frame in enumerate(frames) if _OWN.search(frame.filename)), -1)
    frames = frames[called + 1 :]
    ours = [frame for frame in frames if not _is_framework(frame.filename)]
    nearest = [frame for frame in ours if "site-packages" not in frame.filename]
    return (nearest or ours or [None])[-1]


def own_frames(error: BaseException) -> list[Frame]:
    """The learner's frames on the way of `error`, outermost first."""
    return [frame for frame in _frames_of(error) if not _is_framework(frame.filename)]


@functools.cache
def _is_framework(filename: str) -> bool:
    if filename.startswith("<"):
        return _OLD_CELL.match(filename) is None
    if _KERNEL_CELL.search(filename):
        return False
    if _FRAMEWORK.match(filename):
        return True
    path = os.path.realpath(filename)
    return path.startswith(_STANDARD_LIBRARY) and "site-packages" not in path


def _frames_of(error: BaseException) -> Iterator[Frame]:
    """Frames of an exception and then of what caused it; AutoGraph's are those of the original code."""
    yield from traceback.extract_tb(error.__traceback__)
    converted = getattr(error, "ag_error_metadata", None)
    for frame in reversed(getattr(converted, "translated_stack", ())):
        yield traceback.FrameSummary(frame.filename, frame.lineno, frame.function_name)
    if error.__cause__ is not None:
        yield from _frames_of(error.__cause__)


def _of_function(function: Callable) -> str:
    while isinstance(function, functools.partial):
        function = function.func
    function = inspect.unwrap(function)
    if not (inspect.isroutine(function) or inspect.isclass(function)):
        function = type(function).__call__
    code = getattr(function, "__code__", None)
    if code is None:
        return getattr(function, "__qualname__", repr(function))
    return _in_words(traceback.FrameSummary(code.co_filename, code.co_firstlineno, code.co_name))


def _in_words(frame: Frame | None) -> str:
    if frame is None:
        return ""
    words = _file_and_line(frame)
    if frame.name and frame.name != "<module>":  # AutoGraph leaves out the name of a lambda
        words += f", in {frame.name}"
    text = linecache.getline(frame.filename, frame.lineno).strip()
    return f"{words}: `{text}`" if text else words


def _file_and_line(frame: Frame) -> str:
    cell = _cell(frame.filename)
    if cell:
        return f"{cell}, line {frame.lineno}"
    path = Path(frame.filename)
    return f"{path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path}:{frame.lineno}"


def _cell(filename: str) -> str:
    """The notebook cell whose code has this file name, as "cell In [5]"; "" if it is none."""
    old = _OLD_CELL.match(filename)
    if old:
        return f"cell In [{old[1]}]"
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    named = shell.compile.format_code_name(filename) if shell else None
    if named:
        return f"cell {re.sub(r'In *', 'In ', named[1])}"
    return "a notebook cell" if _KERNEL_CELL.search(filename) else ""
