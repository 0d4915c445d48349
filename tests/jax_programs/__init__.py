"""Train steps in JAX as other people write them, each right, and with faults planted on request.

A program is a function of one flag: `make("")` gives the right step with its arguments, `make("TPU241")` the
same step with that mistake, at the line that ends in "# <- TPU241". What is about the whole step is named at
its def, or at the first of its decorators.
"""

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Step:
    """What is handed to the dry run."""

    step: Any
    data: Any
    mesh_axes: dict[str, int] | None = None
    topology: str = "v5e:2x4"


@dataclass(frozen=True)
class Program:
    make: Callable[[str], Step]
    faults: tuple[str, ...] = field(default=())

    @property
    def name(self) -> str:
        return f"{self.make.__module__.rpartition('.')[2]}.{self.make.__name__}"

    def lines(self, fault: str) -> list[str]:
        """Endings of file and line of those that are marked with the fault."""
        lines, first = inspect.getsourcelines(self.make)
        file = inspect.getsourcefile(self.make).rsplit("/", 1)[-1]
        return [
            f"{file}:{first + number}"
            for number, line in enumerate(lines)
            if line.rstrip().endswith(f"# <- {fault}")
        ]


PROGRAMS: list[Program] = []


def program(*faults: str) -> Callable:
    def register(make: Callable[[str], Step]) -> Callable[[str], Step]:
        PROGRAMS.append(Program(make, faults))
        return make

    return register
