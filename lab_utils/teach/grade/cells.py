"""Which cells of a submitted notebook are run: the learner's own, after the given ones of our lab."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from lab_utils.check import todos
from lab_utils.teach import pages

ROOT = Path(__file__).parents[3]
Code = tuple[str, str]  # a code cell: its id and its source
# What no answer needs, for a person to look at.
_INSIDE = re.compile(r"lab_utils\.check\.|import lab_utils\.check|sys\.modules|_getframe|gc\.get_")


@dataclass(frozen=True)
class Cell:
    """A cell to run: what errors call it, and whether all of it is run or only what it defines."""

    label: str
    source: str
    whole: bool = True


@dataclass(frozen=True)
class Plan:
    """What is run for a notebook: a lab's own cells as the prelude, its starters, the learner's cells."""

    lab: int
    prelude: list[str]
    starters: list[str]
    cells: list[Cell]
    remarks: list[str] = field(default_factory=list)


def plan(lab: int, code: Sequence[Code]) -> Plan:
    """Sorts the code cells of a notebook of lab `lab`.

    Cells are known by what they hold: they may be moved, copied, merged or split. Of a cell that is an
    experiment of the lab's, perhaps changed a little, what it defines is run, since an answer may use it.

    Raises:
        ValueError: the labs are not here.
    """
    prelude, starters, experiments = _released(lab)
    released = {*map(_words, prelude), *map(_words, starters)}
    cells, remarks = [], []
    for number, (id, source) in enumerate(code, 1):
        if not source.strip() or _words(source) in released:
            continue
        answer = any(answers(todo, source) for todo in todos.of_lab(lab))
        experiment = _words(source) in experiments.values() or (id in experiments and not answer)
        cells.append(Cell(f"code cell {number}", source, whole=not experiment))
        if _INSIDE.search(source) and not experiment:
            remarks.append(f"code cell {number} reaches into the checks or the running process")
    if _work_of_solution(lab) <= work(lab, code):
        remarks.append("its answers are those of our solution, character by character")
    return Plan(lab, prelude, starters, cells, remarks)


def answers(todo: todos.Todo, source: str) -> bool:
    """Whether a cell's text gives one of the names that a TODO asks for."""
    names = "|".join(todo.names)
    return bool(re.search(rf"^[ ]*(?:(?:def|class) +({names})\b|({names}) *=[^=])", source, re.M))


def work(lab: int, code: Sequence[Code]) -> frozenset[str]:
    """The words of the cells that are not as they were handed out; empty where nobody has worked on them."""
    prelude, starters, experiments = _released(lab)
    released = {*map(_words, (*prelude, *starters)), *experiments.values(), ""}
    return frozenset(_words(source) for _, source in code) - released


def _words(source: str) -> str:
    return " ".join(source.split())


@cache
def _released(lab: int) -> tuple[list[str], list[str], dict[str, str]]:
    """A lab as it is handed out: cells that all work needs, starters, and the words of others by id."""
    prelude, starters, experiments = [], [], {}
    for id, cell in pages.cells(ROOT, lab, "labs").items():
        source = cell["source"]
        if cell["metadata"].get("nbgrader", {}).get("solution"):
            starters.append(source)
        elif "given" in cell["metadata"].get("tags", []):
            prelude.append(source)
        else:
            experiments[id] = _words(source)
    return prelude, starters, experiments


@cache
def _work_of_solution(lab: int) -> frozenset[str]:
    solved = pages.cells(ROOT, lab)
    return work(lab, [(id, cell["source"]) for id, cell in solved.items()])
