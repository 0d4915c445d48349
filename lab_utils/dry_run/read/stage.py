"""Stage 2: the graphs that TPUEstimator built, read for what a TPU lacks and for silent faults."""

import inspect
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from lab_utils.common.source import place
from lab_utils.dry_run.graphs import moves_to_host, of_gradient
from lab_utils.dry_run.private import tpu_estimator as _tpu_estimator
from lab_utils.dry_run.read import flow as read_graph
from lab_utils.dry_run.read import inputs as read_input
from lab_utils.dry_run.read import randomness as read_random
from lab_utils.dry_run.read import training as read_training
from lab_utils.dry_run.read import unsupported as read_ops
from lab_utils.dry_run.records import Finding, Mode, Severity
from lab_utils.dry_run.rules import finding
from lab_utils.dry_run.session import Session, Skip, in_words
from lab_utils.dry_run.workload import Inputs, Observed, Trace
from lab_utils.estimator import tf
from lab_utils.port import contrib

_TILE = 8  # rows of a tile in a core's memory
# Of the rules of this stage, those that the programs of each backend, but for a TPUEstimator, go without.
_LEFT_OUT = {
    "TensorFlow": (
        "What is read for a TPUEstimator only: gradients and train_op (TPU201, TPU215, TPU219), batch "
        "normalisation, dropout and broadcasts in the model (TPU220, TPU223, TPU224, TPU227), the batch and "
        "the checkpoints (TPU209, TPU210), and whether the input pipeline ends too early, repeats, shuffles "
        "batches, drops or augments examples (TPU211, TPU212, TPU213, TPU214, TPU216, TPU218, TPU225, "
        "TPU226)."
    ),
    "JAX": "The input pipeline of a JAX step, and the scale of its gradients on several cores: no rule reads "
    "them.",
}
# The rules that read the input pipeline of each mode.
_OF_INPUT = {
    Mode.TRAIN: "TPU211, TPU214, TPU216, TPU218, TPU222, TPU226, TPU228",
    Mode.EVAL: "TPU211, TPU212, TPU214, TPU222, TPU225, TPU226, TPU228",
    Mode.PREDICT: "TPU211, TPU213, TPU214, TPU222, TPU226, TPU228",
}


def carry_out(session: Session) -> str:
    """Stage "read"; returns its detail. Raises Skip where no graph was built."""
    traces = session.traces()
    session.add(session.workload.read(traces, session.cores))
    session.not_checked += [sentence for trace in traces for sentence in trace.not_checked]
    if not traces:
        session.not_checked.append(_LEFT_OUT[session.workload.backend])
        return "program of train, its ops and types"
    modes = [trace.mode for trace in traces if trace.error is None]
    if not modes and session.result.findings:
        return "the graph as far as it was built"
    if not modes:
        raise Skip("no program to read")
    return f"programs of {', '.join(modes)}"


def read(
    traces: list[Trace], estimator: Any, inputs: Inputs, observed: Observed | None = None
) -> list[Finding]:
    """What the graphs and input functions of a TPUEstimator tell, each line and rule once.

    A trace that ended in an error is read as far as it came. The input functions are those that
    were given to `trace`; each is called once more. `observed` is what a run of the program has shown.
    """
    settings = _tpu_estimator.settings(estimator)
    observed = observed or Observed()
    findings = []
    for trace in traces:
        serving = trace.mode is Mode.SERVING
        if serving and trace.spec is not None:
            findings += read_random.in_serving(trace.core_graph, trace.spec)
        elif not serving:
            findings += _model(trace, settings, _reads_averages(traces, observed))
        if trace.mode is Mode.TRAIN:
            findings += _checkpoints(settings.config, settings.model_fn)
            findings += _tiles(trace.per_core_batch, trace.cores, settings.model_fn)
        if not serving and (trace.error is None or trace.core_graph is not None):
            findings += _input(trace, estimator, inputs, observed)
    return _once(findings)


def read_step(
    concrete: Any, dataset: tf.data.Dataset | None, cores: int, address: str
) -> list[Finding]:
    """Ops and types that a TPU lacks in a Keras step or a bare one, each line and rule once.

    `concrete` is the step as a ConcreteFunction of one of `cores` cores, `dataset` its input pipeline, if
    any. `address`: where the program looks for its TPU, if it says.
    """
    program = read_graph.CoreProgram(concrete.graph, off_device=True)
    ops = program.ops()
    unsupported = list(read_ops.unsupported(ops))
    if moves_to_host(concrete.graph):  # each step then waits for the host
        unsupported = [replace(item, severity=Severity.NOTE) for item in unsupported]
    findings = [
        *unsupported,
        *read_ops.summaries(program.every_op()),
        *read_ops.float64(ops),
        *read_input.constants(concrete.graph),
    ]
    if dataset is not None:
        findings += read_input.python_of_dataset(dataset, cores, address)
    return _once(findings)


