"""Small ports to a TPU, wrong and right, for the dry run to judge.

A wrong port is a function of one flag. With wrong=True it makes one mistake, which the finding must
place at a line that ends in "# <- TPUxxx"; with wrong=False it is the same port, fixed as the rule's
page says, and must yield no finding. Findings of the stages compile, run and feed are about the whole
step or the whole pipeline, so their ports mark no line.
"""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from lab_utils.dry_run.records import Stage
from lab_utils.dry_run.rules import rule as rule_of


@dataclass
class Port:
    """What a learner hands over; or the `main` of a program, for rules about what it calls."""

    estimator: Any = None
    input_fn: Callable | None = None
    eval_input_fn: Callable | None = None
    predict_input_fn: Callable | None = None
    serving_input_receiver_fn: Callable | None = None
    mesh_axes: dict[str, int] | None = None
    main: Callable[[], Any] | None = None


@dataclass(frozen=True)
class Wrong:
    """A wrong port of the corpus: `make(wrong)` builds it; `place` replaces the marked line."""

    rule: str
    make: Callable[[bool], Port]
    place: str = ""

    @property
    def name(self) -> str:
        return self.make.__name__

    @property
    def stage(self) -> Stage:
        return rule_of(self.rule).stage

    def places(self) -> list[str]:
        """Endings of file and line of the marked lines, or the place that is expected in words."""
        if self.place:
            return [self.place]
        lines, first = inspect.getsourcelines(self.make)
        file = inspect.getsourcefile(self.make).rsplit("/", 1)[-1]
        return [
            f"{file}:{first + number}"
            for number, line in enumerate(lines)
            if line.rstrip().endswith(f"# <- {self.rule}")
        ]


WRONG: list[Wrong] = []
RIGHT: list[Callable[[], Port]] = []


def wrong(rule: str, place: str = "") -> Callable:
    """Registers a wrong port."""

    def register(make: Callable[[bool], Port]) -> Callable[[bool], Port]:
        WRONG.append(Wrong(rule, make, place))
        return make

    return register


def right(make: Callable[[], Port]) -> Callable[[], Port]:
    """Registers a right port."""
    RIGHT.append(make)
    return make
