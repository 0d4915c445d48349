"""The input pipelines: their datasets, how they make batches, and of how many examples.

input_fn is called once more a mode, in a graph of its own, as TPUEstimator calls it.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np

from lab_utils.common.source import NOWHERE, Place, place
from lab_utils.dry_run import remote
from lab_utils.dry_run.facts.blame import BATCHES
from lab_utils.dry_run.graphs import ancestors, called_functions, everywhere
from lab_utils.dry_run.private import tensorflow as _tensorflow
from lab_utils.dry_run.private import tpu_estimator as _tpu_estimator
from lab_utils.dry_run.records import Mode
from lab_utils.dry_run.workload import Trace
from lab_utils.estimator import tf, v1

_ENDLESS = 2**48  # elements: a counter's whole range
_MOST_COUNTED = 200_000  # examples of files: counting them reads them
_COUNTING = v1.ConfigProto(device_count={"GPU": 0}, operation_timeout_in_ms=20_000)
INPUT_FN, DATASET = "input_fn", "the dataset"  # where data come from, in words


@dataclass
class Pipeline:
    """What input_fn made for one mode.

    Attributes:
        graph: the graph that it was made in.
        last: the dataset's last op, None where it returned no dataset.
        shapes: of its features and labels, sizes that are unknown as None.
        batch: the batch size in params.
        batches_a_step: how many elements of one call's dataset the cores take a step.
        cores: that one call feeds.
    """

    graph: tf.Graph
    last: tf.Operation | None
    shapes: list[list[int | None]]
    batch: int
    batches_a_step: int
    cores: int

    @classmethod
    def of(cls, trace: Trace, estimator: Any, input_fn: Callable, times: int = 1) -> "Pipeline":
        """Calls input_fn as TPUEstimator does first in the mode of `trace`, with `times` its global batch."""
        mode = trace.mode
        changes = {f"{mode}_batch_size": times * trace.global_batch} if times > 1 else {}
        with _tpu_estimator.rehearsing(trace.cores) as rehearsal, tf.Graph().as_default() as graph:
            twin = rehearsal.twin(estimator, **changes)
            sharding = _tpu_estimator.sharding(twin, mode.key)
            data = _tpu_estimator.call_input_fn(twin, input_fn, mode.key, 0)
            one_each = sharding.kind == "per host, one batch a core"
            dataset = isinstance(data, tf.data.Dataset)
            leaves = tf.nest.flatten(data.element_spec if dataset else data, expand_composites=True)
            return cls(
                graph,
                data.cardinality().op.inputs[0].op if dataset else None,
                [sizes(leaf.shape) for leaf in leaves if hasattr(leaf, "shape")],
                sharding.batch_size,
                sharding.replicas if one_each else 1,
                sharding.replicas,
            )

    def chain(self) -> list[tf.Operation]:
        """The dataset's ops from its last to its sources."""
        waiting, datasets = [self.last] if self.last is not None else [], []
        while waiting:
            op = waiting.pop(0)
            if op not in datasets:
                datasets.append(op)
                waiting += [t.op for t in op.inputs if t.dtype == tf.variant]
        return datasets

    def last_batch(self) -> tf.Operation | None:
        """The op that makes the batches which the TPU gets."""
        batches = (op for op in self.chain() if op.type in BATCHES)
        return next(batches, None)


@dataclass(frozen=True)
class Link:
    """A dataset of an input pipeline: what it does ("Batch", "ParallelMap"), and its line, if known."""

    kind: str
    where: Place

    @classmethod
    def of(cls, name: str, where: Place) -> "Link":
        """The link of an op, or of a class of tf.data, of that name."""
        return cls(re.sub(r"^_|Dataset(V\d+)?$", "", name), where)

    @property
    def makes_batches(self) -> bool:
        """Whether its elements are batches of the elements before it."""
        return self.kind in _BATCHES


_BATCHES = {name.partition("Dataset")[0] for name in BATCHES}


@dataclass(frozen=True)
class LastBatch:
    """How the batches that the cores get are made.

    Attributes:
        size: examples that one step takes.
        drops: a last, shorter batch is dropped.
        examples: says of how many; infinity for ever, None where nobody knows.
        where: the program's line.
    """

    size: int
    drops: bool
    examples: Callable[[], float | None]
    where: Place

    def fills_none(self) -> bool:
        """Whether there are known to be too few examples for a single batch."""
        number = self.examples() if self.drops else None
        return number is not None and number < self.size

    def rest(self) -> int | None:
        """Examples of a last, shorter batch; 0 where there is none, None where nobody knows."""
        if self.drops:
            return 0
        number = self.examples()
        if number is None:
            return None
        return int(number % self.size) if self.size < number < float("inf") else 0


