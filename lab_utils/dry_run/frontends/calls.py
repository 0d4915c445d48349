"""What a program calls on its models: Estimators that share a model are one, and others are told apart."""

import functools
import inspect
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from lab_utils.common import source
from lab_utils.common.source import NOWHERE, Place
from lab_utils.dry_run.frontends import cells, jax_runs
from lab_utils.dry_run.frontends.caller import caller
from lab_utils.dry_run.private import tpu_estimator as _tpu_estimator
from lab_utils.dry_run.records import Mode
from lab_utils.dry_run.workload import Call
from lab_utils.estimator import tpu

_ADDRESS = re.compile(r"grpc://|[\w.-]+:\d+$")
_NOTHING: Mapping[str, Any] = MappingProxyType({})
_MOST_CALLS = 20  # of one program: a loop of train and evaluate has shown all its calls by then


class Enough(BaseException):
    """Ends the program: it repeats its calls, or waits for what they would have made."""


@dataclass
class Model:
    """A model that a program calls: an Estimator, and the first call of each mode that it stands for."""

    estimator: Any
    first: dict[Mode, Call] = field(default_factory=dict)
    calls: list[str] = field(default_factory=list)

    @property
    def trained(self) -> bool:
        """Whether the program trained it."""
        return Mode.TRAIN in self.first

    def __str__(self) -> str:
        where = source.place(model_fn(self.estimator)).position
        return f"the Estimator with the model_fn of {where}: {', '.join(dict.fromkeys(self.calls))}"


