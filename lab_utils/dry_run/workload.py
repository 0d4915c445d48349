"""What can be judged: the interface that every frontend gives its kind of program."""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Protocol

from lab_utils.common.source import NOWHERE, Place
from lab_utils.dry_run.program import Comparison, Program
from lab_utils.dry_run.records import Mode


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

    def borrows(self, mode: Mode) -> bool:
        """Whether training's input function stands in for that of `mode`."""
        return getattr(self, mode) is None


@dataclass(frozen=True)
class Call:
    """A call of train, evaluate, predict or an export that a program made on an Estimator.

    Attributes:
        mode: TRAIN, EVAL, PREDICT or SERVING.
        estimator: the Estimator that it was made on, which need not be the judged one.
        input_fn: its input function (of SERVING: the receiver function).
        arguments: the others, by name.
        place: its line.
    """

    mode: Mode
    estimator: Any
    input_fn: Callable
    arguments: Mapping[str, Any]
    place: Place

    def __str__(self) -> str:
        said = {name: self.arguments.get(name) for name in ("steps", "max_steps")}
        words = (f"{name}={value}" for name, value in said.items() if value is not None)
        method = "evaluate" if self.mode is Mode.EVAL else self.mode
        return f"{method}({', '.join(words)})"

    @property
    def hooks(self) -> list[Any]:
        """The hooks that it was given."""
        return list(self.arguments.get("hooks") or ())


@dataclass
class Observed:
    """What a run of a program has shown, beside what is judged; nothing where objects were handed over.

    Attributes:
        calls: those of its Estimators, in their order.
        judged: the first call of each mode that the judged Estimator stands for.
        address: where it looks for its TPU, "grpc://10.0.0.2:8470"; "" where it named no address.
        outside: where it made the Keras model that it trains, if it did so outside of strategy.scope().
        trained_at: where it fits that model, or runs the step of a loop.
        fit: the arguments of that fit, by name; none of a loop.
        begins_again: that fit reads the data from their beginning in each epoch, as Keras 3 does.
        is_compiled: the step of a loop stands in a tf.function.
        not_checked: sentences on what is left out.
        not_judged: the models that it trains or evaluates besides, and what to do: there is no verdict.
        not_covered: what it trains after the judged part, which the verdict does not cover.
    """

    calls: list[Call] = field(default_factory=list)
    judged: dict[Mode, Call] = field(default_factory=dict)
    address: str = ""
    outside: Place = NOWHERE
    trained_at: Place = NOWHERE
    fit: Mapping[str, Any] = field(default_factory=dict)
    begins_again: bool = False
    is_compiled: bool = True
    not_checked: list[str] = field(default_factory=list)
    not_judged: list[str] = field(default_factory=list)
    not_covered: list[str] = field(default_factory=list)

    def may_call(self, mode: Mode) -> bool:
        """Whether the judged Estimator is called for `mode`, as far as is known."""
        return not self.judged or mode in self.judged

    @property
    def first_mode(self) -> Mode:
        """Training, but for an Estimator that is called for evaluation or prediction only."""
        modes = (Mode.TRAIN, Mode.EVAL, Mode.PREDICT)
        return next((mode for mode in modes if self.may_call(mode)), Mode.TRAIN)

    def steps(self, mode: Mode = Mode.TRAIN) -> int | None:
        """The most steps that one call of train asks of the judged input function; None: not known.

        With max_steps, those count that earlier calls have trained. Of another mode: the first call's.
        """
        first = self.judged.get(mode)
        if mode is not Mode.TRAIN:
            steps = first.arguments.get("steps") if first else None
            return steps if isinstance(steps, int) else None
        asked, reached = [], 0
        for call in self.calls if first else ():
            if call.mode is Mode.TRAIN and call.estimator.model_dir == first.estimator.model_dir:
                steps, until = (call.arguments.get(name) for name in ("steps", "max_steps"))
                if steps is None and until is not None:
                    steps = max(0, until - reached)
                reached += steps or 0
                asked += [int(steps)] if steps and call.input_fn is first.input_fn else []
        return max(asked, default=None)


