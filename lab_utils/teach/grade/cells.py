"""Which cells of a submitted notebook are run: the learner's own, after the given ones of our lab."""

import ast
import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import MappingProxyType

from lab_utils.check import todos
from lab_utils.teach.grade import parts

# The names that every lab imports.
_OFFERED = re.compile(
    r"^from lab_utils\.check import \(?"
    r"(\s*(check|compare|hint|predict|ready|solution|working|\*)(?!\w),?)+\)?[ \t]*(#.*)?$",
    re.M,
)
LABS = Path(__file__).parents[3] / "labs"


@dataclass(frozen=True)
class Cell:
    """A learner's cell: what errors call it ("7", "7.2" for a part), what is run, the TODOs it names."""

    label: str
    source: str
    todos: tuple[str, ...] = ()


@dataclass(frozen=True)
class Plan:
    """What is run for a notebook: given cells of lab `lab`, the learner's, then the check of each TODO.

    `beside` are Python files that the cells may import, by name. `called`: the names that the learner gave
    to the check of a TODO, where they are not the lab's.
    """

    lab: int
    given: list[str]
    cells: list[Cell]
    remarks: list[str] = field(default_factory=list)
    beside: dict[str, str] = field(default_factory=dict)
    called: dict[str, list[str]] = field(default_factory=dict)


@dataclass(frozen=True)
class _Released:
    """A lab as it is handed out: cells that all work needs, those of its experiments, and starters."""

    given: list[str]
    experiments: list[str]
    starters: list[str]


def plan(lab: int, code: Sequence[str], beside: Sequence[tuple[str, str]] = ()) -> Plan:
    """Sorts the code cells of a notebook of lab `lab`.

    Cells are known by what they hold, not by their place or id: they may be deleted, moved, copied, merged or
    split, and come from another version of the lab. A cell of an experiment gives its imports, functions and
    constants, since an answer may use them.

    Raises:
        FileNotFoundError: the labs are not here.
    """
    ours, cells, remarks = _released(lab), [], []
    known, called = parts.Known(ours.given, ours.experiments), _called(lab, code)
    for number, source in enumerate(map(str.strip, code), 1):
        if not source or _same(source, ours.given) or _is_set_up(source):
            continue
        pieces = [source] if _same(source, ours.experiments) else known.pieces(source)
        for place, piece in enumerate(pieces, 1):
            label = f"{number}.{place}" if len(pieces) > 1 else f"{number}"
            named = _named_todos(lab, piece, called)
            own = not _same(piece, ours.experiments)
            if not own or (not named and known.similar(piece)):
                piece = definitions(piece, lab)
            if piece.strip():
                cells.append(Cell(label, piece, named if own else ()))
                remarks += [f"cell {label} {told}" for told in _remarkable(piece) if own]
    cells = [cell for cell in cells if not _left_starter(cell, cells, ours.starters)]
    if _is_solution(lab, code):
        remarks.append("its answers are those of our solution, character by character")
    return Plan(lab, ours.given, cells, remarks, dict(beside), called)


def _called(lab: int, code: Sequence[str]) -> dict[str, list[str]]:
    """`check("4a", my_metrics)` says what answers 4a, where the learner has named it otherwise."""
    names = {todo.id: list(todo.names) for todo in todos.of_lab(lab)}
    found = {}
    for node in (node for source in code if (tree := parts.tree(source)) for node in tree.body):
        if not isinstance(node, ast.Expr) or not isinstance(node.value, ast.Call):
            continue
        call = node.value
        if not isinstance(call.func, ast.Name) or call.func.id != "check" or not call.args:
            continue
        todo = call.args[0].value if isinstance(call.args[0], ast.Constant) else None
        given = [each.id for each in call.args[1:] if isinstance(each, ast.Name)]
        if len(given) == len(names.get(todo, ())) == len(call.args) - 1 and given != names[todo]:
            found[todo] = given
    return found


def _left_starter(cell: Cell, cells: Sequence[Cell], starters: list[str]) -> bool:
    """Whether it is a starter, perhaps a copy of one, whose TODOs are answered in other cells."""
    if not _same(cell.source, starters):
        return False
    answered = {t for each in cells if not _same(each.source, starters) for t in each.todos}
    return bool(cell.todos) and answered.issuperset(cell.todos)


def untouched(lab: int, code: Sequence[str]) -> bool:
    """Whether the cells are those that were handed out, so that nobody has worked on them."""
    ours = _released(lab)
    known = {*map(_words, ours.given), *map(_words, ours.experiments), *map(_words, ours.starters)}
    return all(_words(cell) in known or _is_set_up(cell.strip()) for cell in code if cell.strip())


