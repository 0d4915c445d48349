"""Random numbers where there should be none, in evaluation and prediction: TPU212, TPU213, TPU223."""

from collections.abc import Iterator

from lab_utils.dry_run.findings import Finding
from lab_utils.dry_run.read_graph import (
    CoreProgram,
    Flow,
    ancestors,
    called,
    everywhere,
    is_random,
)
from lab_utils.dry_run.rules import finding
from lab_utils.dry_run.where import place

# isort: split
import tensorflow as tf

_IN_WORDS = {"eval": "evaluation", "predict": "prediction"}


def in_model(ops: list[tf.Operation], flow: Flow, mode: str) -> Iterator[Finding]:
    """Findings for dropout and for augmentation among the ops of an evaluation or prediction step."""
    dropout = [op for op in ops if is_random(op) and "dropout" in op.name.lower()]
    for op in dropout:
        yield finding("TPU223", place(op), op=op.type, mode=_IN_WORDS[mode])
    if not dropout:
        used = set(ops)
        yield from _augmentation([op for op in flow.augmented if op in used], mode)


def in_input(graph: tf.Graph, mode: str) -> Iterator[Finding]:
    """Findings for augmentation in the functions that an input pipeline maps over its examples.

    Numbers alone are no examples yet: a function of them may draw its examples at random.
    """
    for op in everywhere(graph):
        for function in called(op) if "Dataset" in op.type else ():
            captured = {inner.name for _, inner in function.captures}
            data = [
                t.name
                for t in function.inputs
                if t.name not in captured and (t.dtype == tf.string or t.shape.rank != 0)
            ]
            yield from _augmentation(Flow(CoreProgram(function), data).augmented, mode)


def _augmentation(augmented: list[tf.Operation], mode: str) -> Iterator[Finding]:
    """A finding for the first random op whose numbers change the examples of `mode`."""
    if not augmented:
        return
    changed = augmented[0]
    needed = ancestors([changed])
    op = next(
        (op for op in changed.graph.get_operations() if op in needed and is_random(op)), changed
    )
    if mode == "eval":
        yield finding("TPU212", place(op), op=op.type)
    else:
        yield finding("TPU213", place(op), op=op.type, mode=_IN_WORDS[mode])
