"""What a program makes and calls, as it was noted while it ran. No TensorFlow is imported here."""

import os
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from lab_utils.common import source
from lab_utils.common.source import NOWHERE, Place
from lab_utils.dry_run.frontends import cells, jax_runs
from lab_utils.dry_run.frontends.caller import caller
from lab_utils.dry_run.records import Mode
from lab_utils.dry_run.workload import Call, Observed


class Enough(BaseException):
    """Ends the program: it repeats its calls, or waits for what they would have made."""


@dataclass
class Model:
    """A model that a program calls: an Estimator, and the first call of each mode that it stands for.

    `model_fn` is the program's function for it.
    """

    estimator: Any
    model_fn: Callable
    first: dict[Mode, Call] = field(default_factory=dict)
    calls: list[str] = field(default_factory=list)

    @property
    def trained(self) -> bool:
        """Whether the program trained it."""
        return Mode.TRAIN in self.first

    def __str__(self) -> str:
        where = source.place(self.model_fn).position
        return f"the Estimator with the model_fn of {where}: {', '.join(dict.fromkeys(self.calls))}"


@dataclass
class Recording:
    """What a program made and called.

    Attributes:
        models: those of the Estimators that it called.
        fit: a Keras model, or the step of a loop, and the dataset that it is trained with.
        step: the step of a program of JAX, with its calls.
        calls: in words, in their order: "train(max_steps=1000)".
        observed: what the dry run is told of them, beside what it judges.
        after: why what follows the last call is not judged; "" where the program went on to its end.
        other_program: a program of Python that it was about to start, and the line.
        imports_jax: it has imported JAX.
        without_estimators: why TensorFlow, which it has imported, has no Estimators here; "" where it has.
        traced_only: where it takes gradients in what JAX traces, if it calls no step that trains.
        on_call: is called at each call.
    """

    models: list[Model] = field(default_factory=list)
    fit: tuple[Any, Any] | None = None
    step: jax_runs.Step | None = None
    calls: list[str] = field(default_factory=list)
    observed: Observed = field(default_factory=Observed)
    after: str = ""
    other_program: str = ""
    imports_jax: bool = False
    without_estimators: str = ""
    traced_only: Place = NOWHERE
    on_call: Callable[[], None] = lambda: None

    @property
    def subject(self) -> Model | None:
        """The model that the program trained first, else the first that it called at all."""
        return max(self.models, key=lambda model: model.trained, default=None)

    def note_fit(self, model: Any, dataset: Any, call: str, **shown: Any) -> None:
        """Notes a call of fit or strategy.run, with fields of Observed that it has `shown`.

        Raises:
            Enough: what follows needs its results.
        """
        self.calls.append(call)
        if not self.models:
            self.fit = model, dataset
            self.observed = replace(self.observed, trained_at=caller(), **shown)
        raise Enough(
            "it needs what strategy.run returns, as metrics and sums of the cores' results do"
            if call.startswith("strategy.run")
            else "it needs a trained model"
        )

    def note_steps(self, steps: jax_runs.Steps) -> None:
        """Notes the step of JAX that a program trains with, unless it has called what trains otherwise.

        Raises:
            CannotJudge: several may be meant.
        """
        if self.calls:
            trains = [step for step in steps.found if step.computes_gradients]
            self.observed.not_checked += [f"What it computes with JAX: {step}." for step in trains]
            return
        self.step = steps.chosen()
        if self.step is not None:
            self.calls.append(self.step.name)
            self.observed.trained_at = self.step.called_at
            self.observed.not_checked.append(
                "The program's evaluation and prediction: only the step that trains is judged, and "
                "not whether an evaluation leaves out examples, such as those of a last, shorter "
                "batch."
            )
            others = (step for step in steps.found if step is not self.step)
            trainings = [f"{step}" for step in others if step.computes_gradients]
            self.observed.not_covered = list(dict.fromkeys(trainings))

    def refuse_program(self, command: Any) -> None:
        """Raises Enough where a command runs a program of Python, which would train for real."""
        words = [command] if isinstance(command, str | bytes | os.PathLike) else command
        if program := cells.python_program(" ".join(map(os.fsdecode, words))):
            self.other_program = f"{program} ({caller().position})"
            raise Enough(f"it starts {self.other_program}")
