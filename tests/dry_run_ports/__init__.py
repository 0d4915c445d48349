"""Small ports to a TPU, wrong and right, for the dry run to judge.

A wrong port is a function of one flag. With wrong=True it makes one mistake, which the finding must
place at a line that ends in "# <- TPUxxx"; with wrong=False it is the same port, mended as the rule's
fix says, and must yield no finding.
"""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass
class Port:
    """What a learner hands over."""

    estimator: Any
    input_fn: Callable
    eval_input_fn: Callable | None = None
    predict_input_fn: Callable | None = None
    serving_input_receiver_fn: Callable | None = None


@dataclass(frozen=True)
class Wrong:
    """A wrong port of the corpus: `make(wrong)` builds it; `place` replaces the marked line."""

    rule: str
    make: Callable[[bool], Port]
    place: str = ""

    @property
    def name(self) -> str:
        return self.make.__name__

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


WRONG_WHEN_RUN: list[Wrong] = []


def wrong_when_run(rule: str) -> Callable:
    """Registers a wrong port that shows only when its step is lowered or run."""

    def register(make: Callable[[bool], Port]) -> Callable[[bool], Port]:
        WRONG_WHEN_RUN.append(Wrong(rule, make))
        return make

    return register


WRONG_WHEN_COMPILED: list[Wrong] = []


def wrong_when_compiled(rule: str) -> Callable:
    """Registers a wrong port that shows only when its step is compiled."""

    def register(make: Callable[[bool], Port]) -> Callable[[bool], Port]:
        WRONG_WHEN_COMPILED.append(Wrong(rule, make))
        return make

    return register


def right(make: Callable[[], Port]) -> Callable[[], Port]:
    """Registers a right port."""
    RIGHT.append(make)
    return make
