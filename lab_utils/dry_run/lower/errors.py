"""Why a step cannot be lowered: TensorFlow's XLA bridge's errors, with the learner's line."""

import re
import textwrap
from typing import Any

from lab_utils.common.source import NOWHERE, Place, place
from lab_utils.dry_run import ops as op_table
from lab_utils.dry_run.advice import advice
from lab_utils.dry_run.graphs import (
    attribute,
    called_functions,
    everywhere,
    moves_to_host,
    of_gradient,
)
from lab_utils.dry_run.private import tensorflow as _tensorflow
from lab_utils.dry_run.records import Finding
from lab_utils.dry_run.rules import finding, some
from lab_utils.estimator import tf

_NEEDS_CONSTANT = re.compile(
    r"compile-time constant|evaluated to concrete values at compile time|fixed tensor list size"
)
_NO_BOUND, _LOOP_STATE = (
    "fixed tensor list size",
    "Input and output shapes of loop body do not match",
)
_STATIC = "Use a static size: a fixed maxlen, k or length with padding and a mask."
_BOUND = (
    "Give the loop whose gradient is taken a bound: tf.while_loop(..., maximum_iterations=N), or in a loop "
    "of AutoGraph tf.autograph.experimental.set_loop_options(maximum_iterations=N). Give a TensorArray its "
    "size."
)
_OTHER_OP = (
    "Change the op named to one that XLA has, or move it to the input pipeline (dataset.map)."
)
_SAME_SHAPE = (
    "Keep the shape of a loop's state: write each round's part into a tf.TensorArray(dtype, size=N), or into "
    "a tensor of the final length."
)
_SIZE_FROM_DATA = (
    "The size that {op.type} is given must be a compile-time constant, and it is computed from data"
)


def shortened(message: str, most: int = 300) -> str:
    """A message on one line without the stack that it ends in, at most so long; cut between two words."""
    text = re.split(r" Stack trace for op definition| \[\[\{\{node ", " ".join(message.split()))[0]
    text = text.rstrip(".")
    return textwrap.shorten(text, most, placeholder=" [...]") if len(text) > most else text


class CannotLower(Exception):
    """XLA has no program for this step.

    `op_type` and `where` name the op and the learner's line, empty where the error names none.
    `only_here` says that a TPU would take it: the limit is that of this machine's TensorFlow.
    """

    def __init__(
        self, message: str, *, op_type: str = "", where: Place = NOWHERE, only_here: bool = False
    ) -> None:
        super().__init__(message)
        self.op_type, self.where, self.only_here = op_type, where, only_here

    def finding(self) -> Finding | None:
        """What the port has to fix; None where only this machine stands in the way."""
        message = str(self)
        if self.only_here:
            return None
        if _NEEDS_CONSTANT.search(message):
            fix = _BOUND if _NO_BOUND in message else _STATIC
            return finding("TPU301", self.where, message=message, fix=fix)
        lacking = self.op_type and "No registered" in message
        reason, fix = f"it has no {self.op_type} op" if lacking else shortened(message), _OTHER_OP
        if _LOOP_STATE in message:
            reason, fix = _grows(message), _SAME_SHAPE
        return finding("TPU302", self.where, message=message, reason=reason, fix=fix)


class StepRaised(CannotLower):
    """Python raised while the step's graph was built: no op of XLA's is at fault."""

    def finding(self) -> Finding | None:
        """TPU199, as for a model_fn that raises."""
        message = str(self)
        if _NEEDS_CONSTANT.search(message):
            return super().finding()
        facts = {"mode": "train", "error": shortened(message), "hint": advice(message)}
        return finding("TPU199", self.where, message=message, **facts)


class InputUnfit(ValueError):
    """The batches of input_fn cannot be fed to cores: a shape is not fixed, or does not divide.

    Or nothing is computed from them.
    """


NOTHING_COMPUTED = (
    "the step returns nothing that it computes from its arguments, so there is nothing to judge: return the "
    "loss, the gradients or the new state"
)


def explain(error: Exception, graph: Any) -> CannotLower:
    """The bridge's error, with the op that it names looked up in the graph that the learner built."""
    text = " ".join(str(getattr(error, "message", error)).split())
    names = re.findall(r"\{+node ([^}]+)\}", text)
    operations = (_tensorflow.find_operation(graph, name) for name in names)
    operation = next((op for op in operations if op is not None), None)
    unsupported = re.search(r"XLA_CPU_JIT: (\w+) \(", text)
    op_type = unsupported[1] if unsupported else operation.type if operation is not None else ""
    if _LOOP_STATE in text:
        operation = _growing(graph)
    elif _NO_BOUND in text:
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


def _grows(message: str) -> str:
    """What a loop does to its state, by a message that lists all shapes of it twice."""
    before, _, after = message.partition(") vs. (")
    pairs = zip(re.findall(_SHAPE, before), re.findall(_SHAPE, after), strict=False)
    changes = [f"{old} becomes {new}" for old, new in pairs if old != new]
    return f"a loop changes the shape of its state from round to round: {some(changes)}"


_SHAPE = r"\b[a-z]+\d*\[[\d,]*\]"


def _growing(graph: Any) -> tf.Operation | None:
    """The op that gives a loop's state another shape in each round; None where none is known to."""
    loops = (op for op in everywhere(graph) if op.type in ("While", "StatelessWhile"))
    for loop in loops:
        functions = called_functions(loop)
        if of_gradient(loop.name) or len(functions) != 2:
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
    name = of_gradient(operation.name) if operation is not None else ""
    loop = re.match(r"(.*?)_grad\b", name)
    found = _tensorflow.find_operation(graph, loop[1]) if loop else None
    return found if found is not None and place(found).file else None


def _unbounded(graph: Any) -> tf.Operation | None:
    """The first loop of the program's in a graph, or in what it calls, that has no maximum_iterations."""
    for op in everywhere(graph):
        if op.type in ("While", "StatelessWhile") and not of_gradient(op.name) and place(op).file:
            most = tf.get_static_value(op.inputs[1]) if len(op.inputs) > 1 else None
            if most is not None and most < 0:  # so TensorFlow writes None
                return op
    return None


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
