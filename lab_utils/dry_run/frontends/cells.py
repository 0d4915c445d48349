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

_RUNS_ITS_CELL = re.compile(r"\s*%%(time|capture|prun)\b.*")  # the rest is Python of the notebook
_CONTINUED = re.compile(r"^[ \t]*(?:\w+[ \t]*=[ \t]*)?[!%](?:.*\\\n)+.*", re.M)
_MAGIC = re.compile(r"^[ \t]*(\w+[ \t]*=[ \t]*)?[!%][ \t]*\w|^\s*get_ipython\(\)\.", re.M)
_STARTED = re.compile(
    r"\bpython[\d.]*\s+(?:-u\s+)?(?:-m\s+(?!pip\b|venv\b|ensurepip\b)[\w.]+|[\w./-]+\.py\b).*"
)


class NotANotebook(Exception):
    """An .ipynb file that holds no notebook, or one that cannot be run here."""


def code_of(path: Path) -> Iterator[CodeType]:
    """The compiled code of the program, a notebook's cell by cell.

    Raises:
        NotANotebook: the .ipynb file is not a notebook, or nbformat or IPython is not installed.
        SyntaxError: it is not Python, or Python would not read its encoding.
    """
    if path.suffix != ".ipynb":
        yield _compiled(_decoded(path), str(path))
        return
    for number, cell in enumerate(_cells(path), 1):
        if cell.cell_type == "code":
            yield _compiled(cell.source.replace("\r\n", "\n"), f"{path}[cell {number}]")


def python_program(command: str) -> str:
    """The first program of Python that a shell's command runs, as in `python a.py`; "" if none, or pip."""
    found = _STARTED.search(command)
    return f"`{found[0].strip()}`" if found else ""


def is_of_jupyter(path: Path) -> bool:
    """Whether a program finds get_ipython() and display(): in a notebook, or the export of one."""
    return path.suffix == ".ipynb" or bool(_MAGIC.search(path.read_text(errors="replace")))


def _decoded(path: Path) -> str:
    """The text of a file of Python. Raises SyntaxError as Python does when it is started."""
    data = path.read_bytes()
    try:
        return importlib.util.decode_source(data)
    except (UnicodeDecodeError, SyntaxError):
        try:
            data.decode()
        except UnicodeDecodeError as error:
            line, byte = data.count(b"\n", 0, error.start) + 1, data[error.start : error.start + 1]
            raise SyntaxError(
                f"Non-UTF-8 code starting with {str(byte)[1:]} in file {path} on line {line}, but no "
                "encoding declared; see https://peps.python.org/pep-0263/ for details"
            ) from None
        raise


def _cells(path: Path) -> list[Any]:
    try:
        import nbformat
    except ImportError:
        raise NotANotebook(f"to read {path}, pip install nbformat ipython") from None
    try:
        return nbformat.reads(_text(path), as_version=4).cells
    except Exception:  # whatever it raises for a file that is something else
        raise NotANotebook(f"{path} is not a Jupyter notebook") from None


def _text(path: Path) -> str:
    data = path.read_bytes()
    return data.decode("utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig")


def _compiled(text: str, name: str) -> CodeType:
    """The text as code; one that holds magics, by IPython, its lines with the numbers they have."""
    body = text.lstrip()
    before = text[: len(text) - len(body)].count("\n")
    while _RUNS_ITS_CELL.match(body):
        body = body.partition("\n")[2]
        before += 1
    python = "\n" * before + body if before else text
    try:
        code = compile(python, name, "exec", dont_inherit=True)
    except (SyntaxError, ValueError):
        if not name.endswith("]") and not _MAGIC.search(text):
            raise
        python = "\n" * before + _transformed(body, name)
        code = compile(python, name, "exec", dont_inherit=True)
    if python is not text or name.endswith("]"):
        # Tracebacks, places and AutoGraph read a line of the cell here.
        linecache.cache[name] = (len(python), None, python.splitlines(keepends=True), name)
    return code


def _transformed(body: str, name: str) -> str:
    try:
        from IPython.core.inputtransformer2 import TransformerManager
    except ImportError:
        raise NotANotebook(f"{name} holds magics: to read them, pip install ipython") from None
    return TransformerManager().transform_cell(_CONTINUED.sub(_on_one_line, body))


def _on_one_line(magic: re.Match) -> str:
    r"""!pip install a \ and the lines behind it, with as many empty ones after it: numbers stay."""
    lines = magic.group().split("\\\n")
    return " ".join(lines) + "\n" * (len(lines) - 1)


class Shell:
    """Stands for IPython's: what a magic does in Python is done, no other program is started.

    What `%%writefile` writes goes into a temporary folder, from which modules are imported first.
    """

    def __init__(self, folder: Path, namespace: dict[str, Any]) -> None:
        self._folder, self._namespace = folder, namespace
        self._written: Path | None = None
        self._started: list[str] = []  # programs, which a dry run does not start

    def advice(self) -> str:
        """On the program that the notebook starts by a shell last; "" where it starts none."""
        started = self._started and self._started[-1]
        return f". It starts {started} by a shell: give --main that program" if started else ""

    def run_line_magic(self, name: str, line: str = "", *_: Any, **__: Any) -> None:
        """%time, %prun, %run, %env, %set_env and %cd; others mean nothing here."""
        if name in ("time", "prun"):
            exec(line, self._namespace)
        elif name == "run":
            file = shlex.split(line)[0]
            written = self._written and self._written / file
            for code in code_of(written if written and written.exists() else self._folder / file):
                exec(code, self._namespace)
        elif name in ("env", "set_env") and (given := re.match(r"(\w+)[= ]\s*(.*)", line)):
            os.environ[given[1]] = given[2]
        elif name == "cd" and line:
            os.chdir(os.path.expanduser(line.strip("'\" ")))

    def run_cell_magic(self, name: str, line: str, body: str) -> None:
        """%%writefile writes a file aside; %%bash tells what it starts; others mean nothing."""
        if name in ("writefile", "file"):
            self._write(Path(shlex.split(line)[-1]), body, append="-a" in shlex.split(line))
        elif name in ("bash", "sh", "script"):
            self.system(body)

    def _write(self, file: Path, body: str, append: bool) -> None:
        if self._written is None:
            self._written = Path(tempfile.mkdtemp(prefix="writefile-"))
            sys.path.insert(0, str(self._written))
        path = self._written / (file.name if file.is_absolute() else file)
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a" if append else "w", encoding="utf-8") as out:
            out.write(body)
        importlib.invalidate_caches()

    def magic(self, text: str) -> None:
        """As older exports have it: "matplotlib inline"."""
        name, _, line = text.lstrip("%").partition(" ")
        self.run_line_magic(name, line)

    def system(self, command: str) -> None:
        """`!python task.py`: no shell is asked."""
        if program := python_program(command):
            self._started.append(program)

    def getoutput(self, command: str, *_: Any, **__: Any) -> list[str]:
        """`files = !ls`: no shell is asked."""
        self.system(command)
        return []

    def __getattr__(self, name: str) -> Callable:
        return lambda *_, **__: None
