"""The register of TODOs: each lab's module enters its own with the decorator `todo`."""

import importlib
import inspect
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

# What a check yields: (in words what was tried, the result), and where needed how far numbers may be apart.
Cases = Iterator[tuple[str, Any] | tuple[str, Any, float]]
Slips = Mapping[str, str]  # from "old -> new", a change of our solution, to what is said of it


@dataclass(frozen=True, eq=False)
class Todo:
    """One TODO of a lab.

    `function` gets the learner's objects; its parameters bear the names that the lab gives to them. It yields
    cases, which are compared with those of our solution, and returns a sentence on what was right; or it
    raises `Wrong` or `CannotCheck`. `slips` are changes to our solution that learners make, "old -> new", and
    what is said of each. `why` stands below our solution where that is shown.
    """

    id: str
    function: Callable[..., str | Cases]
    hints: Sequence[str]
    why: str = ""
    slips: Slips = field(default_factory=dict)

    @property
    def lab(self) -> int:
        """The number of its lab."""
        return lab_of(self.id)

    @property
    def names(self) -> list[str]:
        """What the learner writes: names of functions or values."""
        return list(inspect.signature(self.function).parameters)


_TODOS: dict[str, Todo] = {}


def todo(id: str, hints: Sequence[str], why: str = "", slips: Slips | None = None) -> Callable:
    """Enters the decorated function as the check of TODO `id` ("1a": lab 01, its first)."""

    def enter(function: Callable[..., str | Cases]) -> Callable[..., str | Cases]:
        _TODOS[id] = Todo(id, function, hints, why, slips or {})
        return function

    return enter


def find(id: str) -> Todo:
    """The TODO of that id.

    Raises:
        ValueError: there is none.
    """
    of_its_lab = {entry.id: entry for entry in of_lab(lab_of(id))}
    if id not in of_its_lab:
        raise ValueError(f"there is no TODO {id}: this lab has {', '.join(of_its_lab)}")
    return of_its_lab[id]


def of_lab(number: int) -> list[Todo]:
    """The TODOs of a lab, in order."""
    importlib.import_module(f"lab_utils.check.labs.lab_{number:02d}")
    return [entry for _, entry in sorted(_TODOS.items()) if entry.lab == number]


def lab_of(id: str) -> int:
    """The lab that a TODO belongs to.

    Raises:
        ValueError: `id` is not a number and a letter.
    """
    if not re.fullmatch(r"\d{1,2}[a-z]", id):
        raise ValueError(f"a TODO is named like '1a', not {id!r}")
    return int(id[:-1])
