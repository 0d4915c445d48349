"""The register of TODOs: each lab's module enters its own with the decorator `todo`."""

import importlib
import importlib.util
import inspect
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType


@dataclass(frozen=True)
class Todo:
    """One TODO of a lab.

    `function` gets the learner's objects. It returns a sentence on what was found to be right, or
    raises `Wrong` or `CannotCheck`. Its parameters bear the names that the lab gives to these objects.
    `why` stands below our solution where that is shown; without it, the first line of `function`'s docstring.
    """

    id: str
    function: Callable[..., str]
    hints: Sequence[str]
    why: str = ""

    @property
    def names(self) -> list[str]:
        """What the learner writes: names of functions or values."""
        return list(inspect.signature(self.function).parameters)


_TODOS: dict[str, Todo] = {}


def todo(id: str, hints: Sequence[str], why: str = "") -> Callable:
    """Enters the decorated function as the check of TODO `id` ("1a": lab 01, its first)."""

    def enter(function: Callable[..., str]) -> Callable[..., str]:
        _TODOS[id] = Todo(id, function, hints, why)
        return function

    return enter


def find(id: str) -> Todo:
    """The TODO of that id.

    Raises:
        ValueError: there is none.
    """
    of_its_lab = of_lab(lab_of(id))
    for each in of_its_lab:
        if each.id == id:
            return each
    raise ValueError(f"there is no TODO {id}: this lab has {', '.join(t.id for t in of_its_lab)}")


def of_lab(number: int) -> list[Todo]:
    """The TODOs of a lab, in order."""
    importlib.import_module(f"lab_utils.check.labs.lab_{number:02d}")
    return [each for id, each in sorted(_TODOS.items()) if lab_of(id) == number]


def lab_of(id: str) -> int:
    """The lab that a TODO belongs to.

    Raises:
        ValueError: `id` is not a number and a letter.
    """
    if not re.fullmatch(r"\d{1,2}[a-z]", id):
        raise ValueError(f"a TODO is named like '1a', not {id!r}")
    return int(id[:-1])


def solved(number: int) -> ModuleType:
    """The solutions of a lab as a module, which `python -m lab_utils.build` makes from the notebook."""
    return importlib.import_module(f"lab_utils.check.solved.lab_{number:02d}")


def source(number: int) -> str:
    """The source of that module, which is not run for it; "" where a lab has none."""
    found = importlib.util.find_spec(f"{__package__}.solved.lab_{number:02d}")
    return Path(found.origin).read_text(encoding="utf-8") if found and found.origin else ""