@dataclass(frozen=True)
class Asked:
    """How many batches the program asks of its data.

    Attributes:
        what: that asks for them: "one call of train".
        need: how many.
        sure: False where it may well ask for fewer.
    """

    what: str
    need: int
    sure: bool


def asked_of(pipeline: Pipeline, mode: Mode, loop: Any, steps: int | None) -> Asked | None:
    """How many batches a TPUEstimator asks of one call's data; None where that is not known.

    Args:
        pipeline: what input_fn makes. Training data that are given once have a rule of their own (TPU218).
        loop: iterations_per_loop. TPUEstimator shortens the last loop.
        steps: those of one call of train or evaluate, if they are known.
    """
    if mode is Mode.TRAIN and not is_repeated(pipeline):
        return None
    if steps is not None and mode in (Mode.TRAIN, Mode.EVAL):
        call = "train" if mode is Mode.TRAIN else "evaluate"
        return Asked(f"one call of {call}", steps, sure=True)
    if mode is Mode.TRAIN and isinstance(loop, int):
        return Asked("one loop on the device", loop, sure=False)
    return None


def last_batch_of(pipeline: Pipeline) -> LastBatch | None:
    """How an input function makes its last batches; None where it makes none, or not of a constant size."""
    op = pipeline.last_batch()
    size = op is not None and tf.get_static_value(input_of(op, "batch_size"))
    if not size:
        return None
    drops = bool(tf.get_static_value(input_of(op, "drop_remainder")))
    source = op.inputs[0].op
    step = int(size) * pipeline.batches_a_step
    return LastBatch(step, drops, cache(partial(number_of_examples, source)), place(op))


# Datasets with the batches of the one behind them, though perhaps in another order or more than once.
_SAME_BATCHES = re.compile(r"_?(Prefetch|ParallelMap|Map|Options|Cache|Repeat|Shuffle)\w*Dataset")


def last_batch_of_dataset(dataset: tf.data.Dataset, where: Place) -> LastBatch | None:
    """The same of a dataset that fit or a strategy is given at `where`."""
    are_all = True
    for each in chain_of_dataset(dataset):
        size, drops = _tensorflow.batches_of_dataset(each)
        if size is not None:
            source = _tensorflow.inputs_of_dataset(each)[0]
            count = partial(size_of_dataset, source) if are_all else lambda: None
            return LastBatch(size, drops, count, where)
        are_all = are_all and bool(_SAME_BATCHES.match(type(each).__name__))
    return None


def has_one_size(dataset: tf.data.Dataset) -> bool:
    """Whether the size of the batches of such a dataset is fixed."""
    specs = [spec for spec in tf.nest.flatten(dataset.element_spec) if hasattr(spec, "shape")]
    return all(spec.shape.rank and spec.shape[0] is not None for spec in specs)


def rest_of_dataset(dataset: tf.data.Dataset) -> int | None:
    """Examples of a last, shorter batch of such a dataset; 0 where there is none, None where nobody knows."""
    if has_one_size(dataset):
        return 0
    batch = last_batch_of_dataset(dataset, NOWHERE)
    return batch.rest() if batch else None


def size_of_dataset(dataset: tf.data.Dataset) -> float | None:
    """The number of its elements; infinity for ever, None where tf.data does not know it."""
    with _tensorflow.eager():
        return _cardinality(int(dataset.cardinality()))


def sizes(shape: Any) -> list[int | None]:
    """The sizes of a shape, unknown ones as None; none of a shape of unknown rank."""
    shape = tf.TensorShape(shape)
    return shape.as_list() if shape.rank else []


def batch_of(graph: tf.Graph) -> tf.Operation | None:
    """The last op of a graph that makes batches: where input_fn returns tensors, not a dataset."""
    return next((op for op in reversed(graph.get_operations()) if op.type in BATCHES), None)


def input_of(op: tf.Operation, name: str) -> tf.Tensor:
    """The input of an op of that name in its definition, where no list stands both before and after it."""
    arguments = list(op.op_def.input_arg)
    index = [argument.name for argument in arguments].index(name)
    lists_before = any(other.number_attr or other.type_list_attr for other in arguments[:index])
    return op.inputs[index - len(arguments) if lists_before else index]


