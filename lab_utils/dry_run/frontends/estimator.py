"""Frontend for a TPUEstimator with its input functions."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

from lab_utils.common.figures import counted
from lab_utils.common.source import place, told
from lab_utils.dry_run.facts.tensorflow import EstimatorFacts
from lab_utils.dry_run.facts.traces import trace
from lab_utils.dry_run.facts.training import sum_over_batch
from lab_utils.dry_run.frontends.batches import Feed, fixed_seeds
from lab_utils.dry_run.lower.bridge import Step, placeholders, to_program
from lab_utils.dry_run.lower.draws import Draws, alike
from lab_utils.dry_run.lower.errors import CannotLower
from lab_utils.dry_run.lower.variables import initial_values, variables_of
from lab_utils.dry_run.private import tensorflow as _tensorflow
from lab_utils.dry_run.private import tpu_estimator as _tpu_estimator
from lab_utils.dry_run.program import Program
from lab_utils.dry_run.records import Mode
from lab_utils.dry_run.workload import Inputs, Trace, Workload
from lab_utils.estimator import tf, v1


class EstimatorWorkload(Workload):
    """A TPUEstimator with its input functions."""

    framework = "TPUEstimator"

    def __init__(self, estimator: Any, inputs: Inputs) -> None:
        if not callable(inputs.train):
            kind = type(inputs.train).__name__
            raise TypeError(
                f"a TPUEstimator needs an input_fn, which is a function, but this is a {kind}"
            )
        self.estimator, self.inputs = estimator, inputs
        model_fn = place(_tpu_estimator.settings(estimator).model_fn)
        self.name = f"TPUEstimator with the model_fn of {model_fn.position}"
        self.feed_place = place(inputs.train)
        self._last: dict[tuple, _StepGraph] = {}

    def trace(self, cores: int) -> list[Trace]:
        """The genuine graphs of each mode."""
        return trace(self.estimator, self.inputs, cores=cores, calls=self.observed.judged)

    def facts(self, traces: list[Trace], cores: int) -> list[EstimatorFacts]:
        """What is known of each mode whose graph was begun."""
        what = (traces, self.estimator, self.inputs, self.observed)
        return [EstimatorFacts(trace, *what) for trace in traces]

    def lower(self, cores: int, mode: Mode = Mode.TRAIN, batch: int | None = None) -> Program:
        """One step of `mode`, as each of `cores` cores runs it."""
        return self._build(cores, mode, batch).lower()

    def lower_alike(self, cores: int, batch: int) -> tuple[Program, Program | None]:
        """The train step of `cores` cores and of one, that draw the same random numbers for an example."""
        many, one = (self._build(count, Mode.TRAIN, batch) for count in (cores, 1))
        draws = alike(many.step.graph, one.step.graph, cores, batch // cores)
        program = many.lower(draws)
        return program, None if program.random else one.lower(draws)

    def _build(self, cores: int, mode: Mode, batch: int | None) -> "_StepGraph":
        """The graph of a step. Of those of many cores only the last train step's is held: its variables'
        values are large, and the comparison with one core takes it again.
        """
        settings = _tpu_estimator.settings(self.estimator)
        batch = batch or settings.batch_size(mode)
        name = cores, batch, mode
        if name in self._last:
            return self._last[name]
        graph = _StepGraph(self.estimator, self.inputs.of(mode), cores, mode, batch)
        if mode is Mode.TRAIN:
            loop = settings.config.tpu_config.iterations_per_loop
            graph.least_steps = self.observed.steps() or (loop if isinstance(loop, int) else None)
        if mode is Mode.TRAIN and cores > 1:
            self._last = {name: graph}
        return graph

    @contextmanager
    def feed(self, cores: int) -> Iterator[tuple[Callable[[], Any], int]]:
        """Context manager: the first input_fn as one host calls it, and the examples in its batches.

        It is training's, but for a program that was seen to train nothing.
        """
        mode = self.observed.first_mode
        with _tpu_estimator.rehearsing(cores, aloud=True) as rehearsal:
            twin = rehearsal.twin(self.estimator)
            call = partial(_tpu_estimator.call_input_fn, twin, self.inputs.of(mode), mode.key, 0)
            yield call, _tpu_estimator.sharding(twin, mode.key).batch_size


def lower_estimator(
    estimator: Any,
    input_fn: Callable,
    *,
    cores: int,
    mode: Mode = Mode.TRAIN,
    global_batch: int | None = None,
) -> Program:
    """Lowers one step of a TPUEstimator, which is left unchanged, as each of `cores` cores runs it.

    The step is model_fn's, called as TPUEstimator calls it inside a replica's program. Host functions
    (host_call, metric_fn) are not part of it; their tensors are among its outputs.

    Args:
        input_fn: gives the shapes now, and the batches when the program is run.
        cores: of the program; 1 for the whole global batch on one core.
        mode: TRAIN, EVAL or PREDICT.
        global_batch: in place of the batch size that the estimator was constructed with.

    Raises:
        InputUnfit: input_fn has no fixed shapes, or its batches do not divide among the cores.
        CannotLower: the step cannot be built or lowered; its `finding()` says what to fix.
        TypeError: `estimator` is not a TPUEstimator.
    """
    return EstimatorWorkload(estimator, Inputs(input_fn)).lower(cores, Mode(mode), global_batch)


@dataclass
class _StepGraph:
    """One step of a TPUEstimator as a graph. Making it raises what lower_estimator raises.

    `least_steps` is as `Program` has it.
    """

    estimator: Any
    input_fn: Callable
    cores: int
    mode: Mode
    global_batch: int | None = None
    least_steps: int | None = None

    def __post_init__(self) -> None:
        settings = _tpu_estimator.settings(self.estimator)
        self.batch = self.global_batch or settings.batch_size(self.mode)
        if not self.batch or self.batch % self.cores:
            raise CannotLower(
                f"a global batch of {self.batch} cannot be split over {counted(self.cores, 'core')}"
            )
        width = settings.config.tpu_config.num_cores_per_replica or 1
        if width > 1:
            raise CannotLower(
                f"a copy of the model takes {width} cores (num_cores_per_replica), and the dry run "
                "cannot lower a step that is divided in this way",
                only_here=True,
            )
        key, changes = self.mode.key, {f"{self.mode}_batch_size": self.batch}
        with _tpu_estimator.rehearsing(self.cores) as rehearsal:
            twin = rehearsal.twin(self.estimator, any_cores=True, **changes)
            try:
                self.feed = Feed(twin, self.input_fn, key, self.cores)
                with tf.Graph().as_default(), fixed_seeds(twin.config.tf_random_seed):
                    self.step = _step(twin, key, self.feed, self.cores)
            except CannotLower:
                raise
            except Exception as error:  # whatever the user's functions raise is the step's fault
                raise CannotLower(told(error), where=place(error)) from error
        self.where = place(settings.model_fn)

    def lower(self, draws: Draws | None = None) -> Program:
        """The step as a program; with `draws`, its random numbers are those."""
        with _tensorflow.silent_log():
            share, name = self.batch // self.cores, f"{self.mode} step"
            program = to_program(self.step, name, self.mode, self.cores, share, draws)
        program.origin.read, program.where = self.feed.read, self.where
        program.least_steps = self.least_steps
        if (op := sum_over_batch(self.step.loss, program.per_core_batch)) is not None:
            program.place_of_sum = place(op)
        return program


def _step(estimator: Any, key: str, feed: Feed, cores: int) -> Step:
    """Calls model_fn in the default graph; `key` is the mode as Estimator names it."""
    features, feeds = placeholders(feed.features, "feature")
    labels, label_feeds = (None, []) if feed.labels is None else placeholders(feed.labels, "label")
    _tpu_estimator.create_global_step(estimator)
    with _tensorflow.core(cores):
        spec = _tpu_estimator.call_model_fn(estimator, key, features, labels)
        host = _host_tensors(spec)
        loss = None if spec.loss is None else tf.identity(spec.loss)
    if getattr(spec, "scaffold_fn", None):
        spec.scaffold_fn()  # may change initializers, as tf.train.init_from_checkpoint does
    graph = v1.get_default_graph()
    trains = spec.train_op is not None and key == "train"
    updates = [getattr(spec.train_op, "op", spec.train_op)] if trains else []
    start = partial(initial_values, graph)
    return Step(graph, feeds + label_feeds, variables_of(graph), loss, host, updates, start)


def _host_tensors(spec: Any) -> dict[str, tf.Tensor]:
    """The tensors that leave the core, by name: for host_call, metric_fn and predictions."""
    calls = {name: getattr(spec, name, None) for name in ("host_call", "eval_metrics")}
    tensors_of = {name: call[1] for name, call in calls.items() if call}
    if spec.predictions is not None and spec.mode == "infer":
        tensors_of["predictions"] = spec.predictions
    return {
        f"{name}/{number}": tf.convert_to_tensor(tensor)
        for name, tensors in tensors_of.items()
        for number, tensor in enumerate(tf.nest.flatten(tensors))
    }
