"""TensorFlow's XLA bridge's errors, with the op that they name and the learner's line."""

import re
from collections.abc import Iterator
from typing import Any

from lab_utils.common.source import NOWHERE, place
from lab_utils.dry_run import ops as op_table
from lab_utils.dry_run.graphs import attribute, called_functions, everywhere, moves_to_host
from lab_utils.dry_run.lower.errors import LOOP_STATE, NO_BOUND, CannotLower
from lab_utils.dry_run.private import tensorflow as _tensorflow
from lab_utils.estimator import tf

_SIZE_FROM_DATA = (
    "The size that {op.type} gets must be a compile-time constant, but it is computed from data"
)


def explain(error: Exception, graph: Any) -> CannotLower:
    """The bridge's error, with the op that it names looked up in the graph that the learner built."""
    text = " ".join(str(getattr(error, "message", error)).split())
    names = re.findall(r"\{+node ([^}]+)\}", text)
    operations = (_tensorflow.find_operation(graph, name) for name in names)
    operation = next((op for op in operations if op is not None), None)
    unsupported = re.search(r"XLA_CPU_JIT: (\w+) \(", text)
    op_type = unsupported[1] if unsupported else operation.type if operation is not None else ""
    if LOOP_STATE in text:
        operation = _growing(graph)
    elif NO_BOUND in text:
        operation = _loop_of(operation, graph) or _unbounded(graph) or operation
    elif unsupported and (resize := _sized_by_data(graph)) is not None:
        return CannotLower(
            _SIZE_FROM_DATA.format(op=resize), op_type=resize.type, where=place(resize)
        )
    where = place(operation) if operation is not None else NOWHERE
    only_here = bool(unsupported) and (op_table.compiles(op_type) or moves_to_host(graph))
    text = text.removeprefix("Failed getting HLO text: ").strip("'")
    text = re.sub(r"\{\{function_node [^}]*\}\}|\(?The op is created at:.*", "", text)
    return CannotLower(text, op_type=op_type, where=where, only_here=only_here)


def _growing(graph: Any) -> tf.Operation | None:
    """The op that gives a loop's state another shape in each round; None where none is known to."""
    for loop in _loops(graph):
        functions = called_functions(loop)
        if len(functions) != 2:
            continue
        shapes = map(tf.TensorShape, attribute(loop, "output_shapes"))
        for shape, result in zip(shapes, functions[1].outputs, strict=False):
            if not shape.is_fully_defined() and result.dtype not in (tf.variant, tf.resource):
                op = result.op
                while op.type == "Identity" and op.inputs[0].op.type != "Placeholder":
                    op = op.inputs[0].op
                return op if place(op).file else loop
    return None


def _loop_of(operation: tf.Operation | None, graph: Any) -> tf.Operation | None:
    """The loop for whose gradient an op collects values: by its name, which holds the loop's."""
    name = op_table.of_gradient(operation.name) if operation is not None else ""
    loop = re.match(r"(.*?)_grad\b", name)
    found = _tensorflow.find_operation(graph, loop[1]) if loop else None
    return found if found is not None and place(found).file else None


def _unbounded(graph: Any) -> tf.Operation | None:
    """The first loop of the program's in a graph, or in what it calls, that has no maximum_iterations."""
    for loop in _loops(graph):
        most = tf.get_static_value(loop.inputs[1]) if len(loop.inputs) > 1 else None
        if most is not None and most < 0 and place(loop).file:  # so TensorFlow writes None
            return loop
    return None


def _loops(graph: Any) -> Iterator[tf.Operation]:
    """The loops of a graph, and of what it calls, without those that compute gradients."""
    for op in everywhere(graph):
        if op.type in ("While", "StatelessWhile") and not op_table.of_gradient(op.name):
            yield op


def _sized_by_data(graph: Any) -> tf.Operation | None:
    """The first op of a step that scales pictures to a size which is computed from data."""
    resizes = (op for op in graph.get_operations() if re.fullmatch(r"Resize(?!.*Grad)\w+", op.type))
    return next((op for op in resizes if _comes_from_data(op.inputs[1])), None)


def _comes_from_data(tensor: tf.Tensor) -> bool:
    """Whether the value of a tensor depends on what the step is given, and not on its shapes only."""
    waiting, seen = [tensor.op], set()
    for op in waiting:
        if op.type == "Placeholder":
            return True
        if op not in seen and op.type not in ("Shape", "ShapeN", "Size", "Rank"):
            seen.add(op)
            waiting += [source.op for source in op.inputs]
    return False