def elements(op: tf.Operation) -> float | None:
    """The number of elements of the dataset that `op` makes; infinity where it repeats for ever.

    None where tf.data does not know it, as of files. Every map is taken to give one element for one, which
    maps of version 1 do not promise.
    """
    if remote.address(op.graph):
        return None
    try:
        graph_def = op.graph.as_graph_def()
        for node in graph_def.node:
            if "preserve_cardinality" in node.attr:
                node.attr["preserve_cardinality"].b = True
        with tf.Graph().as_default() as graph, v1.Session(graph=graph) as session:
            (dataset,) = tf.import_graph_def(graph_def, {}, [op.outputs[0].name])
            number = int(session.run(tf.raw_ops.DatasetCardinality(input_dataset=dataset)))
    except (tf.errors.OpError, ValueError, RuntimeError):
        return None
    return _cardinality(number)


def _cardinality(number: int) -> float | None:
    if number == tf.data.INFINITE_CARDINALITY or number > _ENDLESS:
        return float("inf")
    return None if number == tf.data.UNKNOWN_CARDINALITY else number


def number_of_examples(op: tf.Operation) -> float | None:
    """As `elements`, which files are read for: up to a number of examples, and for a short time."""
    number = elements(op)
    if number is not None or remote.address(op.graph):
        return number
    while op.type in _ONE_FOR_ONE and len(op.inputs):  # decoding changes no number
        op = op.inputs[0].op
    output = op.outputs[0]
    shapes = [tf.TensorShape(shape) for shape in op.get_attr("output_shapes")]
    specs = tuple(map(tf.TensorSpec, shapes, op.get_attr("output_types")))
    try:
        with tf.Graph().as_default() as graph, v1.Session(graph=graph, config=_COUNTING) as session:
            (variant,) = tf.import_graph_def(op.graph.as_graph_def(), {}, [output.name])
            dataset = tf.data.experimental.from_variant(variant, specs).take(_MOST_COUNTED + 1)
            count = dataset.reduce(np.int64(0), lambda number, *_: number + 1)
            session.run(v1.tables_initializer())
            number = int(session.run(count))
    except (tf.errors.OpError, ValueError, RuntimeError, TypeError):
        return None
    return number if number <= _MOST_COUNTED else None


_ONE_FOR_ONE = (
    *("MapDataset", "ParallelMapDataset", "ParallelMapDatasetV2", "PrefetchDataset", "OptionsDataset"),
    *("CacheDataset", "CacheDatasetV2", "ShuffleDataset", "ShuffleDatasetV3", "ModelDataset"),
)  # fmt: skip


def number_of_batches(pipeline: Pipeline) -> float | None:
    """How many batches one call's dataset has for each step; infinity for ever, None where nobody knows."""
    have = elements(pipeline.last) if pipeline.last is not None else None
    return have if have in (None, float("inf")) else have // pipeline.batches_a_step


def is_repeated(pipeline: Pipeline) -> bool:
    """Whether the data are given more than once, somewhere on their way."""
    return any("Repeat" in op.type for op in everywhere(pipeline.graph))


def graphs_of_dataset(dataset: tf.data.Dataset) -> list[Any]:
    """The graphs of the functions of a dataset that fit or a strategy is given, and of those before it."""
    return [
        graph
        for each in chain_of_dataset(dataset)
        for graph in _tensorflow.functions_of_dataset(each)
    ]


def mapped_of_dataset(dataset: tf.data.Dataset) -> list[Any]:
    """The graphs of the functions that such a dataset, and those before it, map over their elements."""
    graphs = map(_tensorflow.function_of_dataset, chain_of_dataset(dataset))
    return [graph for graph in graphs if graph is not None]


def chain_of_dataset(dataset: tf.data.Dataset) -> list[Any]:
    """The dataset, and those that it takes its elements from, from the last to the sources."""
    chain = [dataset]
    for each in chain:
        chain += [other for other in _tensorflow.inputs_of_dataset(each) if other not in chain]
    return chain


def mapped_in(graph: Any) -> list[Any]:
    """The functions that the datasets of a graph map over their examples.

    Numbers alone are no examples yet: a function of them may draw its examples at random.
    """
    datasets = [op for op in everywhere(graph) if "Dataset" in op.type and not _of_draws(op)]
    return [function for op in datasets for function in called_functions(op)]


def _of_draws(op: tf.Operation) -> bool:
    """Whether a dataset op's elements are random numbers, as those that choose among several datasets."""
    datasets = [node for node in ancestors([op]) if "Dataset" in node.type]
    sources = [node for node in datasets if all(t.dtype != tf.variant for t in node.inputs)]
    return bool(sources) and all("Random" in source.type for source in sources)
