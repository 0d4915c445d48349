"""The register of TODOs: each lab's module enters its own with the decorator `todo`."""

import importlib
import inspect
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from lab_utils.check.outcome import CallError

# What a check yields: (in words what was tried, the result), and where needed how far numbers may be apart.
Cases = Iterator[tuple[str, Any] | tuple[str, Any, float]]


@dataclass(frozen=True)
class Slip:
    """A mistake to expect: `old`, which our solution holds once, becomes `new`; `says` is its message."""

    old: str
    new: str
    says: str


@dataclass(frozen=True, eq=False)
class Todo:
    """One TODO of a lab.

    `function` gets the learner's objects, in the order of `names`. It returns a sentence on what was right,
    or raises `Wrong`, `NotAttempted` or `CannotCheck`; a generator also yields cases, which are compared with
    those of our solution. `why` stands below our solution where that is shown.

    `names` are those of the learner's functions and values, as the lab calls them; a name that ends in ".py"
    is that of a file which the learner writes.
    """

    id: str
    function: Callable[..., str | Cases]
    hints: Sequence[str]
    names: Sequence[str]
    why: str = ""
    slips: Sequence[Slip] = ()

    @property
    def lab(self) -> int:
        """The number of its lab."""
        return lab_of(self.id)


_TODOS: dict[str, Todo] = {}


def todo(
    id: str,
    hints: Sequence[str],
    why: str = "",
    slips: Sequence[Slip] = (),
    names: Sequence[str] | None = None,
) -> Callable:
    """Enters the decorated function as the check of TODO `id` ("1a": lab 01, its first).

    Without `names`, the function's parameters bear the names that the lab gives to the learner's objects.
    """

    def enter(function: Callable[..., str | Cases]) -> Callable[..., str | Cases]:
        given = list(inspect.signature(function).parameters) if names is None else names
        _TODOS[id] = Todo(id, function, hints, given, why, slips)
        return function

    return enter


def find(id: str) -> Todo:
    """The TODO of that id.

    Raises:
        CallError: there is none.
    """
    of_its_lab = {entry.id: entry for entry in of_lab(lab_of(id))}
    if id not in of_its_lab:
        raise CallError(f"There is no TODO {id}: this lab has {', '.join(of_its_lab)}.")
    return of_its_lab[id]


def call(entry: Todo) -> str:
    """What a learner writes to have a TODO checked."""
    objects = (f'"{name}"' if name.endswith(".py") else name for name in entry.names)
    return f'check("{entry.id}", {", ".join(objects)})'


def of_lab(number: int) -> list[Todo]:
    """The TODOs of a lab, in order."""
    importlib.import_module(f"lab_utils.check.labs.lab_{number:02d}")
    return [entry for _, entry in sorted(_TODOS.items()) if entry.lab == number]


def lab_of(id: str) -> int:
    """The lab that a TODO belongs to.

    Raises:
        CallError: `id` is not a number and a letter.
    """
    if not (isinstance(id, str) and re.fullmatch(r"\d{1,2}[a-z]", id)):
        raise CallError(
            f'Name a TODO by its number and letter in quotes, such as "1a", not {id!r}.'
        )
    return int(id[:-1])
