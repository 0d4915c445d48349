"""Frontend for a function of one batch, with an example batch or a dataset of batches."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np

from lab_utils.common.figures import counted
from lab_utils.common.source import Place, place, told
from lab_utils.dry_run import elsewhere
from lab_utils.dry_run.facts.base import Facts
from lab_utils.dry_run.facts.batches import share_of
from lab_utils.dry_run.facts.blame import ARGUMENTS
from lab_utils.dry_run.facts.tensorflow import DatasetFacts, StepFacts
from lab_utils.dry_run.frontends import datasets
from lab_utils.dry_run.graphs import ancestors
from lab_utils.dry_run.lower.bridge import Step, leaf_names, to_program
from lab_utils.dry_run.lower.draws import Draws, alike
from lab_utils.dry_run.lower.errors import NOTHING_COMPUTED, CannotLower, InputUnfit, StepRaised
from lab_utils.dry_run.lower.graph_def import input_of
from lab_utils.dry_run.lower.variables import Variable
from lab_utils.dry_run.ops import is_kind
from lab_utils.dry_run.private import tensorflow as _tensorflow
from lab_utils.dry_run.program import Api, Program, Role
from lab_utils.dry_run.records import Mode
from lab_utils.dry_run.workload import Trace, Workload
from lab_utils.estimator import tf


class StepWorkload(Workload):
    """A program whose train step is traced as one function of a batch.

    Attributes:
        dataset: the input pipeline; None where an example batch was given.
        batches: global batches of one size: those of the dataset, or the example.
        step_name: what reports call the step.
        where: the learner's line that the step comes from.
        trained: the variables that are trained; None where TensorFlow's own mark on them says it.
        jit_compile: as of a model of Keras; None of other steps.
        may_be_forward: it need not be a step of training, and is none where it writes no trainable variable.
    """

    dataset: tf.data.Dataset | None
    batches: tf.data.Dataset
    step_name: str
    where: Place
    trainable: Sequence[tf.Variable] | None = None
    jit_compile: bool | None = None
    may_be_forward = False
    framework = "TensorFlow"

    @property
    def feed_place(self) -> Place:
        """The line that trains with the dataset, where a run of the program has shown it."""
        return self.observed.trained_at or Place(text="the dataset")

    def traced(self, cores: int, batch: int | None = None) -> Any:
        """The step as one of `cores` cores runs it: a ConcreteFunction of nests of one core's tensors.

        Raises:
            InputUnfit: the batch cannot be shared by the cores.
            StepRaised: the step raised.
        """

    def facts(self, traces: list[Trace], cores: int) -> list[Facts]:
        """What is known of the train step of a core, and of the dataset that fit validates with."""
        given = self.observed.fit.get("validation_data")
        validation = given if isinstance(given, tf.data.Dataset) else None
        evaluation = DatasetFacts(Mode.EVAL, validation, cores, self.observed, self.feed_place)
        return [StepFacts(self, cores), evaluation]

    def lower(self, cores: int, mode: Mode = Mode.TRAIN, batch: int | None = None) -> Program:
        """The train step, as each of `cores` cores runs it."""
        return self.program(self.traced(cores, batch), cores, batch)

    def lower_alike(self, cores: int, batch: int) -> tuple[Program, Program | None]:
        """The steps of `cores` cores and of one, that draw the same random numbers for an example."""
        many, one = (self.traced(number, batch) for number in (cores, 1))
        draws = alike(many.graph, one.graph, cores, batch // cores)
        program = self.program(many, cores, batch, draws)
        return program, None if program.random else self.program(one, 1, batch, draws)

    def feed(self, cores: int) -> AbstractContextManager[tuple[tf.data.Dataset | None, None]]:
        """The dataset, where one was given; its own first dimension is the batch."""
        return nullcontext((self.dataset, None))

    def specs(self, cores: int, batch: int | None) -> list[Any]:
        """One core's share of each argument of the step, as nests of tf.TensorSpec."""
        spec = self._of_size(batch).element_spec
        arguments = list(spec) if isinstance(spec, tuple) else [spec]
        is_split = self.dataset is not None  # by tf.distribute, into shares that may differ
        return tf.nest.map_structure(lambda tensor: share(tensor, cores, is_split), arguments)

    def program(
        self, traced: Any, cores: int, batch: int | None, draws: Draws | None = None
    ) -> Program:
        """Lowers what `traced` gave; with `draws`, its random numbers are those.

        Raises:
            CannotLower: the step cannot be lowered.
        """
        specs = self.specs(cores, batch)
        with _tensorflow.eager():
            names = [
                leaf
                for role, spec in zip(ARGUMENTS, specs, strict=False)
                for leaf in leaf_names(role, spec)
            ]
            captures = list(traced.graph.captures)
            placeholders = traced.inputs[: len(traced.inputs) - len(captures)]
            feeds = [
                (tensor, input_of(leaf, Role(leaf.split("/")[0]), tensor))
                for tensor, leaf in zip(placeholders, names, strict=True)
            ]
            variables, constants, values = _resources(traced, captures, self.trainable)
        feeds += [(tensor, input_of(tensor.op.name, Role.CONSTANT, tensor)) for tensor in constants]
        results = [tensor for tensor in tf.nest.flatten(traced.outputs) if tensor is not None]
        loss = results.pop(0) if results and results[0].shape.rank == 0 else None
        step = Step(
            traced.graph,
            feeds,
            variables,
            loss,
            {f"result/{number}": tensor for number, tensor in enumerate(results, 1)},
            list(traced.graph.control_outputs),  # ops that must run though no result needs them
            lambda names: {
                name: values[name] for name in [*names, *(t.op.name for t in constants)]
            },
        )
        size = next((spec.shape[0] for spec in tf.nest.flatten(specs) if spec.shape.rank), 1)
        program = to_program(step, self.step_name, Mode.TRAIN, cores, size, draws)
        written = [
            program.inputs[output.input] for output in program.outputs if output.input is not None
        ]
        if self.may_be_forward and not any(variable.trainable for variable in written):
            program.mode = Mode.FORWARD
        program.where = self.where if self.where.file else self.observed.trained_at or self.where
        program.api, program.reads_again, program.may_add_up = Api.STRATEGY, True, True
        program.origin.read = lambda: self._read(cores, batch)
        return program

    def _read(self, cores: int, batch: int | None) -> Iterator[list[np.ndarray]]:
        """Global batches as one part for each core: arrays [cores, batch // cores, ...]."""
        with _tensorflow.eager():
            for example in self._of_size(batch).as_numpy_iterator():
                yield [_parts(np.asarray(leaf), cores) for leaf in tf.nest.flatten(example)]

    def _of_size(self, batch: int | None) -> tf.data.Dataset:
        """The batches, or others of `batch` examples."""
        whole = self.batches
        return whole.unbatch().batch(batch, drop_remainder=True) if batch else whole