def _words(source: str) -> str:
    return " ".join(source.split())


def _is_set_up(source: str) -> bool:
    """Whether it is the set-up cell, of whatever version."""
    return (
        "lab_utils.check import" in source and source.endswith("ready()") and "TODO" not in source
    )


@cache
def _released(lab: int) -> _Released:
    paths = sorted(LABS.glob(f"{lab:02d}_*.ipynb"))
    if not paths:
        raise FileNotFoundError(
            f"{LABS} does not hold lab {lab:02d}; grade in a clone of the course"
        )
    given, experiments, starters = [], [], []
    for cell in _code_cells(paths[0]):
        if cell["metadata"].get("nbgrader", {}).get("solution"):
            kind = starters
        else:
            kind = given if "given" in cell["metadata"].get("tags", []) else experiments
        kind.append("".join(cell["source"]).strip())
    return _Released(given, experiments, starters)


def _code_cells(path: Path) -> list[dict]:
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return [cell for cell in cells if cell["cell_type"] == "code"]


@cache
def _solutions(lab: int) -> frozenset[str]:
    """The answers of our solution that are of more than a line, without white space."""
    (path,) = LABS.glob(f"{lab:02d}_*.ipynb")
    ours = LABS.parent / "solutions" / path.name
    open_ids = {
        c["id"] for c in _code_cells(path) if c["metadata"].get("nbgrader", {}).get("solution")
    }
    return frozenset(
        _words("".join(cell["source"]))
        for cell in (_code_cells(ours) if ours.exists() else ())
        if cell["id"] in open_ids and len(cell["source"]) > 1
    )


def _is_solution(lab: int, code: Sequence[str]) -> bool:
    answers = _solutions(lab)
    return bool(answers) and answers <= {_words(cell) for cell in code}


def _same(source: str, others: list[str]) -> bool:
    return any(source.split() == other.split() for other in others)


def _named_todos(
    lab: int, source: str, called: Mapping[str, Collection[str]] = MappingProxyType({})
) -> tuple[str, ...]:
    """The TODOs whose names, the lab's or those `called` so, a cell gives at its top level.

    Where it cannot be parsed, those it speaks of.
    """
    tree = parts.tree(source)
    if tree is None:
        return tuple(
            todo.id
            for todo in todos.of_lab(lab)
            if f"TODO {todo.id}" in source
            or any(re.search(rf"^(def|class) +{n}\b|^{n} *=", source, re.M) for n in todo.names)
        )
    bound = {name for node in parts.outer(tree) for name in _names(node)}
    return tuple(t.id for t in todos.of_lab(lab) if bound & {*t.names, *called.get(t.id, ())})


def _names(node: ast.stmt) -> set[str]:
    """The names that a statement gives: its own, or those that it stores."""
    stored = {_stored(each) for each in ast.walk(node)}
    return {name for name in (*stored, getattr(node, "name", None)) if name}


def _stored(node: ast.AST) -> str | None:
    return node.id if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) else None


def definitions(source: str, lab: int | None = None) -> str:
    """The imports, functions, classes and constants of a cell; with `lab` without that lab's answers."""
    tree = parts.tree(source)
    kept = [node for node in tree.body if _defines(node)] if tree else []
    segments = [parts.segment(source, node) for node in kept]
    return "\n".join(each for each in segments if lab is None or not _named_todos(lab, each))


def _defines(node: ast.stmt) -> bool:
    if isinstance(node, ast.Assign):
        return isinstance(node.value, ast.Constant)
    return isinstance(node, ast.Import | ast.ImportFrom | ast.FunctionDef | ast.ClassDef)


def _remarkable(source: str) -> list[str]:
    """What a person should look at: it has no place in an answer, though it need not be a fraud."""
    signs = {
        r"lab_utils\.check|check[./]solved|solved/lab_": "reaches into the checks",
        r"__(eq|ne|bool|instancecheck|array_\w+)__|__class__\s*=": "defines what it is equal to",
        r"\bmock\b|MagicMock": "returns what stands in for anything",
        r"sys\.modules|_getframe|\bf_back\b|\btb_frame\b|gc\.get_|builtins|ctypes|/proc/|\bsignal\.\w"
        r"|__globals__|__code__|__closure__": "reaches into the running process",
        r"(?<![\w.])(exec|eval|compile|__import__)\(": "runs code that it makes as text",
    }
    code = _OFFERED.sub("", source)
    return [told for sign, told in signs.items() if re.search(sign, code)]
