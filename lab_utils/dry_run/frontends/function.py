"""Frontend for a function of one batch, with an example batch or a dataset of batches."""

import itertools
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np

from lab_utils.common.figures import counted
from lab_utils.common.source import Place, place, told
from lab_utils.dry_run.frontends import datasets
from lab_utils.dry_run.lower.bridge import Step, leaf_names, to_program
from lab_utils.dry_run.lower.draws import Draw, alike
from lab_utils.dry_run.lower.errors import CannotLower, InputUnfit, StepRaised
from lab_utils.dry_run.lower.graph_def import input_of
from lab_utils.dry_run.lower.variables import Variable
from lab_utils.dry_run.private import tensorflow as _tensorflow
from lab_utils.dry_run.program import Program, Role
from lab_utils.dry_run.read.stage import read_step
from lab_utils.dry_run.records import Finding, Mode
from lab_utils.dry_run.rules import finding
from lab_utils.dry_run.traced import Trace
from lab_utils.dry_run.workload import Workload
from lab_utils.estimator import tf


class StepWorkload(Workload):
    """A program whose step is traced as one function of a batch."""

    dataset: tf.data.Dataset | None
    feed_place = Place(text="the dataset")

    def traced(self, cores: int, mode: Mode = Mode.TRAIN, global_batch: int | None = None) -> Any:
        """The step as one of `cores` cores runs it: a ConcreteFunction of nests of one core's tensors."""

    def program(
        self,
        traced: Any,
        cores: int,
        mode: Mode,
        global_batch: int | None,
        draws: dict[str, Draw] | None = None,
    ) -> Program:
        """Lowers what `traced` gave; with `draws`, its random numbers are those."""

    def lower(
        self, cores: int, mode: Mode = Mode.TRAIN, global_batch: int | None = None
    ) -> Program:
        """One step of `mode`, as each of `cores` cores runs it."""
        return self.program(self.traced(cores, mode, global_batch), cores, mode, global_batch)

    def lower_alike(self, cores: int, global_batch: int) -> tuple[Program, Program]:
        """The steps of `cores` cores and of one, that draw the same random numbers for an example."""
        many, one = (self.traced(number, Mode.TRAIN, global_batch) for number in (cores, 1))
        draws = alike(many.graph, one.graph, cores, global_batch // cores)
        return (
            self.program(many, cores, Mode.TRAIN, global_batch, draws),
            self.program(one, 1, Mode.TRAIN, global_batch, draws),
        )

    def feed(self, cores: int) -> AbstractContextManager[tuple[tf.data.Dataset | None, None]]:
        """The dataset, where one was given; its own first dimension is the batch."""
        return nullcontext((self.dataset, None))


class FunctionWorkload(StepWorkload):
    """A function of one batch, with an example batch (features, labels) or a dataset of batches.

    It returns the loss, or a nest of tensors whose first is the loss. Sums over the cores are what it asks
    for itself: tf.distribute.get_replica_context().all_reduce, or tf.compat.v1.tpu.cross_replica_sum.
    """

    def __init__(self, step: Callable, data: Any) -> None:
        self.step = step
        self.dataset = data if isinstance(data, tf.data.Dataset) else None
        self.most_steps = 1 if self.dataset is None else None
        batch = next(iter(data)) if self.dataset is not None else data
        arguments = batch if isinstance(batch, tuple) and len(batch) <= 2 else (batch,)
        self.batch = tuple(argument for argument in arguments if argument is not None)
        self.where = place(getattr(step, "python_function", step))
        self.name = f"step function of {self.where.position}"

    def read(self, traces: list[Trace], cores: int) -> list[Finding]:
        """What the step of a core holds that a TPU would refuse."""
        if self.dataset is not None and datasets.has(self.dataset, "TPU119"):
            where = datasets.origin(self.dataset, "TPU119") or self.feed_place
            return [finding("TPU119", where, source="the dataset")]
        return read_step(self.traced(cores))

    def traced(self, cores: int, mode: Mode = Mode.TRAIN, global_batch: int | None = None) -> Any:
        """The step, traced for its share of the example batch."""
        arrays = self._arrays(global_batch)
        specs = tf.nest.map_structure(
            lambda array: share(tf.TensorSpec(array.shape, array.dtype), cores), arrays
        )
        return trace_step(self.step, list(specs), cores)

    def program(
        self,
        traced: Any,
        cores: int,
        mode: Mode,
        global_batch: int | None,
        draws: dict[str, Draw] | None = None,
    ) -> Program:
        """The step, which reads the example batch over and over, or the dataset."""
        python = getattr(self.step, "python_function", self.step)
        name = getattr(python, "__name__", "step")
        program = lower_traced(
            traced, ["feature", "label"], name=name, mode="train", cores=cores, draws=draws
        )
        program.where, program.one_batch = self.where, True
        program.origin.read = lambda: self._read(program.global_batch, cores, global_batch)
        if not any(each.role == Role.VARIABLE for each in program.outputs):
            program.mode = Mode.FORWARD  # it changes nothing: no step of training
        return program

    def _arrays(self, size: int | None) -> tuple[Any, ...]:
        """The example batch as arrays, cut or repeated to `size` examples."""
        arrays = tf.nest.map_structure(np.asarray, self.batch)
        if size is None:
            return arrays
        return tf.nest.map_structure(lambda array: array[np.arange(size) % len(array)], arrays)

    def _read(self, batch: int, cores: int, size: int | None) -> Iterator[list[np.ndarray]]:
        """Global batches: of the dataset, or the example again and again."""
        batches = itertools.repeat(self._arrays(size))
        if self.dataset is not None:
            examples = self.dataset.unbatch().batch(batch, drop_remainder=True)
            batches = examples.as_numpy_iterator()
        for each in batches:
            yield [split(array, cores) for array in tf.nest.flatten(each)]


def trace_step(step: Callable, specs: list[Any], cores: int) -> Any:
    """step(*specs), nests of one core's tf.TensorSpec, as a ConcreteFunction for one of `cores` cores.

    Raises:
        StepRaised: the step raised.
    """
    with _tensorflow.eager(), _tensorflow.caught_log(), _tensorflow.replicas(cores):
        # jit_compile: as in a TPU's program, the gradient of a loop takes its lengths from static shapes.
        python = getattr(step, "python_function", step)
        function = tf.function(python, autograph=True, jit_compile=True)
        try:
            return function.get_concrete_function(*specs)
        except Exception as error:  # whatever the user's function raises is the step's fault
            raise StepRaised(told(error), where=place(error)) from error


def lower_traced(
    concrete: Any,
    roles: list[str],
    *,
    name: str,
    mode: str,
    cores: int,
    trained: Sequence[tf.Variable] | None = None,
    draws: dict[str, Draw] | None = None,
) -> Program:
    """Lowers what `trace_step` gave; `roles` are those of its arguments.

    Raises:
        CannotLower: the step cannot be lowered.
    """
    specs = concrete.structured_input_signature[0]
    with _tensorflow.eager():
        names = [
            leaf
            for role, spec in zip(roles, specs, strict=False)
            for leaf in leaf_names(role, spec)
        ]
        captures = list(concrete.graph.captures)
        placeholders = concrete.inputs[: len(concrete.inputs) - len(captures)]
        fed = [
            (tensor, input_of(leaf, Role(leaf.split("/")[0]), tensor))
            for tensor, leaf in zip(placeholders, names, strict=True)
        ]
        variables, constants, values = _held(concrete, captures, trained)
    results = [each for each in tf.nest.flatten(concrete.outputs) if each is not None]
    whole = Step(
        concrete.graph,
        fed + [(tensor, input_of(tensor.op.name, Role.CONSTANT, tensor)) for tensor in constants],
        variables,
        results[0] if results else None,
        {f"result/{number}": tensor for number, tensor in enumerate(results[1:], 1)},
        list(concrete.graph.control_outputs),  # ops that must run though no result needs them
        lambda names: {name: values[name] for name in [*names, *(t.op.name for t in constants)]},
    )
    batch = next((spec.shape[0] for spec in tf.nest.flatten(specs) if spec.shape.rank), 1)
    return to_program(whole, name=name, mode=mode, cores=cores, per_core_batch=batch, draws=draws)


def share(spec: tf.TensorSpec, cores: int) -> tf.TensorSpec:
    """One core's part of a global batch: the first axis divided.

    Raises:
        InputUnfit: the shape is not fixed, or the batch does not divide, or it holds strings.
    """
    if spec.dtype == tf.string:
        raise InputUnfit("the batch holds strings")
    if not spec.shape.is_fully_defined():
        raise InputUnfit(f"a tensor of the batch has no fixed shape: {spec.shape}")
    if not spec.shape.rank or spec.shape[0] % cores:
        raise InputUnfit(
            f"a tensor of shape {spec.shape} cannot be split over {counted(cores, 'core')}"
        )
    return tf.TensorSpec([spec.shape[0] // cores, *spec.shape[1:]], spec.dtype)


def split(array: np.ndarray, cores: int) -> np.ndarray:
    """A global batch as one part for each core: [cores, batch // cores, ...]."""
    return array.reshape(cores, array.shape[0] // cores, *array.shape[1:])


def _held(
    concrete: Any, captures: list[tuple[Any, Any]], trained: Sequence[tf.Variable] | None
) -> tuple[list[Variable], list[tf.Tensor], dict[str, np.ndarray]]:
    """The variables and the constant tensors that a traced function holds, and the values of both by name."""
    known = {id(each.handle): each for each in concrete.graph.variables}
    chosen = None if trained is None else {id(each.handle) for each in trained}
    variables, constants, values = [], [], {}
    for held, placeholder in captures:
        if held.dtype != tf.resource:
            constants.append(placeholder)
            values[placeholder.op.name] = held.numpy()
            continue
        variable = known.get(id(held))
        if variable is None:
            raise CannotLower(
                "the step uses a resource that is not a variable, such as a lookup table"
            )
        name = variable.name.split(":")[0]
        while name in values:
            name += "_"
        is_trained = variable.trainable if chosen is None else id(held) in chosen
        value = tf.raw_ops.ReadVariableOp(resource=held, dtype=variable.dtype).numpy()
        values[name] = np.asarray(value)
        variables.append(
            Variable(name, placeholder, values[name].shape, variable.dtype, is_trained)
        )
    return variables, constants, values
