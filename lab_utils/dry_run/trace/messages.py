"""From the exceptions and log lines of TPUEstimator to findings (rules TPU1xx)."""

import re
from collections.abc import Callable
from typing import Any

from lab_utils.common.source import NOWHERE, Place, own_frame, own_frames, place
from lab_utils.dry_run import elsewhere
from lab_utils.dry_run.private import tensorflow as _tensorflow
from lab_utils.dry_run.private import tpu_estimator as _tpu_estimator
from lab_utils.dry_run.records import Finding, Mode
from lab_utils.dry_run.rules import finding
from lab_utils.dry_run.trace import listing
from lab_utils.dry_run.trace.blame import culprit, unknown_sizes
from lab_utils.dry_run.traced import Trace
from lab_utils.estimator import tf

CONSTRUCTOR = "the constructor of TPUEstimator"

# Each row: what the message holds, the rule, and where to look if no line of the learner's is on the
# exception's way. The first row that matches counts. First the settings, refused also without a TPU.
_SETTINGS: tuple[tuple[str, str, str], ...] = (
    (r"input_fn .*does not include params argument", "TPU103", "input_fn"),
    (r"model_fn .*does not include params argument", "TPU104", "model_fn"),
    (r"are reserved keys but existed in params", "TPU105", CONSTRUCTOR),
    (r"batch size \d+ must be divisible by number of replicas", "TPU106", CONSTRUCTOR),
    (r"_batch_size`? .*cannot be `?None", "TPU107", CONSTRUCTOR),
    (r"export_to_cpu and export_to_tpu must be true", "TPU124", CONSTRUCTOR),
    (r"Invalid TPUConfig `?iterations_per_loop", "TPU125", "TPUConfig"),
    (r"TPUConfig\.num_shards is not set correctly", "TPU129", "TPUConfig"),
)
_EXCEPTIONS = (
    *_SETTINGS,
    (r"must have type ?`?TPUEstimatorSpec", "TPU110", "model_fn"),
    (r"should preserve batch size dimension, but got scalar", "TPU111", "host function"),
    (r"length of tensors \d+ does not match method args", "TPU112", "host function"),
    (
        r"Please use tf.contrib.summary instead of tf.summary inside of host_calls",
        "TPU113",
        "host function",
    ),
    (r"_chief_hooks returned by EstimatorSpec is not supported", "TPU114", "model_fn"),
    (
        r"should have graph attribute that is equal to current graph|marked as not fetchable",
        "TPU115",
        "model_fn",
    ),
    (r"The name '.*' refers to a Tensor which does not exist", "TPU115", "model_fn"),
    (r"MergeSummary.* in a while loop", "TPU206", "model_fn"),
    (r"scaffold_fn returns None", "TPU117", "host function"),
    (
        r"depends on TPU computation|in a while loop|is out of scope|must be from the same graph"
        r"|eval_metric_ops with .* must be from the default graph",
        "TPU118",
        "model_fn",
    ),
    (
        r"convert elements of SparseTensor|convert a SparseTensor|RaggedTensor' object has no",
        "TPU128",
        "input_fn",
    ),
    (r"'string'> is not a supported TPU infeed type", "TPU119", "input_fn"),
    (r"Unsupported data type for TPU: string", "TPU119", "input_fn"),
    (r"is not a supported TPU infeed type|Unsupported data type for TPU", "TPU120", "input_fn"),
    (r"`?input_fn`? must return `?a? ?`?Dataset", "TPU121", "input_fn"),
    (r"predictions must be dict of Tensors", "TPU122", "model_fn"),
    (r"predictions has dynamic shape", "TPU123", "model_fn"),
    (
        r"Missing (loss|train_op|predictions)|(loss|train_op|predictions) must be",
        "TPU126",
        "model_fn",
    ),
    (
        r"must have static shape|freeze an InfeedQueue|must have a fixed size for dim",
        "TPU101",
        "input_fn",
    ),
    (r"cannot be sharded \d+ ways|does not contain shard_dimension", "TPU131", "input_fn"),
    (r"'(int|NoneType)' object has no attribute 'value'", "TPU130", "model_fn"),
    (
        r"unknown (TensorShape|rank)|should be (fully )?defined|fully.defined|must be known",
        "TPU127",
        "model_fn",
    ),
)
# For settings: the constructor, and its argument.
_ARGUMENTS = {
    "TPU105": ("TPUEstimator", "params"),
    "TPU106": ("TPUEstimator", "{mode}_batch_size"),
    "TPU107": ("TPUEstimator", ""),
    "TPU124": ("TPUEstimator", "export_to_cpu"),
    "TPU125": ("TPUConfig", "iterations_per_loop"),
    "TPU129": ("TPUConfig", "num_shards"),
}
_OF_THE_BATCH = ("TPU101", "TPU102", "TPU119", "TPU120", "TPU128", "TPU131")
_ARITY = r"positional argument|unexpected keyword argument|multiple values for argument"
_CROSS_SHARD = "CrossShardOptimizer must be used"
_PADDING = "pad_single_tensor"  # TPUEstimator's, given more examples than it asked for


