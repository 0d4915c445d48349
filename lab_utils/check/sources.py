"""The marked notebooks of the course: regions to write, the solutions as modules, titles and minutes.

What a learner is to write stands between nbgrader's markers, below a comment that names its TODO (see
`lab_utils.teach.marks`). Cells with such a region, and those tagged "given", make up the module of a lab's
solution. It is made when it is first asked for; Python's linecache holds its source, since AutoGraph, Beam
and tracebacks read sources.
"""

import json
import linecache
import re
import sys
import textwrap
import types
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from lab_utils.check import programs
from lab_utils.check.outcome import NotAttempted, Wrong
from lab_utils.check.tools import expect, failure
from lab_utils.common.source import SOLUTION

# The wheel brings them beside this file; in a checkout they stand at its top (pyproject.toml).
_FOLDERS = (
    Path(__file__).with_name("notebooks"),
    Path(__file__).parents[2] / "solutions" / "source",
)
REGION = re.compile(r"^([ ]*)### BEGIN SOLUTION\n(.*?)^\1### END SOLUTION$", re.M | re.S)
STARTER = re.compile(r"^[ ]*# STARTER: ?(.*)$", re.M)
TODO = re.compile(r"^[ ]*# (TODO (\d+[a-z]): .*)$", re.M)
_MARKS = re.compile(r"^[ ]*(### (BEGIN|END) SOLUTION|# STARTER:.*)\n?", re.M)
_TITLE = re.compile(r"# \d\d · (.+)\n[^*]*\*\*(\d+) minutes\.\*\*")


class NoSolutionsError(FileNotFoundError):
    """This copy of the course has no solutions: that of a handout for an examination, say."""


def folder() -> Path:
    """Where the marked notebooks are.

    Raises:
        NoSolutionsError: neither a wheel nor a checkout brings them.
    """
    for path in _FOLDERS:
        if path.is_dir():
            return path
    raise NoSolutionsError(
        "This copy of the course has no solutions, so it cannot check answers: they are checked after you "
        "hand the notebook in."
    )


@cache
def paths() -> dict[int, Path]:
    """The marked notebook of each lab, by number."""
    return {int(path.name[:2]): path for path in sorted(folder().glob("[0-9][0-9]_*.ipynb"))}


@cache
def _cells(lab: int) -> tuple[dict, ...]:
    cells = json.loads(paths()[lab].read_text(encoding="utf-8"))["cells"]
    return tuple(cell | {"source": programs.expand("".join(cell["source"]))} for cell in cells)


@cache
def labs() -> dict[int, dict]:
    """The labs by number: {"title": ..., "minutes": ...}, as their first cells state them."""
    matches = {lab: _TITLE.match(_cells(lab)[0]["source"]) for lab in paths()}
    return {
        lab: {"title": match[1].strip(), "minutes": int(match[2])} for lab, match in matches.items()
    }


def ids(lab: int) -> list[str]:
    """The TODOs of a lab, without importing its checks, which takes TensorFlow."""
    return sorted({match[2] for match in TODO.finditer(text(lab))})


def without_marks(source: str) -> str:
    """A cell's source without markers and starters."""
    return _MARKS.sub("", source)


def is_of_solution(source: str, tags: list[str]) -> bool:
    """Whether a code cell belongs to the solution's module; cells with predictions do not."""
    return bool("given" in tags or REGION.search(source)) and not re.search(
        r"^predict\(", source, re.M
    )


@cache
def text(lab: int) -> str:
    """The source of a lab's solution as a module; "" where there is no such lab."""
    cells = _cells(lab) if lab in paths() else ()
    parts = [
        programs.as_python(without_marks(cell["source"]).strip())
        for cell in cells
        if cell["cell_type"] == "code"
        and is_of_solution(cell["source"], cell["metadata"].get("tags", []))
    ]
    return "\n\n\n".join(parts) + "\n"


@cache
def regions(lab: int) -> dict[str, list[str]]:
    """What each TODO of a lab asks for, as it stands in the solution's module: a region, or several."""
    by_todo: dict[str, list[str]] = {}
    for source in (cell["source"] for cell in _cells(lab) if cell["cell_type"] == "code"):
        for region in REGION.finditer(source):
            if above := TODO.findall(source[: region.start()]):
                by_todo.setdefault(above[-1][1], []).append(without_marks(region[2]).rstrip())
    return by_todo


def edited_function(program: Any, lab: int, file: str, name: str) -> Callable:
    """A function of a program that a lab's cell holds, after the learner has edited it.

    Raises:
        NotAttempted: it is as learners find it.
        Wrong: as read_program, or the program cannot be executed, or has no such function.
    """
    text = programs.read_program(program, file)
    cells = (cell["source"] for cell in _cells(lab))
    cell = next(source for source in cells if source.startswith(f"%%writefile {file}\n"))
    cell = REGION.sub(lambda region: "\n".join(STARTER.findall(region[2])), cell)
    if _words(text) == _words(cell.partition("\n")[2]):
        raise NotAttempted(programs.AS_IT_WAS)
    scope: dict[str, Any] = {"__name__": Path(file).stem}
    try:
        exec(compile(text, programs.written(text, file), "exec"), scope)
    except Exception as error:
        raise Wrong(f"{file} cannot be read: {failure(error)}") from None
    expect(
        callable(scope.get(name)),
        f"{file} no longer has {name}, the function that the check calls.",
    )
    return scope[name]


def _words(text: str) -> list[str]:
    """The lines of a program without their indentation, which starters have otherwise."""
    return [line.strip() for line in text.splitlines() if line.strip()]


def region(todo: str) -> str:
    """Our code for a TODO."""
    return textwrap.dedent("\n".join(regions(int(todo[:-1]))[todo])).strip("\n")


def with_slip(todo: str, old: str, new: str) -> str:
    """The source of the solution's module with one slip: `old` becomes `new`.

    Raises:
        ValueError: `old` stands neither once in one of the TODO's regions, nor once in the module.
    """
    lab = int(todo[:-1])
    for place in (*regions(lab)[todo], text(lab)):
        if place.count(old) == 1 and text(lab).count(place) == 1:
            return text(lab).replace(place, place.replace(old, new))
    raise ValueError(f"TODO {todo}: not once in the solution: {old}")


def load(source: str, name: str) -> types.ModuleType:
    """A module of that source; reports name it "the course's solution" (see `common.source`)."""
    file = SOLUTION + name
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    module = types.ModuleType("lab_utils_solution_of_" + re.sub(r"\W", "_", name))
    module.__file__ = file
    module.__loader__ = types.SimpleNamespace(get_source=lambda _: source)  # AutoGraph asks it
    sys.modules[module.__name__] = module  # classes find their module there
    exec(compile(source, file, "exec"), module.__dict__)
    return module


@cache
def solved(lab: int) -> types.ModuleType:
    """The solution of a lab as a module."""
    return load(text(lab), f"lab {lab:02d}")