@dataclass
class Trace:
    """One mode's graph, as far as it could be built.

    Attributes:
        mode: TRAIN, EVAL, PREDICT or SERVING.
        cores: of the TPU system that the estimator was told of.
        replicas: copies of the model on them, fewer where a copy takes several cores; 0 if not known.
        global_batch: the batch size that the constructor got for this mode.
        graph: the whole graph, there also after an error (None if it fell before input_fn).
        core_graph: the graph in which model_fn ran, one core's step (in serving, the whole graph).
        given: what input_fn returned, a dataset as the structure of its elements.
        features, labels: what model_fn got.
        spec: what model_fn returned (None if it raised).
        error: the genuine exception, with its traceback.
        error_at: the line to blame for it, where the exception passed through none of the learner's.
        refused_fetch: what a session says to a hook that fetches what is not there, and the line.
        unknown_fetches: sentences on the hooks of which it is not known what they fetch.
        borrowed_input: eval or predict was traced with the training input_fn.
        model_fn, input_fn: the functions that were called.
        probe: no input_fn was given for this mode, and the training one is tried. Batch sizes are set
            by habit: an error is kept only where model_fn came as far as this mode's own results.
        parts: the arguments that model_fn gave to the spec that it made last, raising or not.
        made_at: the learner's line that made it.
        estimator_at: the learner's line that made the Estimator, where a run of the program has shown it.
        not_checked: what could not be told of this mode, and why.
    """

    mode: Mode
    cores: int
    global_batch: int | None
    graph: Any = None
    core_graph: Any = None
    given: Any = None
    features: Any = None
    labels: Any = None
    spec: Any = None
    error: Exception | None = None
    error_at: Place = NOWHERE
    refused_fetch: tuple[Exception, Place] | None = None
    unknown_fetches: list[str] = field(default_factory=list)
    borrowed_input: bool = False
    probe: bool = False
    replicas: int = 0
    parts: frozenset[str] = frozenset()
    made_at: Place = NOWHERE
    estimator_at: Place = NOWHERE
    not_checked: list[str] = field(default_factory=list)
    model_fn: Callable | None = None
    input_fn: Callable | None = None

    @property
    def per_core_batch(self) -> int | None:
        """The batch of one core, or None where there is no global batch or it does not divide."""
        replicas = self.replicas or self.cores
        if not self.global_batch or self.global_batch % replicas:
            return None
        return self.global_batch // replicas


class Workload(Protocol):
    """A program with its data, as a frontend presents it to the stages.

    Attributes:
        name: what the report calls it.
        framework, backend: what it is written with, and what computes it: "Keras 3" and "TensorFlow".
        feed_place: the learner's own place of the input pipeline.
        observed: what a run of its program has shown.
        no_feed: why there is no input pipeline to measure, where there is none.
        labs: by the number of a rule's lab that of the lab which teaches it to those who write such programs.
    """

    no_feed: str = "there is only an example batch, no input pipeline"
    name: str
    framework: str
    backend: str = "TensorFlow"
    feed_place: Place
    observed: Observed = Observed()
    labs: Mapping[str, str] = MappingProxyType({})

    def trace(self, cores: int) -> list[Trace]:
        """The graphs that TPUEstimator builds, of each mode; none where the program is another."""
        return []

    def facts(self, traces: list[Trace], cores: int) -> list[Any]:
        """What is known of each mode before a compilation: a subclass of engine.Facts for each."""
        return []

    def lower(self, cores: int, mode: Mode = Mode.TRAIN, batch: int | None = None) -> Program:
        """One step of `mode`, as each of `cores` cores runs it; `batch`: the global one, if not its own.

        Raises:
            CannotLower: as lower/errors.py says.
        """

    def lower_alike(self, cores: int, batch: int) -> tuple[Program, Program | None]:
        """The train step of `cores` cores, and of one with the same random numbers; None if some differ."""

    def comparison(self, share: int) -> Comparison:
        """A step of JAX for virtual cores, with a part 1/`share` of its batch.

        Raises:
            CannotLower: it cannot be run here.
        """

    def feed(self, cores: int) -> AbstractContextManager[tuple[Any, int | None]]:
        """The input pipeline as one host reads it (None where there is none), and its batch size."""
        return nullcontext((None, None))
