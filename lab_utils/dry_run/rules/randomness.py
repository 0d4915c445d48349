"""Random numbers where there should be none, in all but training: TPU212, TPU213, TPU223."""

from collections.abc import Iterator
from typing import Any

from lab_utils.common.source import place
from lab_utils.dry_run import ops as op_table
from lab_utils.dry_run.engine import rule
from lab_utils.dry_run.facts.flow import DATA, RANDOM, VARIABLE, CoreProgram, Flow, analyse
from lab_utils.dry_run.graphs import ancestors, everywhere
from lab_utils.dry_run.records import Finding, Mode
from lab_utils.dry_run.rules import finding
from lab_utils.estimator import tf


def _augmentations(flow: Flow) -> list[tf.Operation]:
    """The ops that mix random numbers into data before a variable is met."""
    mixed = (DATA | RANDOM, DATA | RANDOM | VARIABLE)
    return [each.op for each in flow.seen if each.result & mixed[1] == mixed[0]]


@rule("TPU223", needs=("ops", "mode"), modes=(Mode.EVAL, Mode.PREDICT))
def dropout(ops: list[tf.Operation], mode: Mode) -> Iterator[Finding]:
    """A finding for each dropout among the ops of a step of `mode`."""
    for op in _dropped(ops):
        yield finding("TPU223", place(op), op=op.type, mode=mode.activity)


def _dropped(ops: list[tf.Operation]) -> list[tf.Operation]:
    return [op for op in ops if op_table.is_random(op.type) and "dropout" in op.name.lower()]


@rule("TPU212", needs=("ops", "flow", "mode", "spec"), modes=(Mode.EVAL,))
@rule("TPU213", needs=("ops", "flow", "mode", "spec"), modes=(Mode.PREDICT,))
def in_model(ops: list[tf.Operation], flow: Flow, mode: Mode, spec: Any) -> Iterator[Finding]:
    """Findings for augmentation among the ops of a step of `mode`, where none of them is dropout."""
    if not _dropped(ops):
        used = set(ops)
        augmentations = [op for op in _augmentations(flow) if op in used]
        is_intentional = _draws_each_value(augmentations) or _answers_without(flow, spec)
        yield from _augmentation(augmentations, mode, is_intentional)


@rule("TPU213", "TPU223", needs=("graph", "spec"), modes=(Mode.SERVING,))
def in_serving(graph: tf.Graph, spec: Any) -> Iterator[Finding]:
    """Findings for dropout and for augmentation between what a client sends and what it gets."""
    exports = (getattr(spec, "export_outputs", None) or {}).values()
    answers = tf.nest.flatten([spec.predictions, [list(vars(item).values()) for item in exports]])
    live = ancestors([answer.op for answer in answers if tf.is_tensor(answer)])
    inputs = [t.name for op in live if op.type.startswith("Placeholder") for t in op.outputs]
    program = CoreProgram.of(graph)
    program.off_device = True
    ops = list(everywhere(graph, lambda op: op in live))
    yield from dropout(ops, Mode.SERVING)
    yield from in_model(ops, analyse(program, inputs), Mode.SERVING, spec)


@rule("TPU212", needs=("mapped", "mode"), modes=(Mode.EVAL,))
@rule("TPU213", needs=("mapped", "mode"), modes=(Mode.PREDICT,))
def in_input(mapped: list[Any], mode: Mode) -> Iterator[Finding]:
    """Findings for augmentation in the functions that an input pipeline maps over its examples."""
    for function in mapped:
        captured = {inner.name for _, inner in function.captures}
        data = [
            t.name
            for t in function.inputs
            if t.name not in captured and (t.dtype == tf.string or t.shape.rank != 0)
        ]
        flow = analyse(CoreProgram(function), data)
        yield from _augmentation(_augmentations(flow), mode)


def _of_tokens(ops: set[tf.Operation]) -> bool:
    """Whether all that the data of `ops` come from is whole numbers, as words are, and no picture or sound.

    Masks drawn over words are what a masked language model is evaluated with.
    """
    sources = [t for op in ops if _brings_data(op) for t in op.outputs if t.dtype != tf.string]
    return bool(sources) and all(t.dtype in (tf.int32, tf.int64, tf.bool) for t in sources)


def _brings_data(op: tf.Operation) -> bool:
    """Whether the op is where data come in: of the infeed, a function's parameter, a record or a file."""
    if op_table.is_kind(op.type, "infeed") or op_table.is_kind(op.type, "parameters"):
        return True
    return bool(op.outputs) and any(t.dtype == tf.string for t in op.inputs)


def _draws_each_value(augmentations: list[tf.Operation]) -> bool:
    """Whether noise is drawn for each value of what is changed, as a model of noise does it in any mode:
    diffusion, a denoising autoencoder, a flow that spreads whole numbers. A flip or a crop draws few numbers.
    """
    for op in augmentations:
        shape = op.outputs[0].shape if op.outputs else tf.TensorShape(None)
        if shape.rank and shape.rank > 1 and shape.is_fully_defined():
            draws = [draw for draw in ancestors([op]) if op_table.is_random(draw.type)]
            if any(draw.outputs[0].shape == shape for draw in draws):
                return True
    return False


def _answers_without(flow: Flow, spec: Any) -> bool:
    """Whether a metric of the model is free of random numbers, as with the gradient penalty of a GAN, which
    mixes pictures at random for a term of the loss. Augmented examples reach all metrics.
    """
    _, tensors = getattr(spec, "eval_metrics", None) or (None, [])
    metrics = [flow.bits.get(t.name, 0) for t in tf.nest.flatten(tensors) if tf.is_tensor(t)]
    return any(bits & DATA and bits & VARIABLE and not bits & RANDOM for bits in metrics)


def _augmentation(
    augmentations: list[tf.Operation], mode: Mode, is_intentional: bool = False
) -> Iterator[Finding]:
    """A finding for the first random op whose numbers change the examples of `mode`."""
    if not augmentations:
        return
    first = augmentations[0]
    ops = ancestors([first])
    draws = [op for op in first.graph.get_operations() if op in ops and op_table.is_random(op.type)]
    op = draws[0] if draws else first
    if mode is Mode.EVAL:
        yield finding("TPU212", place(op), note=is_intentional or _of_tokens(ops), op=op.type)
    else:
        yield finding("TPU213", place(op), op=op.type, mode=mode.activity)
