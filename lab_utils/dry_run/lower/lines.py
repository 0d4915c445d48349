"""The learner's lines behind what a run of a step finds: a loss that is not finite, cores that differ."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from lab_utils.common.source import NOWHERE, Place, place
from lab_utils.dry_run import ops as op_table
from lab_utils.dry_run.graphs import all_nodes, ancestors
from lab_utils.dry_run.lower.graph_def import compute, prune, rename_functions, without
from lab_utils.dry_run.private import tensorflow as _tensorflow
from lab_utils.dry_run.program import Role
from lab_utils.estimator import tf, v1


def place_of_write(handle: tf.Tensor) -> Place:
    """Where the variable of this handle gets a new value, after its initial one; NOWHERE if it does not."""
    writes = [op for op in handle.consumers() if op_table.writes_variable(op.type)]
    initial = f"{handle.op.name}/Assign"
    return next((place(op) for op in writes if op.name != initial), NOWHERE)


def value_not_finite(step: Any, batches: list[list[np.ndarray]]) -> Place:
    """Where the first value on the way to the loss of a `Step` arises that is not finite.

    TensorFlow computes it, from what the variables start with and `batches`: for each core that is asked, its
    features and labels in the order of `step.feeds`. A sum over the cores counts as the core's own part.
    If the loss is not a number, infinities that do no harm (a mask, say) are passed over. NOWHERE if this
    machine cannot tell.
    """
    for tensors, nan, infinite in _flags(step, [step.loss.op], batches):
        bad = _select(tensors, nan if nan[-1] else infinite)
        for tensor in bad.values():
            op = tensor.op
            if op.type != "Const" and not any(source.ref() in bad for source in op.inputs):
                return place(op)
    return NOWHERE


def gradient_not_finite(step: Any, batches: list[list[np.ndarray]]) -> Place:
    """Where the op stands whose gradient is the first that is not finite; else as value_not_finite."""
    for tensors, nan, infinite in _flags(step, step.updates, batches):
        bad = _select(tensors, nan | infinite)
        for tensor in bad.values():
            source = _tensorflow.forward_op(tensor.op)
            came = [source for source in tensor.op.inputs if source.ref() in bad]
            if tensor.op.type == "Const" or source is None:
                continue
            if not any(_tensorflow.forward_op(t.op) for t in came):
                return place(source)
    return NOWHERE


def _select(tensors: list[tf.Tensor], flags: np.ndarray) -> dict[Any, tf.Tensor]:
    pairs = zip(tensors, flags, strict=True)
    return {tensor.ref(): tensor for tensor, flag in pairs if flag}


def _flags(
    step: Any, ends: list[tf.Operation], batches: list[list[np.ndarray]]
) -> Iterator[tuple[list[tf.Tensor], np.ndarray, np.ndarray]]:
    """For each batch the floats on the way to `ends`, in order, and which of them hold NaN, and infinity."""
    if any(item.role not in (Role.FEATURE, Role.LABEL) for _, item in step.feeds):
        return
    dependencies = ancestors(ends)
    floats = [
        tensor
        for op in step.graph.get_operations()
        if op in dependencies
        # What FusedBatchNorm keeps for its gradient has another shape on a CPU than it says.
        for tensor in (op.outputs[:3] if op.type.startswith("FusedBatchNorm") else op.outputs)
        if tensor.dtype.is_floating
    ]
    graph_def = prune(step.graph, [tensor.op for tensor in floats])
    for node in all_nodes(graph_def):
        if node.op == "CrossReplicaSum":
            node.op = "Identity"
            del node.input[1:]
    rename_functions(graph_def)
    feeds = [tensor for tensor, _ in step.feeds]
    used = without(graph_def, feeds, step.variables)
    start = step.start([item.name for item in used])
    outer = {tensor.op for tensor in feeds} | {item.handle.op for item in step.variables}
    tensors = [tensor for tensor in floats if tensor.op not in outer]

    with _tensorflow.eager(), _tensorflow.caught_log(), tf.device("/device:CPU:0"):
        values = [tf.Variable(start[item.name], trainable=False) for item in used]

        def flags(*arguments: tf.Tensor) -> tuple[tf.Tensor, ...]:
            names = [tensor.name for tensor in tensors]
            results = compute(graph_def, names, feeds, arguments, used, values)
            kinds = tf.math.is_nan, tf.math.is_inf
            return tuple(tf.stack([tf.reduce_any(kind(out)) for out in results]) for kind in kinds)

        try:
            look = v1.wrap_function(flags, [tf.TensorSpec(t.shape, t.dtype) for t in feeds])
            for arrays in batches:
                for item, value in zip(used, values, strict=True):
                    value.assign(start[item.name])
                nan, infinite = look(*map(tf.constant, arrays))
                yield tensors, nan.numpy(), infinite.numpy()
        except (tf.errors.OpError, ValueError, TypeError):  # this machine cannot compute it
            return
