"""From an op, an exception or a function to the learner's own line. No TensorFlow is imported here."""

import functools
import inspect
import linecache
import os
import re
import sys
import sysconfig
import textwrap
import traceback
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

# Frames of these installed packages are never the learner's. Those of other installed packages may be
# (a model that was pip-installed), and are taken where nothing nearer is found. A folder of the
# learner's own may have any name: people keep their programs in folders called tensorflow or keras.
_FRAMEWORK = re.compile(
    r".*[/\\](site|dist)-packages[/\\](tensorflow|tf_keras|keras|tensorflow_estimator|absl|numpy|six"
    r"|jax|jaxlib|flax|optax|equinox|haiku|optree|tree|wrapt|IPython|ipykernel|traitlets|tornado|pluggy|_pytest|pytest|nbclient|jupyter_client)([/\\]|\.py$)"
    r"|.*[/\\]lab_utils[/\\]((dry_run|port|common)[/\\]|estimator\.py$)"
    r"|.*[/\\]__autograph_generated_file\w*\.py$"
)
# Where a learner's part is still open, a lab goes on with the course's solution, whose module has a name that
# begins so in place of a file: its lines are not to be printed.
SOLUTION = "the course's solution of "
LONGEST = 20_000  # characters of an exception's message that are looked at and kept
_CUT = " [...]"
# A layer of Keras of which no line is known, in place of a file.
LAYER = "layer "
_OWN = re.compile(r"[/\\]lab_utils[/\\]dry_run[/\\]")
_STANDARD_LIBRARY = tuple(
    os.path.realpath(sysconfig.get_path(name)) + os.sep for name in ("stdlib", "platstdlib")
)
_TRACEBACK = "Traceback (most recent call last):"
_AUTOGRAPH = "in user code:"
_FRAME_TEXT = re.compile(r'File "([^"]+)", line (\d+), in (\w+|<lambda>)')
_TERMINAL_CELL = re.compile(r"<ipython-input-\d+-\w+>")
_KERNEL_CELL = re.compile(r"[/\\]ipykernel_\d+[/\\]\d+\.py$")
try:
    START = Path.cwd()  # the folder that the person is in, wherever a program goes then
except FileNotFoundError:  # it has been removed: who needs it will say so
    START = Path()


@dataclass(frozen=True)
class Place:
    """A place in the learner's code; as text it is what a report shows.

    Attributes:
        file: path of the file, relative to START where it lies below it; or the notebook cell, as "cell
            In [5]". "" where no line of the learner's is known.
        line: from 1; None where `file` is "".
        column: from 1; None where Python does not tell it.
        function: the function that the line stands in; "" at the top level.
        code: the line itself, stripped; "" where the source cannot be read.
        op: the name of the TensorFlow op that the line made; "" for other places.
        text: what is known in place of a line, such as "the dataset" or "layer dense".
    """

    file: str = ""
    line: int | None = None
    column: int | None = None
    function: str = ""
    code: str = ""
    op: str = ""
    text: str = ""

    def __bool__(self) -> bool:
        return bool(self.file or self.op or self.text)

    @property
    def position(self) -> str:
        """File and line with the function, without the code: "model.py:41, in model_fn"."""
        if not self.file:
            return self.text or (f"op {self.op}" if self.op else "")
        separator = ", line " if self.file.startswith(("cell ", "a notebook cell")) else ":"
        position = f"{self.file}{separator}{self.line}"
        return f"{position}, in {self.function}" if self.function else position

    @property
    def source_line(self) -> "Place":
        """The same place without its op: two ops of one line have it in common."""
        return replace(self, op="") if self.file or self.text else self

    def __str__(self) -> str:
        words = f"{self.position}: `{self.code}`" if self.code else self.position
        return f"{words} (op {self.op})" if self.op and words != f"op {self.op}" else words


NOWHERE = Place()
Frame = traceback.FrameSummary  # the frames of TensorFlow's op tracebacks have the same attributes


def place(source: Any) -> Place:
    """Where `source` stands in the learner's code.

    An op: "model.py:41, in model_fn: `y = tf.gather(names, ids)` (op GatherV2)". An exception: the
    learner's innermost line on its way. A function: the line of its def. In a notebook "cell In [5],
    line 3" takes the file's place. With no such line it is the op's name, or NOWHERE for an exception.
    """
    file = source.filename or "" if isinstance(source, SyntaxError) else ""
    if os.path.isfile(file) and not is_installed(file):
        return place_of_line(file, source.lineno or 1)
    if isinstance(source, BaseException):
        return _of_frame(own_frame(_frames_of(source)))
    if isinstance(source, type) or inspect.isroutine(source) or not hasattr(source, "traceback"):
        return _of_function(source)
    return replace(_of_frame(own_frame(source.traceback)), op=source.name)


def place_of_line(file: str, line: int) -> Place:
    """A line of the learner's file; NOWHERE where `file` is ""."""
    return _of_frame(traceback.FrameSummary(file, line, "")) if file else NOWHERE


def place_of_stack(frames: Iterable[Frame]) -> Place:
    """The learner's innermost line of a stack; NOWHERE where there is none."""
    return _of_frame(own_frame(frames))


