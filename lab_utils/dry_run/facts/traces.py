"""The genuine TPUEstimator(use_tpu=True) graph of each mode, built without a TPU.

Everything up to the point where a session would open is TPUEstimator's own code, so that its own
exceptions and log lines appear. The user's estimator and its model_dir are not touched: a second
TPUEstimator is made from the same settings, with a temporary model_dir and a TPU system that
answers `cores` cores. It runs in the caller's process, so that closures, notebook functions and
datasets work as they are, and errors point at the user's own lines.
"""

from collections.abc import Mapping
from contextlib import suppress
from types import MappingProxyType
from typing import Any

from lab_utils.common.source import NOWHERE
from lab_utils.dry_run.facts import hooks
from lab_utils.dry_run.private import tensorflow as _tensorflow
from lab_utils.dry_run.private import tpu_estimator as _tpu_estimator
from lab_utils.dry_run.records import Mode
from lab_utils.dry_run.wording import in_words
from lab_utils.dry_run.workload import Call, Inputs, Trace


def trace(
    estimator: Any, inputs: Inputs, *, cores: int, calls: Mapping[Mode, Call] = MappingProxyType({})
) -> list[Trace]:
    """Builds the graph of each mode for `cores` cores, and that of serving where it has an input.

    `calls` are those that a program made, whose hooks and predict_keys count, too.

    Evaluation and prediction take the training input_fn where they are given none of their own
    (prediction without its labels). A mode that the program is known not to call is left out, and one for
    which the constructor got no batch size, unless it has an input_fn of its own; evaluation is tried all
    the same (Trace.probe).

    Raises:
        TypeError: `estimator` is not a TPUEstimator.
    """
    settings = _tpu_estimator.settings(estimator)
    traces: list[Trace] = []
    left_out = []
    for mode in (Mode.TRAIN, Mode.EVAL, Mode.PREDICT):
        if mode is Mode.EVAL and settings.use_tpu and not settings.eval_on_tpu:
            continue  # evaluation was asked to stay on the CPU
        if calls and mode not in calls:
            left_out.append(f"Mode {mode}: the dry run did not see the program use it.")
            continue
        result = Trace(mode, cores, settings.batch_size(mode), borrowed_input=inputs.borrows(mode))
        result.model_fn, result.input_fn = settings.model_fn, inputs.of(mode)
        result.estimator_at = getattr(estimator, "made_at", NOWHERE)
        result.probe = mode is not Mode.TRAIN and result.borrowed_input
        if mode is Mode.PREDICT and result.borrowed_input and not result.global_batch:
            continue
        borrows_size = mode is Mode.EVAL and result.borrowed_input and not result.global_batch
        changes = {"eval_batch_size": settings.train_batch_size} if borrows_size else {}
        if _build(result, estimator, changes, calls.get(mode)):
            traces.append(result)
        elif result.error is not None:
            left_out.append(
                f"Mode {mode}: it got no input_fn, and its graph could not be built with the "
                f"input_fn of training:  {in_words(result.error)}"
            )
    if inputs.serving is not None:
        serving = Trace(Mode.SERVING, cores, None)
        serving.model_fn, serving.input_fn = settings.model_fn, inputs.serving
        # The graph for the CPU, also where only the one for a TPU would be written.
        any_export = settings.export_to_cpu or settings.export_to_tpu
        changes = {"use_tpu": False, "export_to_cpu": any_export, "export_to_tpu": False}
        _build(serving, estimator, changes)
        traces.append(serving)
    for trace in traces[:1]:
        trace.not_checked += left_out
    return traces


def _build(
    result: Trace, estimator: Any, changes: dict[str, Any], call: Call | None = None
) -> bool:
    """Builds one mode's graph into `result`; says whether the result is to be judged."""
    with (
        _tpu_estimator.rehearsing(result.cores, aloud=result.mode is Mode.TRAIN) as rehearsal,
        _tensorflow.no_session(),
        _tpu_estimator.spying(
            result, drop_labels=result.mode is Mode.PREDICT and result.borrowed_input
        ),
    ):
        try:
            twin = rehearsal.twin(estimator, **changes)
            if result.mode is not Mode.SERVING:
                with suppress(ValueError):  # building the graph says why
                    result.replicas = _tpu_estimator.replicas(twin)
            _call(twin, result, call, rehearsal.model_dir)
        except _tensorflow.GraphBuilt:
            hooks.look_at(result, call)
        except Exception as error:  # whatever TPUEstimator or the user's code raises is the result
            if "KeyboardInterrupt" in str(error):  # replaced by an error of pybind
                raise KeyboardInterrupt from error
            result.error, result.error_at = error, hooks.place_of(error, result)
    if not result.probe:
        return True
    if result.error is not None:
        return bool(result.parts & _RESULTS[result.mode])
    return result.mode is Mode.PREDICT or bool(getattr(result.spec, "eval_metrics", None))


def _call(twin: Any, result: Trace, call: Call | None, folder: str) -> None:
    """Calls the Estimator for one mode, with what the program gives for it that needs no session."""
    if result.mode is Mode.TRAIN:
        twin.train(result.input_fn, steps=1)
    elif result.mode is Mode.EVAL:
        twin.evaluate(result.input_fn, steps=1)
    elif result.mode is Mode.SERVING:
        twin.export_saved_model(folder, result.input_fn, checkpoint_path="none")
    else:
        keys = call.arguments.get("predict_keys") if call else None
        next(twin.predict(result.input_fn, predict_keys=keys))


# What a spec holds where model_fn has a branch for the mode.
_RESULTS = {Mode.EVAL: {"eval_metrics", "eval_metric_ops"}, Mode.PREDICT: {"predictions"}}