def trace_findings(traces: list[Trace]) -> list[Finding]:
    """The findings of stage 1, each said once though several modes raise it.

    A missing CrossShardOptimizer, which TPUEstimator reports only where control flow is version 1,
    is left to the stages that look at the graph (TPU201) and run it (TPU401), and so is a batch larger than
    params['batch_size'], on which TPUEstimator's own padding fails (TPU214).
    """
    found: dict[tuple[str, Place], Finding] = {}
    for trace in traces:
        for each in _findings(trace):
            found.setdefault((each.rule, each.place), each)
    return list(found.values())


def settings_finding(error: BaseException) -> Finding | None:
    """The finding for an exception met while the learner's own code made the estimator.

    None where it is not about the settings of a TPUEstimator.
    """
    text = " ".join(str(error).split())
    for pattern, rule, fallback in _SETTINGS:
        if re.search(pattern, text):
            message = f"{type(error).__name__}: {text}"
            facts = (
                _divided(text) if rule == "TPU106" else _shards(text) if rule == "TPU129" else {}
            )
            return finding(rule, place(error) or Place(text=fallback), message=message, **facts)
    return None


def _findings(trace: Trace) -> list[Finding]:
    found = []
    ignored = [line for line in trace.log if "Scaffold is ignored" in line]
    if ignored and _tpu_estimator.scaffold_does_something(trace.spec.scaffold):
        where = trace.made_at or place(trace.model_fn)
        found.append(finding("TPU116", where, message=ignored[0]))
    told = str(trace.error)
    passed_on = _CROSS_SHARD in told or _PADDING in told
    if trace.error is not None and not passed_on and not elsewhere.reason(trace.error):
        found.append(_of_exception(trace))
    return found


def _of_exception(trace: Trace) -> Finding:
    text = " ".join(str(trace.error).split())
    message = f"{type(trace.error).__name__}: {text}"
    rule, fallback = "TPU199", "model_fn"
    for pattern, id, where in _EXCEPTIONS:
        if re.search(pattern, text):
            rule, fallback = id, where
            break
    else:
        if (
            trace.spec is not None
            and isinstance(trace.error, TypeError)
            and re.search(_ARITY, text)
        ):
            rule, fallback = "TPU112", "host function"
    if rule == "TPU199" and (unknown := _unknown_sizes(trace)):
        rule, fallback = unknown, "input_fn"  # what the model made of a size that is None
        return finding(
            rule, _in_input(trace, rule, {}) or _fallback(trace, fallback, text), message=message
        )
    if rule == "TPU127" and trace.core_graph is None:  # TPUEstimator's own code: no model_fn yet
        rule, fallback = "TPU101", "input_fn"
    if rule == "TPU101" and not _only_the_batch_is_unknown(text):
        rule = "TPU102"
    strayed = _strayed_metric(trace, text)
    facts = _facts(rule, trace, text)
    where = place(strayed or trace.error)
    if not where and fallback == "input_fn":
        where = _in_input(trace, rule, facts)
    if not where and rule == "TPU111":
        where = _scalar(trace)
    where = where or _fallback(trace, fallback, text, rule)
    return finding(rule, where, message=message, **facts)


def _in_input(trace: Trace, rule: str, facts: dict[str, object]) -> Place:
    """The line of the input pipeline that brings in what `rule` is about; NOWHERE if none can be told."""
    if rule not in _OF_THE_BATCH or trace.graph is None:
        return NOWHERE
    op = culprit(trace.graph, rule, str(facts.get("dtype", facts.get("shape", ""))))
    return place(op).source_line if op is not None and own_frame(op.traceback) else NOWHERE


def _unknown_sizes(trace: Trace) -> str:
    """TPU101 or TPU102 where model_fn was given tensors of unknown sizes, else "". Serving may give them."""
    if trace.mode is Mode.SERVING:
        return ""
    given = [t for t in tf.nest.flatten((trace.features, trace.labels)) if tf.is_tensor(t)]
    shapes = [t.shape for t in given if not t.shape.is_fully_defined()]
    if trace.core_graph is None and trace.graph is not None and not place(trace.error):
        return unknown_sizes(trace.graph)  # TPUEstimator's own code stumbled, before model_fn
    if not shapes:
        return ""
    inner = any(shape.rank is None or not shape[1:].is_fully_defined() for shape in shapes)
    return "TPU102" if inner else "TPU101"