def own_frame(frames: Iterable[Frame]) -> Frame | None:
    """The learner's innermost frame among `frames` (outermost first); None where all are frameworks'.

    Frames up to and including the call of the dry run are ignored: the cause lies deeper in the stack.
    """
    frames = list(frames)
    called = next((n for n, frame in enumerate(frames) if _OWN.search(frame.filename)), -1)
    # A copy of six that is not installed raises again what others raised.
    ours = [
        frame
        for frame in frames[called + 1 :]
        if not _is_framework(frame.filename) and frame.name != "reraise"
    ]
    nearest = [frame for frame in ours if "site-packages" not in frame.filename]
    return (nearest or ours or [None])[-1]


def own_frames(error: BaseException) -> list[Frame]:
    """The learner's frames on the way of `error`, outermost first."""
    return [frame for frame in _frames_of(error) if not _is_framework(frame.filename)]


def told(error: BaseException) -> str:
    """Type and message of an exception; where AutoGraph and Keras wrapped it, the innermost alone."""
    text = uncoloured(f"{type(error).__name__}: {error}")
    text = re.split(r"\s*(?:Call arguments|Arguments) received by ", text)[0]
    text = re.sub(r"Exception encountered when calling .*?\)\.\s+", "", text)
    if _AUTOGRAPH not in text:
        return text
    lines = [line.strip() for line in text.splitlines()]
    kinds = [n for n, line in enumerate(lines) if re.match(r"[\w.]*(Error|Exception)\b.*: ", line)]
    return " ".join(filter(None, lines[kinds[-1] :]))


def uncoloured(text: str) -> str:
    """`text` without a terminal's colours, which Keras puts into its messages."""
    return re.sub(r"\x1b?\[[\d;]+m", "", text)


def shortened(text: str, width: int) -> str:
    """The text on one line of at most `width` characters, cut between two words where that leaves most of it.

    Only the beginning of a text of megabytes is looked at.
    """
    line = " ".join(text[:LONGEST].split())
    short = textwrap.shorten(line, width, placeholder=_CUT)
    if len(line) <= width or len(short) > width // 2:
        return short
    return line[: width - len(_CUT)] + _CUT


def without_stacks(error: BaseException) -> str:
    """The message of an exception without the stacks that TensorFlow puts before and after the reason."""
    text = re.split(r"\n *Original stack trace for ", uncoloured(str(error)[:LONGEST]))[0]
    text = re.split(r"\n *Node: .*\n|\n<stack traces unavailable>\n", text)[-1]
    return re.sub(r"\{\{function_node [^}]*\}\} ?", "", text)


def is_installed(filename: str) -> bool:
    """Whether a file is an installed package's, the standard library's or lab_utils': not the user's own."""
    path = os.path.realpath(filename)
    return _is_framework(filename) or "site-packages" in path or "dist-packages" in path


@functools.cache
def _is_framework(filename: str) -> bool:
    if filename.startswith("<"):
        return not _TERMINAL_CELL.match(filename)
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
    message = str(error)
    # What passed through a traced function, or through Python that a graph calls, has its frames only there.
    if _AUTOGRAPH in message or _TRACEBACK in message:
        for file, line, name in _FRAME_TEXT.findall(message):
            yield traceback.FrameSummary(file, int(line), name)
    if error.__cause__ is not None:
        yield from _frames_of(error.__cause__)


def _of_function(function: Callable) -> Place:
    while isinstance(function, functools.partial) or hasattr(function, "__wrapped__"):
        bound = isinstance(function, functools.partial)
        function = function.func if bound else inspect.unwrap(function)
    if not (inspect.isroutine(function) or inspect.isclass(function)):
        function = type(function).__call__
    code = getattr(function, "__code__", None)
    if code is None:
        return Place(text=getattr(function, "__qualname__", repr(function)))
    return _of_frame(traceback.FrameSummary(code.co_filename, code.co_firstlineno, code.co_name))


def _of_frame(frame: Frame | None) -> Place:
    if frame is None:
        return NOWHERE
    column = getattr(frame, "colno", None)  # of exceptions alone
    if frame.filename.startswith(SOLUTION):
        return Place(file=frame.filename, line=frame.lineno)
    if frame.filename.startswith(LAYER):
        return Place(text=frame.filename)
    path = Path(frame.filename)
    return Place(
        file=_cell(frame.filename)
        or str(path.relative_to(START) if path.is_relative_to(START) else path),
        line=frame.lineno,
        column=None if column is None else column + 1,
        # AutoGraph leaves out the name of a lambda
        function="" if frame.name in (None, "<module>") else frame.name,
        code=linecache.getline(frame.filename, frame.lineno).strip(),
    )


def _cell(filename: str) -> str:
    """The notebook cell whose code has this file name, as "cell In [5]"; "" if it is none.

    Its number is looked up by its code, as IPython 7, which Colab has, cannot be asked for it by the file.
    """
    kernel = bool(_KERNEL_CELL.search(filename))
    if not kernel and not _TERMINAL_CELL.match(filename):
        return ""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    code = "".join(linecache.getlines(filename)).rstrip("\n")
    executed = shell.history_manager.input_hist_parsed if shell and code else []
    number = next((n for n in range(len(executed) - 1, 0, -1) if executed[n] == code), None)
    return f"cell In [{number}]" if number else "a notebook cell" if kernel else ""
