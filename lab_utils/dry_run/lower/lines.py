"""The learner's lines behind what a run of a step finds: a loss that is not finite, cores that differ."""

import re
from typing import Any

import numpy as np

from lab_utils.common.source import NOWHERE, Place, place
from lab_utils.dry_run.graphs import all_nodes, ancestors
from lab_utils.dry_run.lower.graph_def import drop, pruned
from lab_utils.dry_run.private import tensorflow as _tensorflow
from lab_utils.dry_run.program import Role
from lab_utils.estimator import tf, v1

_WRITES = re.compile(r"Assign\w*VariableOp|Resource(Scatter|Apply|SparseApply)\w*")


def written(handle: tf.Tensor) -> Place:
    """Where the variable of this handle gets a new value, after its initial one; NOWHERE if it does not."""
    writes = [op for op in handle.consumers() if _WRITES.match(op.type)]
    initial = f"{handle.op.name}/Assign"
    return next((place(op) for op in writes if op.name != initial), NOWHERE)


def first_not_finite(step: Any, batches: list[list[np.ndarray]], gradients: bool = False) -> Place:
    """Where the first value on the way to the loss of a `Step` arises that is not finite.

    With `gradients` it is the first gradient on the way to the variables, and the place is that of the op
    whose gradient it is.

    TensorFlow computes it, from what the variables start with and `batches`: for each core that is asked, its
    features and labels in the order of `step.fed`. A sum over the cores counts as the core's own part. If the
    loss is not a number, infinities that do no harm (a mask, say) are passed over. NOWHERE if this machine
    cannot tell.
    """
    if any(each.role not in (Role.FEATURE, Role.LABEL) for _, each in step.fed):
        return NOWHERE
    needed, graph = ancestors(step.updates if gradients else [step.loss.op]), step.graph
    values = [
        tensor
        for op in graph.get_operations()
        if op in needed
        # What FusedBatchNorm keeps for its gradient has another shape on a CPU than it says.
        for tensor in (op.outputs[:3] if op.type.startswith("FusedBatchNorm") else op.outputs)
        if tensor.dtype.is_floating
    ]
    graph_def = pruned(graph, [tensor.op for tensor in values])
    for node in all_nodes(graph_def):
        if node.op == "CrossReplicaSum":
            node.op = "Identity"
            del node.input[1:]
    fed = [tensor for tensor, _ in step.fed]
    names = {tensor.op.name for tensor in fed} | {each.handle.op.name for each in step.variables}
    drop(graph_def, names)
    consumed = {name.split(":")[0] for node in graph_def.node for name in node.input}
    used = [each for each in step.variables if each.handle.op.name in consumed]
    start = step.start([each.name for each in used])
    computed = [tensor for tensor in values if tensor.op.name not in names]

    with _tensorflow.eager(), _tensorflow.caught_log(), tf.device("/device:CPU:0"):
        held = [tf.Variable(start[each.name], trainable=False) for each in used]

        def flags(*arguments: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
            scope = v1.get_default_graph()
            given = {tensor.name: it for tensor, it in zip(fed, arguments, strict=True)}
            for each, variable in zip(used, held, strict=True):
                given[each.handle.name] = scope.capture(variable.handle)
            inputs = {name: it for name, it in given.items() if name.split(":")[0] in consumed}
            names = [tensor.name for tensor in computed]
            got = tf.graph_util.import_graph_def(graph_def, inputs, names, name="")
            kinds = tf.math.is_nan, tf.math.is_inf
            return tuple(tf.stack([tf.reduce_any(kind(each)) for each in got]) for kind in kinds)

        try:
            specs = [tf.TensorSpec(each.shape, each.dtype) for each in fed]
            look = v1.wrap_function(flags, specs)
            for arrays in batches:
                for each, variable in zip(used, held, strict=True):
                    variable.assign(start[each.name])
                found = look(*map(tf.constant, arrays))
                if where := _first(computed, *(each.numpy() for each in found), gradients):
                    return where
        except (tf.errors.OpError, ValueError, TypeError):
            pass
    return NOWHERE


def _first(
    computed: list[tf.Tensor], nan: np.ndarray, infinite: np.ndarray, gradients: bool
) -> Place:
    """Where the first of the tensors arises that holds such values, as `first_not_finite`."""
    kind = nan | infinite if gradients else nan if nan[-1] else infinite
    bad = {each.ref() for each, flag in zip(computed, kind, strict=True) if flag}
    for tensor in computed:
        op = tensor.op
        source = _tensorflow.differentiated(op) if gradients else op
        if tensor.ref() not in bad or op.type == "Const" or source is None:
            continue
        came = {t.ref() for t in op.inputs} & bad
        if (
            not came
            or gradients
            and not any(_tensorflow.differentiated(each.deref().op) for each in came)
        ):
            return place(source)
    return NOWHERE