def _scalar(trace: Trace) -> Place:
    """The first scalar in the list that goes with a host function; NOWHERE if none can be told."""
    for name in ("host_call", "eval_metrics"):
        function, tensors = getattr(trace.spec, name, None) or (None, ())
        keys = sorted(tensors) if isinstance(tensors, dict) else [None] * len(tensors)
        for number, tensor in enumerate(tf.nest.flatten(tensors)):
            if tensor.shape.rank == 0 and len(keys) > number:
                return listing.listed(function, number, keys[number], trace.made_at)
    return NOWHERE


def _only_the_batch_is_unknown(text: str) -> bool:
    """Whether a message about shapes speaks of the first dimension alone."""
    fixed = re.search(r"must have a fixed size for dimension (\d+)", text)
    if fixed:
        return fixed[1] == "0"
    shape = re.search(r"shape=\(((?:None|\?|\d+)(?:, ?(?:None|\?|\d+))*),?\)", text)
    if not shape:
        return False
    first, *others = (size.strip() for size in shape[1].split(","))
    return not first.isdigit() and all(size.isdigit() for size in others)


def _facts(rule: str, trace: Trace, text: str) -> dict[str, object]:
    """What the texts of `rule` need to know."""
    if rule == "TPU106":
        return _divided(text)
    if rule == "TPU119":
        return {"source": "input_fn"}
    if rule == "TPU129":
        return _shards(text)
    if rule in ("TPU110", "TPU126"):
        return {"mode": trace.mode}
    if rule == "TPU118":
        strayed = _strayed_metric(trace, text)
        frame = own_frame(strayed.traceback) if strayed else (own_frames(trace.error) or [None])[-1]
        return {"function": frame.name if frame else "A host function"}
    if rule == "TPU120":
        named = re.search(r"dtype: '(\w+)'|for TPU: (\w+)", text)
        return {
            "dtype": next(filter(None, named.groups()), "another type") if named else "another type"
        }
    if rule == "TPU131":
        shape, axis = re.search(r"Shape (\[.*?\]) .*?dimension (\d+)", text).groups()
        return {"shape": shape, "axis": axis}
    if rule == "TPU206":
        return {"op": "tf.summary"}
    if rule == "TPU199":
        return {
            "mode": trace.mode,
            "error": f"{type(trace.error).__name__}: {text[:300]}".rstrip("."),
        }
    return {}


def _strayed_metric(trace: Trace, text: str) -> Any | None:
    """The op of a metric that joined the model's graph: metric_fn made it of a captured tensor alone."""
    named = re.search(
        r'eval_metric_ops with ".*: ([^":]+)(?::\d+)?" must be from the default graph', text
    )
    return _tensorflow.find_operation(trace.core_graph, named[1]) if named else None


def _shards(text: str) -> dict[str, object]:
    needed, given = re.search(r"should be \((\d+)\), got \((\d+)\)", text).groups()
    return {"given": given, "needed": needed}


def _divided(text: str) -> dict[str, object]:
    batch, cores = map(int, re.search(r"batch size (\d+) .* replicas (\d+)", text).groups())
    suggestion = max(cores, round(batch / cores) * cores)
    return {"cores": cores, "batch": batch, "suggestion": suggestion}


def _fallback(trace: Trace, kind: str, text: str, rule: str = "") -> Place:
    if kind == "input_fn":
        return place(trace.input_fn)
    if kind == "host function":
        function = _host_function(trace, text)
        return place(function or trace.model_fn)
    if kind == "model_fn":
        return trace.made_at or place(trace.model_fn)
    constructor, keyword = _ARGUMENTS.get(rule, ("", ""))
    found = listing.argument(trace.model_fn, constructor, keyword.format(mode=trace.mode))
    return found or Place(text=kind)


def _host_function(trace: Trace, text: str) -> Callable | None:
    """The host function of the spec that a message speaks of."""
    spec = trace.spec
    if "scaffold_fn" in text:
        return getattr(spec, "scaffold_fn", None)
    names = ["host_call"] if "host_call" in text else ["eval_metrics", "host_call"]
    calls = [call for name in names if (call := getattr(spec, name, None))]
    return calls[0][0] if calls else None
