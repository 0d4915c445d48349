"""Numbers that a program has written in, such as that of its cores: constants that scale what it computes."""

import math
from collections.abc import Mapping
from typing import Any

from lab_utils.common.source import place
from lab_utils.dry_run.graphs import all_nodes, everywhere
from lab_utils.dry_run.ops import is_kind, of_gradient
from lab_utils.estimator import tf


def factors(graph: Any) -> dict[str, tuple[str, float]]:
    """The learner's line and the number of each scalar constant of a graph that only divides or multiplies.

    By the op's name. Left out are those that the gradients of TensorFlow's ops hold, such as the number of
    examples in that of a mean.
    """
    found = {}
    for op in everywhere(graph):
        if op.type != "Const" or of_gradient(op.name) or op.outputs[0].shape.rank != 0:
            continue
        number = _number(op)
        if number > 0 and _scales(op.outputs[0]) and (line := place(op).source_line).file:
            found[op.name] = line.position, number
    return found


def _number(op: tf.Operation) -> float:
    """The value of a constant; 0 where it is not a number, or not finite."""
    dtype = op.outputs[0].dtype
    if not (dtype.is_floating or dtype.is_integer):
        return 0.0
    number = float(tf.make_ndarray(op.get_attr("value")))
    return number if math.isfinite(number) else 0.0


def _scales(tensor: tf.Tensor) -> bool:
    """Whether all that is done with a tensor is to divide by it, or to multiply with it."""
    users = [op for op in tensor.consumers() if not of_gradient(op.name)]
    return bool(users) and all(_scales_in(op, tensor) for op in users)


def _scales_in(op: tf.Operation, tensor: tf.Tensor) -> bool:
    if op.type in ("Cast", "Identity"):
        return _scales(op.outputs[0])
    return op.type == "Mul" or (is_kind(op.type, "divide") and op.inputs[1] is tensor)


def replace(graph_def: Any, numbers: Mapping[str, float]) -> None:
    """Gives the scalar constants of these names other numbers."""
    for node in all_nodes(graph_def):
        if node.op == "Const" and node.name in numbers:
            tensor = node.attr["value"].tensor
            tensor.CopyFrom(tf.make_tensor_proto(numbers[node.name], tensor.dtype, []))