class FunctionWorkload(StepWorkload):
    """A function of one batch, with an example batch (features, labels) or a dataset of batches.

    It returns the loss, or a nest of tensors whose first is the loss: this core's mean, or its part of the
    global batch's. Sums over the cores are what its optimizers make under TPUStrategy, or what it asks for
    itself: tf.distribute.get_replica_context().all_reduce, or tf.compat.v1.tpu.cross_replica_sum.
    """

    may_be_forward = True

    def __init__(self, step: Callable, data: Any) -> None:
        self.step = getattr(step, "python_function", step)
        if isinstance(data, tf.data.Dataset):
            self.dataset, batches = data, datasets.whole_batches(data)
        else:
            self.dataset = None
            has_no_labels = isinstance(data, tuple) and data[-1] is None
            example = data[:1] if has_no_labels else data
            # from_tensors would copy a batch that may be as large as the memory.
            with _tensorflow.eager():
                batches = tf.data.Dataset.from_generator(
                    lambda: iter([example]),
                    output_signature=tf.nest.map_structure(_spec, example),
                )
        many = isinstance(batches.element_spec, tuple) and len(batches.element_spec) > 2
        self.batches = batches.map(lambda *batch: (batch,)) if many else batches
        self.where = place(self.step)
        self.step_name = getattr(self.step, "__name__", "step")
        self.name = f"step function of {self.where.position}"

    def traced(self, cores: int, batch: int | None = None) -> Any:
        """The step, traced for its share of the batch."""
        traced = trace_step(self.step, self.specs(cores, batch), cores, self.observed.trained_at)
        if not _computes(traced.graph):
            raise InputUnfit(NOTHING_COMPUTED)
        return traced


