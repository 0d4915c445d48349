"""Which line of an input pipeline brings in what the infeed refuses: a shape, a type, a kind of tensor."""

import re
from collections.abc import Callable
from typing import Any

from lab_utils.dry_run.read.flow import attribute
from lab_utils.estimator import tf

# Ops that give their batches a first dimension; one that pads settles the others as well.
BATCHES = ("BatchDatasetV2", "ParallelBatchDataset", "PaddedBatchDatasetV2")


def culprit(graph: tf.Graph, rule: str, dtype: str = "") -> tf.Operation | None:
    """The dataset op of `graph` to which a finding of `rule` points, or None where none is to blame.

    It is the first on the way from the sources whose elements have the fault. `dtype` is the type's
    name, for TPU120.
    """
    faulty: dict[str, Callable[[tf.Operation], bool]] = {
        "TPU101": _has_unknown_sizes,
        "TPU102": _has_unknown_sizes,
        "TPU119": lambda op: tf.string in _types(op),
        "TPU120": lambda op: dtype in [each.name for each in _types(op)],
        "TPU128": lambda op: tf.variant in _types(op),
    }
    datasets = [op for op in graph.get_operations() if attribute(op, "output_shapes") is not None]
    used = {tensor.name for op in datasets for tensor in op.inputs}
    ends = [op for op in datasets if op.outputs and op.outputs[0].name not in used]
    op = next((op for op in ends if _is_dataset(op) and faulty[rule](op)), None)
    while op is not None:
        if _settles(op, rule):
            return op
        before = [t.op for t in op.inputs if t.dtype == tf.variant and _is_dataset(t.op)]
        if rule not in ("TPU101", "TPU102"):  # records are strings by right, before they are parsed
            before = [each for each in before if _types(each) == _types(op)]
        earlier = next((each for each in before if faulty[rule](each)), None)
        if earlier is None:
            return op
        op = earlier
    return None


def _settles(op: tf.Operation, rule: str) -> bool:
    """Whether the fault lies in this op whatever its input is like."""
    if rule == "TPU101":
        return op.type in BATCHES
    return rule == "TPU102" and op.type == "PaddedBatchDatasetV2"


def _is_dataset(op: tf.Operation) -> bool:
    return bool(re.search(r"Dataset(V\d+)?$", op.type)) and bool(op.outputs)


def _types(op: tf.Operation) -> list[Any]:
    return attribute(op, "output_types") or attribute(op, "Toutput_types") or []


def _has_unknown_sizes(op: tf.Operation) -> bool:
    shapes = map(tf.TensorShape, attribute(op, "output_shapes") or [])
    return any(not shape.is_fully_defined() for shape in shapes)
