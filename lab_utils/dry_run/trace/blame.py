"""Which line of an input pipeline brings in what the infeed refuses: a shape, a type, a kind of tensor."""

import re
from collections.abc import Callable, Iterable
from typing import Any

from lab_utils.common.source import own_frame
from lab_utils.dry_run.graphs import attribute, called
from lab_utils.estimator import tf

# Ops that give their batches a first dimension; one that pads settles the others as well.
BATCHES = (
    "BatchDatasetV2",
    "ParallelBatchDataset",
    "MapAndBatchDataset",
    "PaddedBatchDatasetV2",
)


def culprit(graph: tf.Graph, rule: str, fact: str = "") -> tf.Operation | None:
    """The dataset op of `graph` to which a finding of `rule` points, or None where none is to blame.

    It is the first on the way from the sources whose elements have the fault. `fact` is the type's
    name, for TPU120, or the shape, for TPU131.
    """
    faulty: dict[str, Callable[[tf.Operation], bool]] = {
        "TPU101": _has_unknown_sizes,
        "TPU102": _has_unknown_sizes,
        "TPU119": lambda op: tf.string in _types(op),
        "TPU120": lambda op: fact in [each.name for each in _types(op)],
        "TPU128": lambda op: tf.variant in _types(op),
        "TPU131": lambda op: fact in _shapes(op),
    }
    op = next((op for op in _ends(graph) if _is_dataset(op) and faulty[rule](op)), None)
    op = _first(op, rule, faulty[rule])
    if op is None:
        return None
    functions = called(op)
    return (within(functions[0], rule, fact) if len(functions) == 1 else None) or op


def _ends(graph: tf.Graph) -> list[tf.Operation]:
    """The dataset ops of `graph` whose elements no other one takes."""
    datasets = [op for op in graph.get_operations() if attribute(op, "output_shapes") is not None]
    used = {tensor.name for op in datasets for tensor in op.inputs}
    return [op for op in datasets if op.outputs and op.outputs[0].name not in used]


def unknown_sizes(shapes: Iterable[tf.TensorShape]) -> str:
    """TPU102 where a size of an example is unknown, TPU101 where only batches are, else ""."""
    unknown = [shape for shape in shapes if not shape.is_fully_defined()]
    if any(shape.rank is None or not shape[1:].is_fully_defined() for shape in unknown):
        return "TPU102"
    return "TPU101" if unknown else ""


def last_shapes(graph: tf.Graph) -> list[tf.TensorShape]:
    """The shapes of what the datasets of `graph` end in."""
    ends = [op for op in _ends(graph) if _is_dataset(op)]
    return [tf.TensorShape(shape) for op in ends for shape in attribute(op, "output_shapes")]


def _first(
    op: tf.Operation | None, rule: str, faulty: Callable[[tf.Operation], bool]
) -> tf.Operation | None:
    """From the last dataset op to the first on its way that has the fault, or that settles it."""
    while op is not None:
        if _settles(op, rule):
            return op
        before = [t.op for t in op.inputs if t.dtype == tf.variant and _is_dataset(t.op)]
        # Records are strings by right, before they are parsed. TPUEstimator maps over the dataset itself.
        if rule not in ("TPU101", "TPU102") and own_frame(op.traceback):
            before = [each for each in before if _types(each) == _types(op)]
        earlier = next((each for each in before if faulty(each)), None)
        if earlier is None:
            return op
        op = earlier
    return None


def within(function: Any, rule: str, dtype: str = "") -> tf.Operation | None:
    """The op in a dataset's function (a FuncGraph) that brings in the fault; None where none does."""
    bad: dict[str, Callable[[tf.Tensor], bool]] = {
        "TPU102": lambda t: t.dtype != tf.variant and not t.shape.is_fully_defined(),
        "TPU119": lambda t: t.dtype == tf.string,
        "TPU120": lambda t: t.dtype.name == dtype,
    }
    if rule not in bad:
        return None
    outside = {tensor.op for tensor in function.inputs}
    found = next((t.op for t in function.outputs if bad[rule](t)), None)
    while found is not None and found.type == "Identity" and found.inputs[0].op not in outside:
        found = found.inputs[0].op  # tf.data puts one around each result of the function
    while found is not None and rule != "TPU119":
        before = [t.op for t in found.inputs if bad[rule](t) and t.op not in outside]
        if len(before) != 1:
            break
        found = before[0]
    if found is None or found in outside or not own_frame(found.traceback):
        return None
    return found


def _settles(op: tf.Operation, rule: str) -> bool:
    """Whether the fault lies in this op whatever its input is like."""
    if rule == "TPU101":
        return op.type in BATCHES
    return rule == "TPU102" and op.type == "PaddedBatchDatasetV2"


def _is_dataset(op: tf.Operation) -> bool:
    return bool(re.search(r"Dataset(V\d+)?$", op.type)) and bool(op.outputs)


def _types(op: tf.Operation) -> list[Any]:
    return attribute(op, "output_types") or attribute(op, "Toutput_types") or []


def _shapes(op: tf.Operation) -> list[str]:
    shapes = map(tf.TensorShape, attribute(op, "output_shapes") or [])
    return [str(shape.as_list()) for shape in shapes if shape.is_fully_defined()]


def _has_unknown_sizes(op: tf.Operation) -> bool:
    shapes = map(tf.TensorShape, attribute(op, "output_shapes") or [])
    return any(not shape.is_fully_defined() for shape in shapes)
