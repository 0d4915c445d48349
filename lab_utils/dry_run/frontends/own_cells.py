"""The code of a program: a Python file, or a notebook's cells as if run from the first to the last.

A notebook that Colab saved as a Python file keeps lines such as `!pip install`: it is read as one cell.
"""

import json
import linecache
import os
import re
import shlex
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import CodeType
from typing import Any

from lab_utils.dry_run.frontends.own_files import Written

_RUNS_ITS_CELL = re.compile(r"\s*%%(time|capture|prun)\b.*")  # the rest is Python of the notebook
_RUNS_ITS_LINE = re.compile(r"^([ \t]*)%(?:time|prun)[ \t]+(?=[\w(\[{'\"])", re.M)
_EXPORTED = re.compile(r"^\s*get_ipython\(\)\.", re.M)  # by Jupyter or Colab, as Python
_CONTINUED = re.compile(r"^[ \t]*(?:\w+[ \t]*=[ \t]*)?[!%](?:.*\\\n)+.*", re.M)
_MAGIC = re.compile(r"^[ \t]*(\w+[ \t]*=[ \t]*)?[!%][ \t]*\w", re.M)

_STARTED = re.compile(
    r"\bpython[\d.]*\s+(?:-u\s+)?(?:-m\s+([\w.]+)|([\w./-]+\.py)\b)"
)  # by a shell
_SHELL = "get_ipython"


class NotANotebook(Exception):
    """An .ipynb file that holds no notebook, or one that cannot be run here."""


def code_of(path: Path) -> Iterator[CodeType]:
    """The compiled code of the program, a notebook's cell by cell.

    Raises:
        NotANotebook: the .ipynb file is not a notebook, or has magics and IPython is not installed.
        SyntaxError: it is not Python.
    """
    if path.suffix != ".ipynb":
        text = _python(path.read_text(errors="replace"), str(path)) if _is_saved(path) else None
        yield compile(text or path.read_bytes(), str(path), "exec")
        return
    for number, (kind, source) in enumerate(_cells(path), 1):
        if kind == "code":
            name = f"{path}[cell {number}]"
            text = _python(source.replace("\r\n", "\n"), name)
            # Tracebacks, places and AutoGraph read a line of the cell here.
            linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
            yield compile(text, name, "exec")


def names_of(path: Path, namespace: dict[str, Any]) -> dict[str, Callable]:
    """What Jupyter gives a program beside Python: nothing, unless it is a notebook or the export of one."""
    exported = _EXPORTED.search(path.read_text(errors="replace"))
    if path.suffix == ".ipynb" or exported or _is_saved(path):
        shell = _Shell(path.parent, namespace)
        return {_SHELL: lambda: shell, "display": lambda *_, **__: None}
    return {}


def _is_saved(path: Path) -> bool:
    """Whether magics keep a file from being Python: a notebook that Colab saved so."""
    try:
        compile(path.read_bytes(), str(path), "exec", dont_inherit=True)
        return False
    except (SyntaxError, ValueError):
        return bool(_MAGIC.search(path.read_text(errors="replace")))


def explain(error: BaseException, namespace: dict[str, Any]) -> None:
    """Has an error say where a file is missing that the notebook's `%%writefile` would have written."""
    if shell := _shell(namespace):
        shell.written.explain(error)


def started(namespace: dict[str, Any]) -> str:
    """What a notebook starts by a shell, to be judged in its place; "" where it starts nothing."""
    programs = getattr(_shell(namespace), "started", [])
    if not programs:
        return ""
    return f". It starts {programs[-1]} by a shell, which a dry run does not: give that to --main"


def _shell(namespace: dict[str, Any]) -> "_Shell | None":
    shell = namespace.get(_SHELL, lambda: None)()
    return shell if isinstance(shell, _Shell) else None


def _cells(path: Path) -> list[tuple[str, str]]:
    """Kind and source of each cell, of format 4 or, by its sheets, 3."""
    try:
        made = json.loads(
            path.read_bytes()
        )  # with or without a mark of byte order, as UTF-8 or UTF-16
        sheets = made.get("worksheets", [made])
        cells = [cell for sheet in sheets for cell in sheet["cells"]]
        return [
            (cell.get("cell_type"), "".join(cell.get("source") or cell.get("input") or ""))
            for cell in cells
        ]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise NotANotebook(f"{path} is not a Jupyter notebook") from None


def _python(text: str, name: str) -> str:
    """The cell as Python, its lines with the numbers they have; magics call `_Shell`."""
    body = text.lstrip()
    lines = text[: len(text) - len(body)].count("\n")
    while _RUNS_ITS_CELL.match(body):
        body = body.partition("\n")[2]
        lines += 1
    text = "\n" * lines + body if lines else text
    try:
        compile(text, name, "exec", dont_inherit=True)
        return text
    except (SyntaxError, ValueError):
        pass
    try:
        from IPython.core.inputtransformer2 import TransformerManager
    except ImportError:
        raise NotANotebook(
            f"{name} is not Python alone: to read its magics, pip install ipython"
        ) from None
    body = _CONTINUED.sub(_on_one_line, _RUNS_ITS_LINE.sub(r"\1", body))
    made = TransformerManager().transform_cell(body)
    return "\n" * lines + made


def _on_one_line(magic: re.Match) -> str:
    r"""!pip install a \ and the lines behind it, with as many empty ones after it: numbers stay."""
    lines = magic.group().split("\\\n")
    return " ".join(lines) + "\n" * (len(lines) - 1)


class _Shell:
    """Stands for IPython's: what a magic does in Python is done, no other program is started."""

    def __init__(self, folder: Path, namespace: dict[str, Any]) -> None:
        self._folder, self._namespace = folder, namespace
        self.written = Written(folder.absolute())
        self.started: list[str] = []  # programs, which a dry run does not start

    def run_line_magic(self, name: str, line: str = "", *_: Any, **__: Any) -> None:
        """%time, %prun, %run, %env, %set_env and %cd; others mean nothing here."""
        if name in ("time", "prun"):
            exec(line, self._namespace)
        elif name == "run":
            file = shlex.split(line)[0]
            if own := self.written.text(file):
                exec(compile(*own, "exec"), self._namespace)
                return
            for code in code_of(self._folder / file):
                exec(code, self._namespace)
        elif name in ("env", "set_env") and (given := re.match(r"(\w+)[= ]\s*(.*)", line)):
            os.environ[given[1]] = given[2]
        elif name == "cd" and line:
            os.chdir(os.path.expanduser(line.strip("'\" ")))

    def run_cell_magic(self, name: str, line: str, body: str) -> None:
        """%%time, %%capture and %%prun run their cell, %%writefile holds a file; others mean nothing."""
        if name in ("writefile", "file"):
            self.written.write(line, body, sys._getframe(1).f_code.co_filename)
        elif _RUNS_ITS_CELL.match(f"%%{name}"):
            exec(body, self._namespace)
        elif name in ("bash", "sh", "script"):
            self.system(body)

    def magic(self, text: str) -> None:
        """As older exports have it: "matplotlib inline"."""
        name, _, line = text.lstrip("%").partition(" ")
        self.run_line_magic(name, line)

    def system(self, command: str) -> None:
        """`!python task.py`: no shell is asked."""
        self.started += [module or file for module, file in _STARTED.findall(command)]

    def getoutput(self, command: str, *_: Any, **__: Any) -> list[str]:
        """`files = !ls`: no shell is asked."""
        self.system(command)
        return []

    def __getattr__(self, name: str) -> Callable:
        return lambda *_, **__: None
