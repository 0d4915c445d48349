"""Stage 1: the genuine TPUEstimator(use_tpu=True) graph, built without a TPU.

Everything up to the point where a session would open is TPUEstimator's own code, so that its own
exceptions and log lines appear. The user's estimator and its model_dir are not touched: a second
TPUEstimator is made from the same settings, with a temporary model_dir and a TPU system that
answers `cores` cores. It runs in the caller's process, so that closures, notebook functions and
datasets work as they are, and errors point at the user's own lines.
"""

import copy
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from lab_utils.dry_run.private import tensorflow as _tensorflow
from lab_utils.dry_run.private import tpu_estimator as _tpu_estimator
from lab_utils.estimator import tf, v1
from lab_utils.source import place_of_stack

MODES = ("train", "eval", "predict")


@dataclass
class Trace:
    """One mode's graph, as far as it could be built.

    Attributes:
        mode: "train", "eval", "predict", or "serving": what export_saved_model writes for a CPU.
        cores: of the TPU system that the estimator was told of.
        replicas: copies of the model on them; fewer than cores where a copy takes several.
        global_batch: the batch size that the constructor got for this mode.
        graph: the whole graph, there also after an error (None if it fell before input_fn).
        core_graph: the graph in which model_fn ran, one core's step (in serving, the whole graph).
        features, labels: what model_fn got.
        spec: what model_fn returned (None if it raised).
        error: the genuine exception, with its traceback.
        log: TensorFlow's lines of level WARNING and above.
        borrowed_input: eval or predict was traced with the training input_fn.
        model_fn, input_fn: the functions that were called.
        probe: no input_fn was given for this mode, and the training one is tried. Batch sizes are set
            by habit: an error is kept only where model_fn came as far as this mode's own results.
        parts: the arguments that model_fn gave to the spec that it made last, raising or not.
        made_at: the learner's line that made it, in words.
    """

    mode: str
    cores: int
    global_batch: int | None
    graph: tf.Graph | None = None
    core_graph: Any = None
    features: Any = None
    labels: Any = None
    spec: Any = None
    error: Exception | None = None
    log: list[str] = field(default_factory=list)
    borrowed_input: bool = False
    probe: bool = False
    parts: frozenset[str] = frozenset()
    made_at: str = ""
    replicas: int = 0
    model_fn: Callable | None = None
    input_fn: Callable | None = None

    @property
    def per_core_batch(self) -> int | None:
        """The batch of one core, or None where there is no global batch or it does not divide."""
        replicas = self.replicas or self.cores
        if not self.global_batch or self.global_batch % replicas:
            return None
        return self.global_batch // replicas


def twin(estimator: Any, model_dir: str, *, any_cores: bool = False, **changes: Any) -> Any:
    """A TPUEstimator(use_tpu=True) with the settings of `estimator`, writing to `model_dir`.

    With `any_cores` it is for another number of cores than its num_shards says. `changes` replace arguments of its constructor. Warm starting is left out: it would read a
    checkpoint, and changes no shape.
    """
    given = _tpu_estimator.settings(estimator)
    arguments = {
        "model_fn": given.model_fn,
        "config": _tpu_estimator.config_for_dry_run(given.config, model_dir, any_cores),
        "params": copy.deepcopy(given.params),
        "use_tpu": True,
        "train_batch_size": given.train_batch_size,
        "eval_batch_size": given.eval_batch_size,
        "predict_batch_size": given.predict_batch_size,
        "batch_axis": given.batch_axis,
        "eval_on_tpu": given.eval_on_tpu or not given.use_tpu,
        "export_to_tpu": given.export_to_tpu,
        "export_to_cpu": given.export_to_cpu,
        "embedding_config_spec": given.embedding_config_spec,
    }
    return v1.estimator.tpu.TPUEstimator(**arguments | changes)


