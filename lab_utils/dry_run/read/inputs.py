"""The input pipelines: TPU211, TPU212, TPU214, TPU216, TPU218, TPU222, TPU225, TPU226, TPU228.

input_fn is called once more a mode, in a graph of its own, as TPUEstimator calls it.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from lab_utils.common.figures import memory
from lab_utils.common.source import Place, place
from lab_utils.dry_run import elsewhere
from lab_utils.dry_run.engine import Unavailable, rule
from lab_utils.dry_run.graphs import attribute, everywhere
from lab_utils.dry_run.private import tensorflow as _tensorflow
from lab_utils.dry_run.private import tpu_estimator as _tpu_estimator
from lab_utils.dry_run.records import Finding, Mode
from lab_utils.dry_run.rules import finding
from lab_utils.dry_run.trace.blame import BATCHES, computed_size
from lab_utils.dry_run.workload import Trace
from lab_utils.estimator import tf, v1

_LARGE = 256 * 2**20  # bytes of one constant; the whole graph may have 2 GiB
_ENDLESS = 2**48  # elements: a counter's whole range


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
                [_sizes(leaf.shape) for leaf in leaves if hasattr(leaf, "shape")],
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


def _sizes(shape: Any) -> list[int | None]:
    shape = tf.TensorShape(shape)
    return shape.as_list() if shape.rank else []


@rule("TPU214", "TPU226", needs=("pipeline", "twice", "input_fn"))
def batch_size(pipeline: Pipeline, twice: Pipeline, input_fn: Callable) -> Iterator[Finding]:
    """A finding where the batches are not of params['batch_size'].

    `twice` is the same pipeline where TPUEstimator asked for twice as much: the sizes that grow
    with it are those of the batch, on whatever axis.
    """
    op = pipeline.last_batch() if pipeline.last is not None else _batch_of(pipeline.graph)
    where = place(op) if op is not None else place(input_fn)
    pairs = [
        (size, other)
        for shape, larger in zip(pipeline.shapes, twice.shapes, strict=True)
        for size, other in zip(shape, larger, strict=len(shape) == len(larger))
    ]
    growing = {size for size, other in pairs if size is not None and size != other}
    if growing:
        # Two or three times as many may be views of a picture; as many times as there are cores is a mistake.
        times = {size / pipeline.batch for size in growing}
        if all(ratio % 1 for ratio in times) or (pipeline.cores > 1 and times == {pipeline.cores}):
            yield finding("TPU214", computed_size(where), asked=pipeline.batch, got=min(growing))
        for shape, larger in zip(pipeline.shapes, twice.shapes, strict=True):
            if shape == larger and shape[:1] == [pipeline.batch]:  # others grow with params
                fixed = _batch_of_shape(pipeline, shape)
                yield finding("TPU226", where if fixed is None else place(fixed))
        return
    sizes = {shape[0] for shape in pipeline.shapes if shape}
    if not sizes or None in sizes:
        return
    if any(pipeline.batch in shape for shape in pipeline.shapes):
        yield finding("TPU226", where)
    else:
        static = op is not None and tf.get_static_value(_input(op, "batch_size"))
        size = int(static) if static else min(sizes)
        yield finding("TPU214", where, asked=pipeline.batch, got=size)


def _batch_of_shape(pipeline: Pipeline, shape: list[int | None]) -> tf.Operation | None:
    """The op that makes batches with a tensor of that shape."""
    for op in pipeline.chain():
        if op.type in BATCHES and shape in map(_sizes, attribute(op, "output_shapes")):
            return op
    return pipeline.last_batch()


def _batch_of(graph: tf.Graph) -> tf.Operation | None:
    """The last op of a graph that makes batches: where input_fn returns tensors, not a dataset."""
    return next((op for op in reversed(graph.get_operations()) if op.type in BATCHES), None)


def _input(op: tf.Operation, name: str) -> tf.Tensor:
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
    if elsewhere.address(op.graph):
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
    if number == tf.data.INFINITE_CARDINALITY or number > _ENDLESS:
        return float("inf")
    return None if number == tf.data.UNKNOWN_CARDINALITY else number


def number_of_batches(pipeline: Pipeline) -> float | None:
    """How many batches one call's dataset has for each step; infinity for ever, None where nobody knows."""
    have = elements(pipeline.last) if pipeline.last is not None else None
    return have if have in (None, float("inf")) else have // pipeline.batches_a_step


@rule("TPU211", needs=("pipeline", "batches", "mode", "loop", "input_fn", "steps"))
def too_short(
    pipeline: Pipeline,
    batches: float | None,
    mode: Mode,
    loop: Any,
    input_fn: Callable,
    steps: int | None,
) -> Iterator[Finding]:
    """A finding where the data, which are repeated, end before the steps do.

    Args:
        batches: of the data.
        loop: iterations_per_loop.
        steps: those of one call of train. Where they are not known, it is a note that the data are shorter
            than a loop on the device, as TPUEstimator shortens the last loop.
    """
    if batches is None:
        return
    where = _place_of_batches(pipeline, input_fn)
    if batches < 1:
        facts = {"have": 0, "what": "one step", "need": 1}
        yield finding("TPU211", where, mode=mode.activity, **facts)
    elif mode is Mode.TRAIN and _is_repeated(pipeline):
        need = loop if steps is None else steps
        if isinstance(need, int) and batches < need:
            what = "one loop on the device" if steps is None else "one call of train"
            facts = {"have": int(batches), "what": what, "need": need, "mode": mode.activity}
            yield finding("TPU211", where, note=steps is None, **facts)


