"""The code of a program: a Python file, or a notebook's cells as if run from the first to the last.

A notebook that Colab saved as a Python file keeps lines such as `!pip install`: it is read as one cell.
"""

import importlib.util
import linecache
import os
import re
import shlex
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from types import CodeType
from typing import Any

_AROUND_A_CELL = re.compile(r"\A(?:\s*%%(?:time|capture)\b.*\n)+")  # the rest is Python
_EMPTY_LINES = re.compile(r"\A(?:[ \t]*\n)+")
_LONG_MAGIC = re.compile(r"^[ \t]*[!%](?:.*\\\n)+.*", re.M)
_OF_JUPYTER = re.compile(r"^[ \t]*(\w+[ \t]*=[ \t]*)?[!%][ \t]*\w|^\s*get_ipython\(\)\.", re.M)
_PYTHON = re.compile(
    r"\bpython[\d.]*\s+(?:-u\s+)?(?:-m\s+(?!pip\b|venv\b|ensurepip\b)[\w.]+|[\w./-]+\.py\b).*"
)


class CannotJudge(BaseException):
    """A program cannot be judged so; the message says why, and what to do.

    No Exception: AutoGraph would put the program's whole stack into its message.
    """


def code_of(path: Path) -> Iterator[CodeType]:
    """The compiled code of the program, a notebook's cell by cell.

    Raises:
        CannotJudge: the .ipynb file is not a notebook.
        ImportError: nbformat or IPython is not installed.
        SyntaxError: it is not Python, or in an encoding that it does not declare.
    """
    for name, text in texts(path):
        python = as_python(text, name) if needs_jupyter(path) else text
        code = compile(python, name, "exec", dont_inherit=True)
        if needs_jupyter(path):  # tracebacks, places and AutoGraph read a line of the cell here
            linecache.cache[name] = (len(python), None, python.splitlines(keepends=True), name)
        yield code


def texts(path: Path) -> Iterator[tuple[str, str]]:
    """The name and the text of the program, or of each of its cells; see `code_of` for what it raises."""
    if path.suffix == ".ipynb":
        for number, (kind, source) in enumerate(_cells(path), 1):
            if kind == "code":
                yield f"{path}[cell {number}]", source
        return
    try:  # compile() passes over bytes in comments with which `python file.py` does not start
        yield str(path), importlib.util.decode_source(path.read_bytes())
    except (SyntaxError, UnicodeDecodeError) as error:
        line = path.read_bytes()[: getattr(error, "start", 0)].count(b"\n") + 1
        message = f"{error}: save the file as UTF-8, or declare its encoding"
        raise SyntaxError(message, (str(path), line, 1, "")) from None


def python_program(command: str) -> str:
    """The first program of Python that a shell's command runs, as in `python a.py`; "" if none, or pip."""
    program = _PYTHON.search(command)
    return f"`{program[0].strip()}`" if program else ""


def needs_jupyter(path: Path) -> bool:
    """Whether a program needs get_ipython() and display(): a notebook does, and the export of one."""
    return path.suffix == ".ipynb" or bool(_OF_JUPYTER.search(path.read_text(errors="replace")))


def _cells(path: Path) -> list[tuple[str, str]]:
    """Kind and text of each cell."""
    import nbformat

    try:
        cells = nbformat.read(path, as_version=4).cells
        return [(cell.cell_type, cell.source.replace("\r\n", "\n")) for cell in cells]
    except Exception:  # whatever it raises for a file that is something else
        raise CannotJudge(
            f"{path} is not a Jupyter notebook, or is damaged: save it again in Jupyter"
        ) from None


def as_python(text: str, name: str) -> str:
    """The text of a cell as Python, each line with the number that it has; magics are read by IPython.

    Raises:
        SyntaxError: it is not what Jupyter understands.
    """
    python = _AROUND_A_CELL.sub(lambda magics: "\n" * magics[0].count("\n"), text)
    try:
        compile(python, name, "exec", dont_inherit=True)
    except SyntaxError:
        from IPython.core.inputtransformer2 import TransformerManager

        body = _EMPTY_LINES.sub("", python)
        before = python[: len(python) - len(body)].count("\n")  # IPython drops empty lines
        lines = _LONG_MAGIC.sub(_on_one_line, body)
        try:
            python = "\n" * before + TransformerManager().transform_cell(lines)
        except SyntaxError as error:  # of tokens, which have no file
            error.filename, error.lineno = name, (error.lineno or 1) + before
            raise
    return python


def _on_one_line(magic: re.Match) -> str:
    r"""!pip install a \ and the lines behind it, with as many empty ones after it: numbers stay."""
    lines = magic.group().split("\\\n")
    return " ".join(lines) + "\n" * (len(lines) - 1)


class Shell:
    """In place of IPython's: what a magic does in Python is done, no other program is started.

    What `%%writefile` writes goes into a temporary folder, from which modules are imported first.

    Attributes:
        program: the last program of Python that a shell would have run; "" for none.
    """

    def __init__(self, namespace: dict[str, Any]) -> None:
        self._namespace, self._folder = namespace, ""
        self.program = ""

    def run_line_magic(self, name: str, line: str = "", *_: Any, **__: Any) -> None:
        """%time, %env, %set_env and %cd; others mean nothing here."""
        if name == "time":
            exec(line, self._namespace)
        elif name in ("env", "set_env") and (pair := re.match(r"(\w+)[= ]\s*(.*)", line)):
            os.environ[pair[1]] = pair[2]
        elif name == "cd" and line:
            os.chdir(os.path.expanduser(line.strip("'\" ")))

    def run_cell_magic(self, name: str, line: str, body: str) -> None:
        """%%writefile writes a file aside; %%bash is looked at; others mean nothing."""
        if name == "writefile":
            if not self._folder:
                self._folder = tempfile.mkdtemp(prefix="writefile-")
                sys.path.insert(0, self._folder)
            *options, file = shlex.split(line)
            path = Path(self._folder, Path(file).name)
            with open(path, "a" if "-a" in options else "w") as out:
                out.write(body)
        elif name in ("bash", "sh"):
            self.system(body)

    def system(self, command: str) -> None:
        """`!python task.py`: no shell is asked."""
        self.program = python_program(command) or self.program

    def getoutput(self, command: str, *_: Any, **__: Any) -> list[str]:
        """`files = !ls`: no shell is asked."""
        self.system(command)
        return []

    def __getattr__(self, name: str) -> Callable:
        return lambda *_, **__: None