def trace(
    estimator: Any,
    input_fn: Callable,
    *,
    cores: int,
    modes: Sequence[str] = MODES,
    eval_input_fn: Callable | None = None,
    predict_input_fn: Callable | None = None,
    serving_input_receiver_fn: Callable | None = None,
) -> list[Trace]:
    """Builds the graph of each mode for `cores` cores, and that of serving where it has an input.

    Evaluation and prediction take `input_fn` where they are given none of their own (prediction
    without its labels). A mode for which the constructor got no batch size is left out, unless it
    has an input_fn of its own; evaluation is tried all the same.

    Raises:
        TypeError: `estimator` is no TPUEstimator.
    """
    given = _tpu_estimator.settings(estimator)
    own = {"train": input_fn, "eval": eval_input_fn, "predict": predict_input_fn}
    traces = []
    for mode in modes:
        if mode == "eval" and given.use_tpu and not given.eval_on_tpu:
            continue  # evaluation was asked to stay on the CPU
        result = Trace(mode, cores, given.batch_size(mode), borrowed_input=own[mode] is None)
        result.model_fn, result.input_fn = given.model_fn, own[mode] or input_fn
        result.probe = mode != "train" and result.borrowed_input
        if mode == "predict" and result.borrowed_input and not result.global_batch:
            continue
        borrows_size = mode == "eval" and result.borrowed_input and not result.global_batch
        changes = {"eval_batch_size": given.train_batch_size} if borrows_size else {}
        if _build(result, estimator, changes):
            traces.append(result)
    if serving_input_receiver_fn is not None:
        serving = Trace("serving", cores, None)
        serving.model_fn, serving.input_fn = given.model_fn, serving_input_receiver_fn
        # The graph for the CPU, also where only the one for a TPU would be written.
        any_export = given.export_to_cpu or given.export_to_tpu
        changes = {"use_tpu": False, "export_to_cpu": any_export, "export_to_tpu": False}
        _build(serving, estimator, changes)
        traces.append(serving)
    return traces


def _build(result: Trace, estimator: Any, changes: dict[str, Any]) -> bool:
    """Builds one mode's graph into `result`; says whether the result is to be judged."""
    with (
        tempfile.TemporaryDirectory(prefix="dry_run_") as model_dir,
        _tensorflow.caught_log() as log,
        _tpu_estimator.tpu_system(result.cores),
        _tensorflow.no_session(),
        _tpu_estimator.spying(result.mode == "predict" and result.borrowed_input) as spy,
    ):
        try:
            built = twin(estimator, model_dir, **changes)
            result.replicas = result.cores if result.mode == "serving" else _replicas(built)
            if result.mode == "train":
                built.train(result.input_fn, steps=1)
            elif result.mode == "eval":
                built.evaluate(result.input_fn, steps=1)
            elif result.mode == "serving":
                built.export_saved_model(model_dir, result.input_fn, checkpoint_path="none")
            else:
                next(built.predict(result.input_fn))
        except _tensorflow.GraphBuilt:
            pass
        except Exception as error:  # whatever TPUEstimator or the user's code raises is the result
            result.error = error
        if result.mode == "train":  # its saver opened a writer, which must not outlive the folder
            with tf.Graph().as_default():
                v1.summary.FileWriterCache.get(model_dir).close()
    result.log = [line for line in log if line != "Reraising captured error"]
    result.graph = spy.graph
    if spy.calls:
        call = spy.calls[-1]
        result.core_graph, result.spec = call.graph, call.spec
        result.features, result.labels = call.features, call.labels
    if spy.specs:
        result.parts = spy.specs[-1].arguments
        result.made_at = place_of_stack(spy.specs[-1].stack)
    if not result.probe:
        return True
    if result.error is not None:
        return bool(result.parts & _RESULTS[result.mode])
    return result.mode == "predict" or bool(getattr(result.spec, "eval_metrics", None))


# What a spec holds where model_fn has a branch for the mode.
_RESULTS = {"eval": {"eval_metrics", "eval_metric_ops"}, "predict": {"predictions"}}


def _replicas(estimator: Any) -> int:
    """Copies of the model; 0 where the settings do not allow to tell (building the graph says why)."""
    try:
        return _tpu_estimator.replicas(estimator)
    except ValueError:
        return 0
