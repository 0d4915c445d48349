"""What the train step does to its variables: TPU201, TPU215, TPU219, TPU220, TPU224, TPU227,
TPU231.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any

from lab_utils.common.source import Place, place, place_of_stack
from lab_utils.dry_run.engine import rule
from lab_utils.dry_run.facts.flow import DATA, VARIABLE, CoreProgram, Flow
from lab_utils.dry_run.facts.training import AVERAGES
from lab_utils.dry_run.graphs import ancestors
from lab_utils.dry_run.ops import of_gradient
from lab_utils.dry_run.records import Finding, Mode
from lab_utils.dry_run.rules import finding
from lab_utils.dry_run.wording import some
from lab_utils.estimator import tf, v1


def names(variables: Iterable[str]) -> str:
    """The first few variables, without their ":0"."""
    return some(sorted(name.removesuffix(":0") for name in variables))


@rule("TPU201", needs=("program", "flow", "spec", "cores"), modes=(Mode.TRAIN,))
def unsummed_gradients(
    program: CoreProgram, flow: Flow, spec: Any, cores: int
) -> Iterator[Finding]:
    """A finding for each line that updates trained variables with values of one core's own batch."""
    if cores == 1 or spec.train_op is None:
        return
    variables_at, write_at = defaultdict(list), {}
    for variable, op in flow.writes.items():
        if variable in program.trainable:
            where = _asked_at(op).source_line
            variables_at[where].append(variable)
            write_at.setdefault(where, place(op).source_line)
    for where, variables in variables_at.items():
        inside = "" if write_at[where] == where else f" (at {write_at[where].position})"
        yield finding(
            "TPU201",
            where,
            message="With the behaviour of TensorFlow 2, none; with that of TensorFlow 1: "
            "ValueError: CrossShardOptimizer must be used for model training on TPUs.",
            variables=names(variables) + inside,
        )


def _asked_at(op: tf.Operation) -> Place:
    """Where an update is asked for: of an optimizer of the program's own, where it is called."""
    frames = list(op.traceback)
    inside = max((n for n, call in enumerate(frames) if call.name == "apply_gradients"), default=0)
    return place_of_stack(frames[:inside]) or place(op)


@rule(
    *("TPU215", "TPU219", "TPU220"),
    needs=("program", "flow", "spec", "averages_are_read"),
    modes=(Mode.TRAIN,),
)
def left_out(
    program: CoreProgram, flow: Flow, spec: Any, averages_are_read: bool | None
) -> Iterator[Finding]:
    """Findings about what a step does not run: updates, the global step, batch-norm averages.

    Averages that no mode reads need no update; where that is not known (None), it is a note.
    """
    if spec.train_op is None:
        return
    op = getattr(spec.train_op, "op", spec.train_op)
    dependencies = ancestors([op, spec.loss.op])  # TPUEstimator computes both
    targets = {variable for variable, writers in flow.writers.items() if writers & dependencies}
    if program.trainable and not targets & program.trainable:
        yield finding("TPU219", place(op))
        return
    if not any(variable.startswith("global_step:") for variable in targets):
        yield finding("TPU215", _asked_at(op))
    averages = {v for v in flow.writers if v.endswith(AVERAGES)} - targets
    if averages and averages_are_read is not False:
        first = next(op for v in flow.writers if v in averages for op in flow.writers[v])
        layer = place(first).position
        facts = {"variables": names(averages), "layer": layer}
        yield finding("TPU220", place(op), note=averages_are_read is None, **facts)


@rule("TPU231", needs=("flow", "spec"), modes=(Mode.TRAIN,))
def counted_twice(flow: Flow, spec: Any) -> Iterator[Finding]:
    """A finding where one step adds more than 1 to the global step, as far as no branch decides it."""
    if spec.train_op is None:
        return
    dependencies = ancestors([getattr(spec.train_op, "op", spec.train_op), spec.loss.op])
    step = next((name for name in flow.writers if name.startswith("global_step:")), "")
    adding = {
        op: int(number)
        for op in flow.writers.get(step, ())
        if op in dependencies and op.type == "AssignAddVariableOp"
        if op.inputs[0].op.type != "Switch"  # of a branch, in version 1 control flow
        if (number := tf.get_static_value(op.inputs[1])) is not None and number > 0
    }
    added = sum(adding.values())
    if added > 1:
        places = sorted(
            {_asked_at(op).source_line for op in adding}, key=lambda each: each.position
        )
        lines = " and ".join(each.position for each in places)
        facts = {"added": added, "lines": lines, "last": -(-100 // added)}
        yield finding("TPU231", places[-1], **facts)


_PAIRWISE = re.compile("Add(V2)?|Sub|Mul|(Real)?Div|SquaredDifference|Maximum|Minimum")


@rule("TPU227", needs=("graph", "flow"))
def broadcasts(graph: Any, flow: Flow) -> Iterator[Finding]:
    """A finding for each line that pairs every example with every other by accident.

    It is an op of [batch, 1] with [batch], one of them computed from variables and the other from the data
    alone, as with each example's label against every example's prediction.
    """
    for seen in flow.seen:
        op = seen.op
        forward = op.graph is graph and not of_gradient(op.name)  # a gradient pairs what its op did
        sides = sorted(bits & (DATA | VARIABLE) for bits in seen.inputs)
        if not (_PAIRWISE.fullmatch(op.type) and forward and _stretches(op)):
            continue
        if sides != [DATA, DATA | VARIABLE]:
            continue
        shapes = " and ".join(str(tensor.shape.as_list()) for tensor in op.inputs)
        yield finding("TPU227", place(op), shapes=shapes, result=str(op.outputs[0].shape.as_list()))


def _stretches(op: tf.Operation) -> bool:
    """Whether the op takes [n, 1] and [n], n above 1, and so gives [n, n]."""
    shapes = [tensor.shape for tensor in op.inputs]
    if any(not shape.is_fully_defined() for shape in shapes):
        return False
    short, long = sorted((shape.as_list() for shape in shapes), key=len)
    return len(short) == 1 and short[0] > 1 and long == [short[0], 1]


@rule("TPU224", needs=("program", "ops", "error"))
def metrics(
    program: CoreProgram, ops: list[tf.Operation], error: Exception | None
) -> Iterator[Finding]:
    """A finding for each variable of tf.compat.v1.metrics that the replica's program counts with."""
    if error is not None:  # eval_metric_ops of an EstimatorSpec are refused already
        return
    used = {program.handles.get(tensor.name) for op in ops for tensor in op.inputs}
    for variable in program.graph.get_collection(v1.GraphKeys.METRIC_VARIABLES):
        if variable.name in used:
            yield finding("TPU224", place(variable.op), variable=variable.name.removesuffix(":0"))