def _tiles(per_core: int | None, cores: int, model_fn: Any) -> Iterator[Finding]:
    """A note on a batch per core that does not fill the chip's tiles."""
    if per_core and per_core % _TILE:
        suggestion = -(-per_core // _TILE) * _TILE * cores
        yield finding("TPU209", place(model_fn), per_core=per_core, suggestion=suggestion)


def _checkpoints(config: Any, model_fn: Any) -> Iterator[Finding]:
    """A finding where checkpoints are asked for in the middle of the device's loop."""
    every, loop = config.save_checkpoints_steps, config.tpu_config.iterations_per_loop
    if every and isinstance(loop, int) and every % loop:
        yield finding("TPU210", place(model_fn), iterations=loop, checkpoint=every)


# What goes on from the line that begins it: all that is computed with the result.
_GOES_ON = ("TPU205", "TPU208")


def _once(findings: list[Finding]) -> list[Finding]:
    """The findings, each line and rule once, without what only goes on from another line."""
    causes = [item for item in findings if item.place.op and not _goes_on(item)]
    unique: dict[tuple, Finding] = {}
    for item in findings:
        if not _goes_on(item) or not any(_leads_to(first, item) for first in causes):
            if not item.place.file and item.rule in _GOES_ON:
                causes.append(item)  # no line is known of any
            line = (item.place.file, item.place.line) if item.place.file else item.place
            unique.setdefault((item.rule, line), item)
    return list(unique.values())


def _goes_on(item: Finding) -> bool:
    return bool(of_gradient(item.place.op)) or not item.place.file


def _leads_to(first: Finding, item: Finding) -> bool:
    """Whether a finding of an op only follows from another's: its gradient, or its type further on."""
    if first.rule != item.rule:
        return False
    return item.rule in _GOES_ON or of_gradient(item.place.op).startswith(first.place.op)


def _reads_averages(traces: list[Trace], observed: Observed) -> bool | None:
    """Whether a mode reads the averages of batch normalisation; None where only training is called."""
    others = [trace for trace in traces if trace.mode is not Mode.TRAIN and trace.core_graph]
    if others:
        return any(read_training.reads_averages(trace.core_graph, trace.spec) for trace in others)
    return True if observed.may_call(Mode.EVAL) or observed.may_call(Mode.PREDICT) else None


def _model(trace: Trace, settings: Any, averages_are_read: bool | None) -> Iterator[Finding]:
    """What model_fn made for one mode."""
    if trace.core_graph is None:
        return
    program = read_graph.CoreProgram.of(trace.core_graph)
    flow = read_graph.Flow(program)
    ops = program.ops(_ops_of_predictions(trace, settings))
    yield from read_ops.unsupported(ops)
    if trace.mode is Mode.TRAIN:  # in other modes an Estimator writes none on a CPU either
        yield from read_ops.summaries(program.every_op(), trace.core_graph)
    yield from read_ops.float64(ops)
    if contrib.installed():
        yield from read_ops.data_dependent(ops)
    if trace.error is None:  # eval_metric_ops of an EstimatorSpec are refused already
        yield from read_training.metrics(program, ops)
    yield from read_input.constants(trace.core_graph)
    yield from read_training.broadcasts(flow)
    if trace.mode is not Mode.TRAIN:
        yield from read_random.in_model(ops, flow, trace.mode, trace.spec)
    elif getattr(trace.spec, "train_op", None) is not None:
        if trace.cores > 1:
            yield from read_training.unsummed_gradients(program, flow)
        yield from read_training.left_out(program, flow, trace.spec, averages_are_read)


def _ops_of_predictions(trace: Trace, settings: Any) -> list[Any]:
    """The ops of the predictions, where a TPU would compute them sooner or later."""
    predictions = getattr(trace.spec, "predictions", None)
    if not isinstance(predictions, dict):
        return []
    if not settings.export_to_tpu and not settings.predict_batch_size:
        return []
    return [tensor.op for tensor in predictions.values() if hasattr(tensor, "op")]


def _input(trace: Trace, estimator: Any, inputs: Inputs, observed: Observed) -> Iterator[Finding]:
    """What input_fn made for one mode."""
    input_fn = inputs.of(trace.mode)
    if inputs.borrows(trace.mode) and "mode" not in inspect.signature(input_fn).parameters:
        return
    try:
        pipeline = read_input.Pipeline.of(trace, estimator, input_fn)
    except Exception as error:
        if trace.error is None:  # else it is stage 1's finding, if input_fn raised there, too
            _unread(trace, _OF_INPUT[trace.mode], "called once more, input_fn raised", error)
        return
    yield from _batch_size(trace, estimator, input_fn, pipeline)
    loop = _tpu_estimator.settings(estimator).config.tpu_config.iterations_per_loop
    try:
        yield from read_input.length(pipeline, trace.mode, loop, input_fn, observed.steps())
    except read_input.Unknown as why:
        trace.not_checked.append(f"Whether the training data end before the steps: {why}.")
    yield from read_input.constants(pipeline.graph)
    address = observed.address or _tpu_estimator.address(estimator)
    yield from read_input.python(pipeline.graph, trace.cores, address)
    if trace.mode is Mode.TRAIN:
        yield from read_input.shuffling(pipeline)
    else:
        yield from read_random.in_input(pipeline.graph, trace.mode)
    if trace.mode is Mode.EVAL:
        try:
            yield from read_input.remainder(pipeline)
        except read_input.Unknown as why:
            trace.not_checked.append(f"Whether evaluation leaves out the last examples: {why}.")


def _batch_size(
    trace: Trace, estimator: Any, input_fn: Callable, pipeline: read_input.Pipeline
) -> Iterator[Finding]:
    """Does input_fn follow params['batch_size']? Seen in what it makes of twice the global batch."""
    if not trace.global_batch:
        return
    try:
        twice = read_input.Pipeline.of(trace, estimator, input_fn, times=2)
    except Exception as error:  # it may hold an assertion of its own
        _unread(trace, "TPU214, TPU226", "asked for twice the batch size, input_fn raised", error)
        return
    if len(twice.shapes) == len(pipeline.shapes):
        yield from read_input.batch_size(pipeline, twice, input_fn)
    else:
        trace.not_checked.append(
            f"The input pipeline of {trace.mode.activity} (TPU214, TPU226): asked for twice the batch size, "
            "input_fn gave another number of tensors."
        )


def _unread(trace: Trace, rules: str, what: str, error: Exception) -> None:
    """Notes which rules were left out of one mode, and why."""
    trace.not_checked.append(
        f"The input pipeline of {trace.mode.activity} ({rules}): {what} {in_words(error)}."
    )