def _computes(graph: Any) -> bool:
    """Whether a traced step computes a result, or the value of a variable, from what it takes."""
    needed = ancestors([tensor.op for tensor in graph.outputs] + list(graph.control_outputs))
    takes = any(tensor.op in needed for tensor in graph.inputs)
    return takes and any(not is_kind(op.type, "idle") for op in needed)


def _parts(leaf: np.ndarray, cores: int) -> np.ndarray:
    """A batch as a part for each core, [cores, share, ...]; its last example again where they are uneven."""
    count = share_of(len(leaf), cores)
    rows = np.minimum(np.arange(cores * count), len(leaf) - 1)
    return leaf[rows].reshape(cores, count, *leaf.shape[1:])


def _spec(array: Any) -> tf.TensorSpec:
    return tf.TensorSpec(np.shape(array), np.asarray(array).dtype)


def trace_step(step: Callable, specs: list[Any], cores: int, trained_at: Place) -> Any:
    """step(*specs), nests of one core's tf.TensorSpec, as a ConcreteFunction for one of `cores` cores.

    Raises:
        StepRaised: the step raised; blamed is `trained_at` where none of the program's lines did.
        CannotLower: it raised for what this machine lacks, or for an older version of Keras.
    """
    with _tensorflow.eager(), _tensorflow.silent_log(), _tensorflow.replicas(cores):
        # jit_compile: as in a TPU's program, the gradient of a loop takes its lengths from static shapes.
        python = getattr(step, "python_function", step)
        function = tf.function(python, autograph=True, jit_compile=True)
        try:
            return function.get_concrete_function(*specs)
        except Exception as error:  # whatever the user's function raises is the step's fault
            where = place(error) or trained_at
            if reason := elsewhere.reason(error):
                raise CannotLower(reason, where=where, only_here=True) from error
            raise StepRaised(told(error), where=where) from error


def share(spec: tf.TensorSpec, cores: int, uneven: bool = False) -> tf.TensorSpec:
    """One core's part of a global batch: the first axis divided; the largest part where it may be uneven.

    Raises:
        InputUnfit: the shape is not fixed, or the batch does not divide, or it holds strings.
    """
    if spec.dtype == tf.string:
        raise InputUnfit("the batch holds strings")
    if not spec.shape.is_fully_defined():
        raise InputUnfit(f"a tensor of the batch has no fixed shape: {spec.shape}")
    if not spec.shape.rank or (spec.shape[0] % cores and not uneven):
        raise InputUnfit(
            f"a tensor of shape {spec.shape} cannot be split over {counted(cores, 'core')}"
        )
    return tf.TensorSpec([share_of(spec.shape[0], cores), *spec.shape[1:]], spec.dtype)


def _resources(
    concrete: Any, captures: list[tuple[Any, Any]], trainable: Sequence[tf.Variable] | None
) -> tuple[list[Variable], list[tf.Tensor], dict[str, np.ndarray]]:
    """The variables and the constant tensors that a traced function holds, and the values of both by name."""
    by_handle = {id(variable.handle): variable for variable in concrete.graph.variables}
    handles = None if trainable is None else {id(variable.handle) for variable in trainable}
    variables, constants, values = [], [], {}
    for resource, placeholder in captures:
        if resource.dtype != tf.resource:
            constants.append(placeholder)
            values[placeholder.op.name] = resource.numpy()
            continue
        variable = by_handle.get(id(resource))
        if variable is None:
            raise CannotLower(
                "the step uses a resource that is not a variable, such as a lookup table"
            )
        name = variable.name.split(":")[0]
        while name in values:
            name += "_"
        is_trained = variable.trainable if handles is None else id(resource) in handles
        value = tf.raw_ops.ReadVariableOp(resource=resource, dtype=variable.dtype)
        values[name] = value = np.asarray(value.numpy())
        variables.append(Variable(name, placeholder, value.shape, variable.dtype, is_trained))
    return variables, constants, values