@dataclass
class Recording:
    """What a program made and called.

    Attributes:
        models: those of the Estimators that it called.
        fit: a Keras model, or the step of a loop, and the dataset that it is trained with.
        step: the step of a program of JAX, with its calls.
        calls: in words, in their order: "train(max_steps=1000)".
        of_estimators: those of them that were made on Estimators.
        address: the first grpc:// address at which it looked for a TPU; "" for none.
        outside: where the Keras model of `fit` was made, if not in the scope of the program's TPUStrategy.
        trained_at: the line of `fit`.
        given: the arguments of `fit`, by name.
        later_trainings: other calls that train, in the program's text.
        not_checked: sentences on calls that the judged Estimator does not stand for.
        after: why what follows the last call is not judged; "" where the program went on to its end.
        other_program: a program of Python that it was about to start, and the line.
        imports_jax: it has imported JAX.
        traced_only: where it takes gradients in what JAX traces, if it calls no step that trains.
        on_call: is called at each call.
    """

    models: list[Model] = field(default_factory=list)
    fit: tuple[Any, Any] | None = None
    step: jax_runs.Step | None = None
    calls: list[str] = field(default_factory=list)
    of_estimators: list[Call] = field(default_factory=list)
    address: str = ""
    outside: Place = NOWHERE
    trained_at: Place = NOWHERE
    given: Mapping[str, Any] = field(default_factory=dict)
    later_trainings: list[str] = field(default_factory=list)
    not_checked: list[str] = field(default_factory=list)
    after: str = ""
    other_program: str = ""
    imports_jax: bool = False
    traced_only: Place = NOWHERE
    on_call: Callable[[], None] = lambda: None

    @property
    def subject(self) -> Model | None:
        """The model that the program trained first, else the first that it called at all."""
        return max(self.models, key=lambda model: model.trained, default=None)

    def note(self, mode: Mode, estimator: Any, input_fn: Callable, **arguments: Any) -> None:
        """Notes a call of `estimator`; raises Enough where the program goes on and on."""
        call = Call(mode, estimator, input_fn, arguments, caller())
        model = self._model_of(estimator, mode)
        if self._stands_for(model.estimator, estimator, str(call)):
            model.first.setdefault(mode, call)
        model.calls.append(str(call))
        self.calls.append(str(call))
        self.of_estimators.append(call)
        self.on_call()
        if len(self.calls) >= _MOST_CALLS:
            raise Enough(f"it goes on after {_MOST_CALLS} calls")

    def note_address(self, address: Any) -> None:
        """Notes where the program looks for a TPU, if that is an address: a name may mean its own host."""
        for text in address if isinstance(address, list | tuple) else [address]:
            text = os.fsdecode(text) if isinstance(text, str | bytes) else ""
            if _ADDRESS.match(text) and _tpu_estimator.NO_HOST not in text:
                self.address = self.address or text

    def _model_of(self, estimator: Any, mode: Mode) -> Model:
        """The model of an Estimator. Programs make a second one to evaluate, or a new one in each round."""
        for model in self.models:
            if _identity(model.estimator, mode) == _identity(estimator, mode):
                if mode is Mode.TRAIN and not model.trained:
                    _tpu_estimator.take_batch_sizes(estimator, model.estimator)
                    model.estimator = estimator
                return model
        self.models.append(Model(estimator))
        return self.models[-1]

    def _stands_for(self, subject: Any, other: Any, call: str) -> bool:
        """Whether what `other` is called for is judged with the Estimator `subject`."""
        if subject is other or not isinstance(subject, tpu.TPUEstimator):
            return True
        on_host = not isinstance(other, tpu.TPUEstimator) or (
            _tpu_estimator.settings(subject).use_tpu and not _tpu_estimator.settings(other).use_tpu
        )
        sentence = ""
        if on_host:
            sentence = f"{call} of an Estimator with use_tpu=False: the host carries it out."
        elif repr(subject.params) != repr(other.params):
            sentence = f"{call} with params of its own: those of the training stood in."
        if sentence and sentence not in self.not_checked:
            self.not_checked.append(sentence)
        if not on_host:
            _tpu_estimator.take_batch_sizes(subject, other)
        return not on_host

    def note_fit(
        self,
        model: Any,
        dataset: Any,
        call: str,
        outside: Place,
        given: Mapping[str, Any] = _NOTHING,
    ) -> None:
        """Notes a call of fit or strategy.run; raises Enough: what follows needs a trained model."""
        self.calls.append(call)
        if not self.models:
            self.fit, self.outside, self.given = (model, dataset), outside, given
            self.trained_at = caller()
        raise Enough("it needs a trained model")

    def note_steps(self, steps: jax_runs.Steps) -> None:
        """Notes the step of JAX that a program trains with, unless it has called what trains otherwise.

        Raises:
            CannotJudge: several may be meant.
        """
        if self.calls:
            trains = [step for step in steps.found if step.computes_gradients]
            self.not_checked += [f"What it computes with JAX: {step}." for step in trains]
            return
        self.step = steps.chosen()
        if self.step is not None:
            self.calls.append(self.step.name)
            self.trained_at = self.step.called_at
            others = (step for step in steps.found if step is not self.step)
            trainings = [f"{step}" for step in others if step.computes_gradients]
            self.later_trainings = list(dict.fromkeys(trainings))

    def refuse_program(self, command: Any) -> None:
        """Raises Enough where a command runs a program of Python, which would train for real."""
        words = [command] if isinstance(command, str | bytes | os.PathLike) else command
        if program := cells.python_program(" ".join(map(os.fsdecode, words))):
            self.other_program = f"{program} ({caller().position})"
            raise Enough(f"it starts {self.other_program}")


def model_fn(estimator: Any) -> Callable:
    """The program's function for a model."""
    if isinstance(estimator, tpu.TPUEstimator):
        return _tpu_estimator.settings(estimator).model_fn
    return estimator._model_fn


def _identity(estimator: Any, mode: Mode) -> object:
    """What tells the models of two Estimators apart: model_fn's code; to train, all that it works on, too."""
    function, bound = model_fn(estimator), []
    while isinstance(function, functools.partial):
        bound.append((function.args, function.keywords))
        function = function.func
    function = inspect.unwrap(function)
    code = getattr(function, "__code__", function)
    if mode is not Mode.TRAIN:
        return code
    inner = [cell.cell_contents for cell in getattr(function, "__closure__", None) or ()]
    return code, repr((estimator.params, bound, inner, getattr(function, "__self__", None)))
