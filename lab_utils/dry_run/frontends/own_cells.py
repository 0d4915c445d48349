"""The code of a program: a Python file, or a notebook's cells as if run from the first to the last."""

import json
import linecache
import re
from collections.abc import Iterator
from pathlib import Path
from types import CodeType

_OF_JUPYTER = re.compile(r"^(\s*)([%!?]|.*[^?\s]\?{1,2}$)")  # %matplotlib, !pip, model.fit?


class NotANotebook(Exception):
    """An .ipynb file that holds no notebook."""


def code_of(path: Path) -> Iterator[CodeType]:
    """The compiled code of the program, a notebook's cell by cell.

    Raises:
        NotANotebook: the .ipynb file is not a notebook.
        SyntaxError: it is not Python.
    """
    if path.suffix != ".ipynb":
        yield compile(path.read_bytes(), str(path), "exec")
        return
    for number, cell in enumerate(_cells(path), 1):
        if cell.get("cell_type") == "code":
            text = _python("".join(cell["source"]))
            name = f"{path}[cell {number}]"
            # Tracebacks, places and AutoGraph read a line of the cell here.
            linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
            yield compile(text, name, "exec")


def _cells(path: Path) -> list[dict]:
    try:
        return json.loads(path.read_text(encoding="utf-8"))["cells"]
    except (ValueError, KeyError, TypeError):
        raise NotANotebook(f"{path} is not a Jupyter notebook of format 4") from None


def _python(text: str) -> str:
    """A cell without what only Jupyter understands; its lines keep their numbers."""
    if text.startswith("%%"):
        return "pass\n" * len(text.splitlines())
    return "".join(
        _OF_JUPYTER.sub(r"\1pass  # \2", line) for line in text.splitlines(keepends=True)
    )
