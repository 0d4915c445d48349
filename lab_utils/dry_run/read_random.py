"""Random numbers where there should be none, in evaluation and prediction: TPU212, TPU213, TPU223."""

from collections.abc import Iterator

from lab_utils.dry_run.findings import Finding
from lab_utils.dry_run.read_graph import Flow, ancestors, everywhere, is_random
from lab_utils.dry_run.rules import finding
from lab_utils.dry_run.where import place

# isort: split
import tensorflow as tf


def augmentation(op: tf.Operation, mode: str) -> Finding:
    """The finding for a random op that changes the examples of `mode`, "eval" or "predict"."""
    if mode == "eval":
        return finding("TPU212", place(op), op=op.type)
    return finding("TPU213", place(op), op=op.type, mode="prediction")


def in_model(ops: list[tf.Operation], flow: Flow, mode: str) -> Iterator[Finding]:
    """Findings for dropout and for augmentation among the ops of an evaluation or prediction step."""
    dropout = {op for op in ops if is_random(op) and "dropout" in op.name.lower()}
    for op in dropout:
        yield finding("TPU223", place(op), op=op.type, mode=_IN_WORDS[mode])
    if flow.augmented:
        source = flow.augmented[0]
        drawn = [op for op in ancestors([source]) if is_random(op)]
        if not dropout.intersection(drawn):
            yield augmentation(min(drawn, key=_position, default=source), mode)


_IN_WORDS = {"eval": "evaluation", "predict": "prediction"}


def _position(op: tf.Operation) -> int:
    return op.graph.get_operations().index(op)


def in_input(graph: tf.Graph, mode: str) -> Iterator[Finding]:
    """A finding for each random op of the functions that an input pipeline maps over its examples."""
    for op in everywhere(graph):
        if is_random(op) and op.graph is not graph:
            yield augmentation(op, mode)
