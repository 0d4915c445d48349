"""Which cells of a submitted notebook are run: the learner's own, after the given ones of our lab."""

import ast
import difflib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from lab_utils.check import todos

LABS = Path(__file__).parents[2] / "labs"
_SIMILAR = 0.8  # of two cells that are one cell in two versions
_MAGIC = re.compile(r"^[ ]*[%!]", re.M)


@dataclass(frozen=True)
class Cell:
    """A learner's cell: its number among the code cells (from 1), what is run, the TODOs it names."""

    number: int
    source: str
    todos: tuple[str, ...] = ()


@dataclass(frozen=True)
class Plan:
    """What is run for a notebook: given cells of lab `lab`, the learner's, then the check of each TODO."""

    lab: int
    given: list[str]
    cells: list[Cell]
    remarks: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class _Released:
    """A lab as it is handed out: cells that all work needs, and those of its experiments."""

    given: list[str]
    experiments: list[str]


def plan(lab: int, code: Sequence[str]) -> Plan:
    """Sorts the code cells of a notebook of lab `lab`.

    Cells are known by what they hold, not by their place or id: they may be deleted, moved or copied, and
    come from another version of the lab. A cell of an experiment gives its imports, functions and constants,
    since an answer may use them.

    Raises:
        FileNotFoundError: the labs are not here.
    """
    ours, cells, remarks = _released(lab), [], []
    for number, source in enumerate(map(str.strip, code), 1):
        if not source or _same(source, ours.given):
            continue
        if "lab_utils.check import" in source and source.endswith("ready()"):
            continue  # the set-up cell, of whatever version
        named = _named_todos(lab, source)
        own = not _same(source, ours.experiments)
        if not own or (not named and _similar(source, ours.experiments)):
            source = _definitions(lab, source)
        if source:
            cells.append(Cell(number, source, named if own else ()))
            remarks += [f"cell {number} {told}" for told in _remarkable(source) if own]
    return Plan(lab, ours.given, cells, remarks)


@cache
def _released(lab: int) -> _Released:
    paths = sorted(LABS.glob(f"{lab:02d}_*.ipynb"))
    if not paths:
        raise FileNotFoundError(
            f"{LABS} does not hold lab {lab:02d}; grade in a clone of the course"
        )
    given, experiments = [], []
    for cell in json.loads(paths[0].read_text(encoding="utf-8"))["cells"]:
        if cell["cell_type"] != "code" or cell["metadata"].get("nbgrader", {}).get("solution"):
            continue
        is_given = "given" in cell["metadata"].get("tags", [])
        (given if is_given else experiments).append("".join(cell["source"]).strip())
    return _Released(given, experiments)


def _same(source: str, others: list[str]) -> bool:
    return any(source.split() == other.split() for other in others)


def _similar(source: str, others: list[str]) -> bool:
    matchers = (difflib.SequenceMatcher(None, source, other, autojunk=False) for other in others)
    return any(
        m.real_quick_ratio() > _SIMILAR and m.quick_ratio() > _SIMILAR and m.ratio() > _SIMILAR
        for m in matchers
    )


def _tree(source: str) -> ast.Module | None:
    try:
        return ast.parse(_MAGIC.sub("# ", source))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _named_todos(lab: int, source: str) -> tuple[str, ...]:
    """The TODOs whose names a cell gives at its top level; where it cannot be parsed, those it speaks of."""
    tree = _tree(source)
    if tree is None:
        return tuple(t.id for t in todos.of_lab(lab) if f"TODO {t.id}" in source)
    bound = {
        name
        for node in tree.body
        for each in ast.walk(node)
        for name in (getattr(each, "name", None) if each is node else None, _stored(each))
        if name
    }
    return tuple(t.id for t in todos.of_lab(lab) if bound & set(t.names))


def _stored(node: ast.AST) -> str | None:
    return node.id if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) else None


def _definitions(lab: int, source: str) -> str:
    """The imports, functions, classes and constants of a cell, but what bears the name of an answer."""
    tree = _tree(source)
    kept = [node for node in tree.body if _defines(node)] if tree else []
    parts = [ast.get_source_segment(source, node) or "" for node in kept]
    return "\n".join(part for part in parts if not _named_todos(lab, part))


def _defines(node: ast.stmt) -> bool:
    if isinstance(node, ast.Assign):
        return isinstance(node.value, ast.Constant)
    return isinstance(node, ast.Import | ast.ImportFrom | ast.FunctionDef | ast.ClassDef)


def _remarkable(source: str) -> list[str]:
    """What a person should look at: it has no place in an answer, though it need not be a fraud."""
    signs = {
        r"lab_utils\.check\.|check[./]solved|solved/lab_": "reaches into the checks",
        r"__eq__|__class__\s*=|__instancecheck__": "defines what it is equal to",
        r"sys\.modules|_getframe|gc\.get_|builtins|ctypes|/proc/": "reaches into the running process",
    }
    code = re.sub(r"^from lab_utils\.check import .*$", "", source, flags=re.M)
    return [told for sign, told in signs.items() if re.search(sign, code)]
