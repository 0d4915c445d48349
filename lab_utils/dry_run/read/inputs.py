"""The input pipelines: TPU211, TPU212, TPU214, TPU216, TPU218, TPU222, TPU225, TPU226.

input_fn is called once more a mode, in a graph of its own, as TPUEstimator calls it.
"""

import inspect
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from lab_utils.dry_run.private import tensorflow as _tensorflow
from lab_utils.dry_run.private import tpu_estimator as _tpu_estimator
from lab_utils.dry_run.read.flow import everywhere
from lab_utils.dry_run.records import Finding
from lab_utils.dry_run.rules import finding
from lab_utils.dry_run.trace.blame import BATCHES
from lab_utils.dry_run.trace.stage import twin
from lab_utils.estimator import tf, v1
from lab_utils.figures import memory
from lab_utils.source import place

_LARGE = 256 * 2**20  # bytes of one constant; the whole graph may have 2 GiB


class _Watched(dict):
    """params that note whether their batch size is read; copies note it at the same place."""

    def __init__(self, items: dict, read: set) -> None:
        super().__init__(items)
        self._read = read

    def __bool__(self) -> bool:
        return True  # an empty one would be replaced by a plain dict

    def __getitem__(self, key: Any) -> Any:
        self._read.add(key)
        return super().__getitem__(key)

    def get(self, key: Any, default: Any = None) -> Any:
        self._read.add(key)
        return super().get(key, default)

    def __deepcopy__(self, memo: dict) -> "_Watched":
        return _Watched(dict(self), self._read)


@dataclass
class Pipeline:
    """What input_fn made for one mode.

    Attributes:
        graph: the graph that it was made in.
        data: what it returned.
        last: the dataset's last op, None where it returned no dataset.
        asked: the batch size in params.
        reads_batch_size: whether it looked at that.
        batches_a_step: how many elements of one call's dataset the cores take a step.
        elements: of the dataset; None where unknown, infinity where it repeats for ever.
        examples: the same of what goes into the last batch op.
    """

    graph: tf.Graph
    data: Any
    last: tf.Operation | None
    asked: int
    reads_batch_size: bool
    batches_a_step: int
    elements: float | None = None
    examples: float | None = None

    @classmethod
    def of(cls, estimator: Any, input_fn: Callable, mode: str, cores: int) -> "Pipeline":
        """Calls input_fn as TPUEstimator does for the first time in `mode`."""
        mode = "infer" if mode == "predict" else mode
        read: set = set()
        params = _tpu_estimator.settings(estimator).params
        if isinstance(params, dict):
            params = _Watched(params, read)
        with (
            tempfile.TemporaryDirectory(prefix="dry_run_") as model_dir,
            _tensorflow.caught_log(),
            _tpu_estimator.tpu_system(cores),
            tf.Graph().as_default() as graph,
        ):
            built = twin(estimator, model_dir, params=params)
            sharding = _tpu_estimator.sharding(built, mode)
            data = _tpu_estimator.call_input_fn(built, input_fn, mode, 0)
            one_each = sharding.kind == "per host, one batch a core"
            pipeline = cls(
                graph,
                data,
                data.cardinality().op.inputs[0].op if isinstance(data, tf.data.Dataset) else None,
                sharding.batch_size,
                "batch_size" in read or not isinstance(params, dict),
                sharding.replicas if one_each else 1,
            )
            pipeline.elements = _elements(pipeline.last)
            batch = pipeline.last_batch()
            pipeline.examples = _elements(batch.inputs[0].op) if batch is not None else None
        return pipeline

    def chain(self) -> list[tf.Operation]:
        """The dataset's ops from its last to its sources."""
        left, found = [self.last] if self.last is not None else [], []
        while left:
            op = left.pop(0)
            if op not in found:
                found.append(op)
                left += [t.op for t in op.inputs if t.dtype == tf.variant]
        return found

    def last_batch(self) -> tf.Operation | None:
        """The op that makes the batches which the TPU gets."""
        batches = (op for op in self.chain() if op.type in BATCHES)
        return next(batches, None)


def _elements(op: tf.Operation | None) -> float | None:
    """The number of elements of the dataset that `op` makes, as Pipeline.elements."""
    if op is None:
        return None
    try:
        with v1.Session(graph=op.graph) as session:
            number = int(session.run(tf.raw_ops.DatasetCardinality(input_dataset=op.outputs[0])))
    except (tf.errors.OpError, ValueError, RuntimeError):
        return None
    if number == tf.data.INFINITE_CARDINALITY:
        return float("inf")
    return None if number == tf.data.UNKNOWN_CARDINALITY else number


def batch_size(pipeline: Pipeline, input_fn: Callable) -> Iterator[Finding]:
    """A finding where the batches are not of params['batch_size']."""
    if pipeline.last is None:
        return
    op = pipeline.last_batch()
    where = place(op) if op is not None else place(input_fn)
    shapes = [spec.shape for spec in tf.nest.flatten(pipeline.data.element_spec)]
    sizes = {shape.as_list()[0] for shape in shapes if shape.rank}
    if len(sizes) == 1 and None not in sizes and sizes != {pipeline.asked}:
        yield finding("TPU214", where, asked=pipeline.asked, got=sizes.pop())
    elif not pipeline.reads_batch_size:
        yield finding("TPU226", where)


def length(pipeline: Pipeline, mode: str, loop: int, input_fn: Callable) -> Iterator[Finding]:
    """A finding where the data end before the steps do; `loop`: iterations_per_loop."""
    if pipeline.last is None:
        return
    op = pipeline.last_batch()
    where = place(op) if op is not None else place(input_fn)
    need = loop if mode == "train" else 1
    if pipeline.elements is not None and pipeline.elements // pipeline.batches_a_step < need:
        have = int(pipeline.elements // pipeline.batches_a_step)
        yield finding("TPU211", where, have=have, need=need, **_LONGER[mode])
    elif mode == "train" and pipeline.elements != float("inf"):
        types = {op.type for op in everywhere(pipeline.graph)}
        if not any("Repeat" in type or "Generator" in type for type in types):
            yield finding("TPU218", where)


_LONGER = {
    "train": {
        "mode": "training",
        "hint": "Repeat the training data: dataset.repeat() before batch().",
    },
    "eval": {
        "mode": "evaluation",
        "hint": "Make eval_batch_size no larger than the number of examples, and ask for "
        "number of examples // eval_batch_size steps.",
    },
    "predict": {
        "mode": "prediction",
        "hint": "Leave out drop_remainder: TPUEstimator itself pads the last batch of prediction.",
    },
}


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


def remainder(pipeline: Pipeline) -> Iterator[Finding]:
    """A note on examples that an evaluation never sees."""
    batch, examples = pipeline.last_batch(), pipeline.examples
    if batch is None or examples in (None, float("inf")):
        return
    inputs = {arg.name: t for arg, t in zip(batch.op_def.input_arg, batch.inputs, strict=False)}
    size = tf.get_static_value(inputs["batch_size"])
    if size and examples % size and tf.get_static_value(batch.inputs[-1]):
        yield finding("TPU225", place(batch), dropped=examples % size, examples=examples)


def constants(graph: Any) -> Iterator[Finding]:
    """A finding for each large constant of a graph."""
    for op in everywhere(graph):
        if op.type == "Const":
            value = op.outputs[0]
            size = (value.shape.num_elements() or 0) * value.dtype.size
            if size >= _LARGE:
                yield finding("TPU222", place(op), size=memory(size))


def parameters(input_fn: Callable) -> set[str]:
    """The names of the parameters of input_fn."""
    return set(inspect.signature(input_fn).parameters)