@rule("TPU218", needs=("pipeline", "batches", "loop", "input_fn", "steps"), modes=(Mode.TRAIN,))
def not_repeated(
    pipeline: Pipeline, batches: float | None, loop: Any, input_fn: Callable, steps: int | None
) -> Iterator[Finding]:
    """A finding where the training data are given once; a note where they may be enough for each call.

    Raises:
        Unavailable: it cannot be told.
    """
    enough_for_steps = batches is not None and steps is not None and batches >= steps
    if pipeline.last is None or _is_repeated(pipeline) or batches == 0 or enough_for_steps:
        return
    if any("Generator" in op.type for op in everywhere(pipeline.graph)):
        raise Unavailable("the data come from a Python generator, which may go on for ever or not")
    # Some call train once for each epoch, with as many steps as there are batches.
    enough_for_loop = batches is not None and isinstance(loop, int) and batches >= loop
    where = _place_of_batches(pipeline, input_fn)
    yield finding("TPU218", where, note=enough_for_loop and steps is None)


def _is_repeated(pipeline: Pipeline) -> bool:
    return any("Repeat" in op.type for op in everywhere(pipeline.graph))


def _place_of_batches(pipeline: Pipeline, input_fn: Callable) -> Place:
    op = pipeline.last_batch()
    return place(op) if op is not None else place(input_fn)


@rule("TPU216", needs=("pipeline",), modes=(Mode.TRAIN,))
def shuffling(pipeline: Pipeline) -> Iterator[Finding]:
    """A finding where whole batches are shuffled, and examples never."""
    chain = pipeline.chain()
    types = [op.type for op in chain]
    batch = pipeline.last_batch()
    if batch is None or any("Unbatch" in type for type in types):
        return
    after, before = types[: chain.index(batch)], types[chain.index(batch) + 1 :]
    late = [op for op in chain[: len(after)] if "Shuffle" in op.type]
    if late and not any("Shuffle" in type for type in before):
        yield finding("TPU216", place(late[0]))


@rule("TPU225", needs=("pipeline",), modes=(Mode.EVAL,))
def remainder(pipeline: Pipeline) -> Iterator[Finding]:
    """A note on examples that an evaluation never sees.

    Raises:
        Unavailable: it cannot be told.
    """
    batch = pipeline.last_batch()
    if batch is None:
        return
    size = tf.get_static_value(_input(batch, "batch_size"))
    if not size or not tf.get_static_value(_input(batch, "drop_remainder")):
        return
    number = elements(batch.inputs[0].op)
    if number == float("inf"):
        return
    step = size * pipeline.batches_a_step
    if number is None:
        raise Unavailable(
            "tf.data does not know how many examples the files hold, and drop_remainder drops the last batch "
            f"unless {step} divides their number (TPU225)"
        )
    if rest := number % step:
        yield finding("TPU225", place(batch), dropped=rest, examples=number)


@rule("TPU228", needs=("functions_of_input", "cores", "address"))
def python(graphs: list[Any], cores: int, address: str = "") -> Iterator[Finding]:
    """A finding for each call of Python in the graphs of an input pipeline.

    It is a note where `cores` are those of one host and the program has not named an `address` of its TPU.
    """
    hosts = cores // _tpu_estimator.CORES_PER_HOST
    where = "One host can run it, if your program runs on that host."
    if hosts > 1:
        where = f"A TPU with {cores} cores has {hosts} hosts."
    elif address:
        where = (
            "Your program looks for its TPU at a grpc:// address: the TPU's host runs the input pipeline in "
            "a process of its own."
        )
    for op in (op for graph in graphs for op in everywhere(graph)):
        if "PyFunc" in op.type:
            is_note = not address and hosts <= 1
            yield finding("TPU228", place(op), note=is_note, op=op.type, hosts=where)


def graphs_of_dataset(dataset: tf.data.Dataset) -> list[Any]:
    """The graphs of the functions of a dataset that fit or a strategy is given, and of those before it."""
    waiting, graphs = [dataset], []
    while waiting:
        current = waiting.pop()
        graphs += _tensorflow.functions_of_dataset(current)
        waiting += _tensorflow.inputs_of_dataset(current)
    return graphs


@rule("TPU222", needs=("pipeline",))
def constants_of_input(pipeline: Pipeline) -> Iterator[Finding]:
    """A finding for each large constant of an input pipeline."""
    yield from constants(pipeline.graph)


@rule("TPU222", needs=("graph",))
def constants(graph: Any) -> Iterator[Finding]:
    """A finding for each large constant of a graph."""
    for op in everywhere(graph):
        if op.type == "Const":
            value = op.outputs[0]
            size = (value.shape.num_elements() or 0) * value.dtype.size
            # One value repeated, as the zeros of a gradient, is stored once.
            if size >= _LARGE and (size := op.get_attr("value").ByteSize()) >= _LARGE:
                yield finding("TPU222", place(op), size=memory(size))
