"""What can be judged: the interface that every frontend gives its kind of program."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, Protocol

from lab_utils.common.source import Place
from lab_utils.dry_run.program import Program
from lab_utils.dry_run.records import Finding, Mode
from lab_utils.dry_run.traced import Trace


@dataclass(frozen=True)
class Inputs:
    """The input functions of a TPUEstimator by mode; training's stands in for those that are missing."""

    train: Callable
    eval: Callable | None = None
    predict: Callable | None = None
    serving: Callable | None = None

    def of(self, mode: Mode) -> Callable:
        """The input function of `mode`."""
        return getattr(self, mode) or self.train

    def borrowed(self, mode: Mode) -> bool:
        """Whether training's input function stands in for that of `mode`."""
        return getattr(self, mode) is None


class Workload(Protocol):
    """A program with its data, as a frontend presents it to the stages.

    Attributes:
        name: what the report calls it.
        most_steps: steps that its data suffice for; None where that is not known.
        feed_place: the learner's own place of the input pipeline.
    """

    name: str
    feed_place: Place
    most_steps: int | None = None

    def trace(self, cores: int) -> list[Trace]:
        """The graphs that TPUEstimator builds, of each mode; none where the program is another."""
        return []

    def read(self, traces: list[Trace], cores: int) -> list[Finding]:
        """What the program of a core holds that a TPU would refuse, ignore or get wrong."""

    def lower(
        self, cores: int, mode: Mode = Mode.TRAIN, global_batch: int | None = None
    ) -> Program:
        """One step of `mode`, as each of `cores` cores runs it.

        Raises:
            CannotLower, InputUnfit: as lower/errors.py says.
        """

    def lower_alike(self, cores: int, global_batch: int) -> tuple[Program, Program]:
        """The train step of `cores` cores and of one: random numbers are the same for an example, where
        that can be had.
        """

    def feed(self, cores: int) -> AbstractContextManager[tuple[Any, int | None]]:
        """The input pipeline as one host reads it (None where there is none), and its batch size."""
        return nullcontext((None, None))
