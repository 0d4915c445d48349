"""From the exceptions and log lines of TPUEstimator to findings (rules TPU1xx)."""

import inspect
import re
import traceback
from collections.abc import Callable
from typing import Any

from lab_utils.common.source import NOWHERE, Place, own_frame, own_frames, place
from lab_utils.dry_run import elsewhere
from lab_utils.dry_run.advice import advice
from lab_utils.dry_run.lower.bridge import leaf_names
from lab_utils.dry_run.lower.errors import shortened
from lab_utils.dry_run.private import tensorflow as _tensorflow
from lab_utils.dry_run.private import tpu_estimator as _tpu_estimator
from lab_utils.dry_run.records import Finding, Mode
from lab_utils.dry_run.rules import finding
from lab_utils.dry_run.trace.blame import argument, culprit, last_shapes, unknown_sizes
from lab_utils.dry_run.workload import Trace
from lab_utils.estimator import tf

# Each row: the rule, and what the message holds; its named groups are facts. The first row that matches
# counts. First the settings, refused also without a TPU.
_SETTINGS: tuple[tuple[str, str], ...] = (
    ("TPU103", r"input_fn .*does not include params argument"),
    ("TPU104", r"model_fn .*does not include params argument"),
    ("TPU105", r"are reserved keys but existed in params"),
    ("TPU106", r"batch size (?P<batch>\d+) must be divisible by number of replicas (?P<cores>\d+)"),
    ("TPU107", r"_batch_size`? .*cannot be `?None"),
    ("TPU124", r"export_to_cpu and export_to_tpu must be true"),
    ("TPU125", r"Invalid TPUConfig `?iterations_per_loop"),
    ("TPU129", r"num_shards is not set .*should be \((?P<needed>\d+)\), got \((?P<given>\d+)\)"),
)
_EXCEPTIONS = (
    *_SETTINGS,
    ("TPU110", r"must have type ?`?TPUEstimatorSpec"),
    ("TPU111", r"should preserve batch size dimension, but got scalar"),
    ("TPU112", r"length of tensors \d+ does not match method args"),
    ("TPU113", r"Please use tf.contrib.summary instead of tf.summary inside of host_calls"),
    ("TPU114", r"_chief_hooks returned by EstimatorSpec is not supported"),
    ("TPU115", r"should have graph attribute that is equal to current graph"),
    ("TPU115", r"marked as not fetchable|The name '.*' refers to a Tensor which does not exist"),
    (
        "TPU115",
        r"(Argument `fetch`|Fetch argument) .*(cannot be interpreted as a|has invalid type)",
    ),
    ("TPU206", r"MergeSummary.* in a while loop"),
    ("TPU117", r"scaffold_fn returns None"),
    ("TPU118", r"depends on TPU computation|in a while loop|is out of scope"),
    ("TPU118", r"must be from the (same|default) graph"),
    ("TPU128", r"convert (a|elements of) SparseTensor|RaggedTensor' object has no"),
    ("TPU119", r"'string'> is not a supported TPU infeed type|data type for TPU: string"),
    ("TPU120", r"dtype: '(?P<dtype>\w+)'> is not a supported TPU infeed type"),
    ("TPU120", r"Unsupported data type for TPU: (?P<dtype>\w+)"),
    ("TPU121", r"`?input_fn`? must return `?a? ?`?Dataset"),
    ("TPU122", r"predictions must be dict of Tensors"),
    ("TPU123", r"predictions has dynamic shape"),
    ("TPU126", r"Missing (loss|train_op|predictions)|(loss|train_op|predictions) must be"),
    ("TPU101", r"must have static shape|freeze an InfeedQueue|must have a fixed size for dim"),
    (
        "TPU131",
        r"Shape (?P<shape>\[.*?\]) (cannot be sharded|does not contain) .*dimension (?P<axis>\d+)",
    ),
    ("TPU130", r"'(int|NoneType)' object has no attribute 'value'"),
    ("TPU127", r"unknown (TensorShape|rank)|should be defined|fully.defined|must be known"),
)
# Where to look if no line of the learner's is on the exception's way: for settings the constructor, and its
# argument. In model_fn by default.
_ARGUMENTS = {
    "TPU105": ("TPUEstimator", "params"),
    "TPU106": ("TPUEstimator", "{mode}_batch_size"),
    "TPU107": ("TPUEstimator", ""),
    "TPU124": ("TPUEstimator", "export_to_cpu"),
    "TPU125": ("TPUConfig", "iterations_per_loop"),
    "TPU129": ("TPUConfig", "num_shards"),
}
_OF_THE_BATCH = ("TPU101", "TPU102", "TPU119", "TPU120", "TPU128", "TPU131")
_OF_INPUT = (*_OF_THE_BATCH, "TPU103", "TPU121")
_OF_HOST_FUNCTIONS = ("TPU112", "TPU113", "TPU117")
_ARITY = r"positional argument|unexpected keyword argument|multiple values for argument"
_CROSS_SHARD = "CrossShardOptimizer must be used"
_PADDING = "pad_single_tensor"  # TPUEstimator's, given more examples than it asked for


def trace_findings(traces: list[Trace]) -> list[Finding]:
    """The findings of stage 1, each said once though several modes raise it.

    A missing CrossShardOptimizer, which TPUEstimator reports only where control flow is version 1,
    is left to the stages that look at the graph (TPU201) and run it (TPU401), and so is a batch larger than
    params['batch_size'], on which TPUEstimator's own padding fails (TPU214).
    """
    findings: dict[tuple[str, Place], Finding] = {}
    for trace in traces:
        for item in _findings(trace):
            findings.setdefault((item.rule, item.place), item)
    return list(findings.values())


def settings_finding(error: BaseException) -> Finding | None:
    """The finding for an exception met while the learner's own code made the estimator.

    None where it is not about the settings of a TPUEstimator.
    """
    text = " ".join(str(error).split())
    rule, facts = _match(_SETTINGS, text)
    if not rule:
        return None
    constructor = _ARGUMENTS.get(rule, ("TPUEstimator", ""))[0]
    where = place(error) or Place(text=f"the constructor of {constructor}")
    return finding(rule, where, message=f"{type(error).__name__}: {text}", **facts)


def _match(rows: tuple[tuple[str, str], ...], text: str) -> tuple[str, dict[str, object]]:
    """The rule of the first row that matches a message, and its facts; "" where none does."""
    for rule, pattern in rows:
        if match := re.search(pattern, text):
            facts: dict[str, object] = match.groupdict()
            if rule == "TPU106":
                batch, cores = int(match["batch"]), int(match["cores"])
                suggestion = max(cores, round(batch / cores) * cores)
                what = "TPUEstimator gives each core an equal share of it"
                facts = {"batch": batch, "cores": cores, "what": what, "suggestion": suggestion}
            return rule, facts
    return "", {}


def is_fetch(error: Exception) -> bool:
    """Whether an exception says that a session cannot fetch a tensor."""
    return _match(_EXCEPTIONS, " ".join(str(error).split()))[0] == "TPU115"


def _findings(trace: Trace) -> list[Finding]:
    findings = []
    ignored = [line for line in trace.log if "Scaffold is ignored" in line]
    if ignored and _tpu_estimator.scaffold_does_something(trace.spec.scaffold):
        where = trace.made_at or place(trace.model_fn)
        findings.append(finding("TPU116", where, message=ignored[0]))
    text = str(trace.error)
    later = _CROSS_SHARD in text or _PADDING in text or elsewhere.reason(trace.error)
    if trace.error is not None and not later:
        findings.append(_of_exception(trace))
    return findings


def _of_exception(trace: Trace) -> Finding:
    text = " ".join(str(trace.error).split())
    rule, facts = _match(_EXCEPTIONS, text)
    arity = isinstance(trace.error, TypeError) and re.search(_ARITY, text)
    if not rule and trace.spec is not None and arity:
        rule = "TPU112"
    if not rule and (function := _failed_host_function(trace)) and _captures(function, trace):
        rule = "TPU118"  # the model's tensor is of one core's share, and did not fit the others
    if not rule and (unknown := _unknown_sizes(trace)):
        # What the model made of a size that is None: the line of the model is not to blame.
        where = _in_input(trace, unknown, "") or place(trace.input_fn)
        return finding(unknown, where, message=f"{type(trace.error).__name__}: {text}")
    rule = rule or "TPU199"
    if rule == "TPU127" and trace.core_graph is None:  # TPUEstimator's own code: no model_fn yet
        rule = "TPU101"
    if rule == "TPU101" and not _only_the_batch_is_unknown(text):
        rule = "TPU102"
    metric = _strayed_metric(trace, text)
    facts |= _facts(rule, trace, metric, text)
    where = place(metric or trace.error)
    if not where and rule in _OF_THE_BATCH:
        where = _in_input(trace, rule, str(facts.get("dtype", facts.get("shape", ""))))
    where = where or trace.error_at or _fallback(trace, rule, text)
    return finding(rule, where, message=f"{type(trace.error).__name__}: {text}", **facts)


def _in_input(trace: Trace, rule: str, fact: str) -> Place:
    """The line of the input pipeline that brings in what `rule` is about; NOWHERE if none can be told."""
    op = culprit(trace.graph, rule, fact) if trace.graph is not None else None
    return place(op).source_line if op is not None and own_frame(op.traceback) else NOWHERE


def _unknown_sizes(trace: Trace) -> str:
    """TPU101 or TPU102 where model_fn was given tensors of unknown sizes, else "". Serving may give them."""
    if trace.mode is Mode.SERVING:
        return ""
    if trace.core_graph is None and trace.graph is not None and not place(trace.error):
        return unknown_sizes(last_shapes(trace.graph))  # TPUEstimator's own code stumbled
    tensors = tf.nest.flatten((trace.features, trace.labels))
    return unknown_sizes(tensor.shape for tensor in tensors if tf.is_tensor(tensor))


def _scalar(trace: Trace) -> str:
    """The first scalar that goes to a host function, and where it is computed."""
    for name in ("host_call", "eval_metrics"):
        _, tensors = getattr(trace.spec, name, None) or (None, ())
        names = leaf_names(name, tensors)
        for leaf, tensor in zip(names, tf.nest.flatten(tensors), strict=True):
            if tensor.shape.rank == 0:
                line = place(tensor.op).position
                return f"{leaf}, computed at {line}," if line else leaf
    return "one of them"


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


def _facts(rule: str, trace: Trace, metric: Any | None, text: str) -> dict[str, object]:
    """What the texts of `rule` need to know beside what the message says."""
    if rule == "TPU111":
        return {"tensor": _scalar(trace)}
    if rule == "TPU119":
        return {"source": "input_fn"}
    if rule in ("TPU110", "TPU126"):
        return {"mode": trace.mode}
    if rule == "TPU118":
        frame = own_frame(metric.traceback) if metric else (own_frames(trace.error) or [None])[-1]
        return {"function": frame.name if frame else "A host function"}
    if rule == "TPU206":
        return {"op": "tf.summary"}
    if rule == "TPU199":
        error = f"{type(trace.error).__name__}: {shortened(text)}"
        facts = {"mode": trace.mode, "hint": advice(text)}
        return facts | {"error": error + _global_batch(trace, text)}
    return {}


# What TensorFlow says of sizes that do not fit together.
_MISFIT = re.compile(
    r"reshape a tensor|[Dd]imensions? must be|[Dd]imension \d+ in|[Ii]ncompatible|not compatible"
    r"|must have the same|must be equal|broadcast"
)


def _global_batch(trace: Trace, text: str) -> str:
    """What to say beside shapes that do not fit in model_fn: one of a core's share, one of the whole batch.

    "" for other messages, though they name the number.
    """
    share, sizes = trace.per_core_batch, set(map(int, re.findall(r"\d+", text)))
    if not share or share == trace.global_batch or trace.spec is not None:
        return ""
    times = trace.global_batch // share
    pairs = {size for size in sizes if size and size % share == 0 and size * times in sizes}
    if not pairs or trace.global_batch not in sizes or not _MISFIT.search(text):
        return ""
    return (
        f". {trace.global_batch} is the global batch: model_fn gets a core's share of it, {share} examples; "
        'take the size from the features\' shape, or from params["batch_size"]'
    )


def _strayed_metric(trace: Trace, text: str) -> Any | None:
    """The op of a metric that joined the model's graph: metric_fn made it of a captured tensor alone."""
    pattern = r'eval_metric_ops with ".*: ([^":]+)(?::\d+)?" must be from the default graph'
    match = re.search(pattern, text)
    return _tensorflow.find_operation(trace.core_graph, match[1]) if match else None


def _fallback(trace: Trace, rule: str, text: str) -> Place:
    if rule in _OF_INPUT:
        return place(trace.input_fn)
    if rule in _OF_HOST_FUNCTIONS:
        return place(_host_function(trace, text) or trace.model_fn)
    if rule not in _ARGUMENTS:
        return trace.made_at or place(trace.model_fn)
    constructor, keyword = _ARGUMENTS[rule]
    line = argument(trace.model_fn, constructor, keyword.format(mode=trace.mode))
    return line or Place(text=f"the constructor of {constructor}")


def _failed_host_function(trace: Trace) -> Callable | None:
    """The host function of the spec that an exception passed through; None where it passed through none."""
    calls = [getattr(trace.spec, name, None) for name in ("eval_metrics", "host_call")]
    functions = [call[0] for call in calls if call]
    codes = {frame.f_code for frame, _ in traceback.walk_tb(trace.error.__traceback__)}
    return next(
        (f for f in functions if getattr(inspect.unwrap(f), "__code__", None) in codes), None
    )


def _captures(function: Callable, trace: Trace) -> bool:
    """Whether a function holds a tensor of the model: in its closure, or as an attribute of what is there."""
    held = [*inspect.getclosurevars(inspect.unwrap(function)).nonlocals.values()]
    held.append(getattr(function, "__self__", None))
    held += [value for each in held for value in getattr(each, "__dict__", {}).values()]
    tensors = filter(tf.is_tensor, tf.nest.flatten(held))
    return any(getattr(tensor, "graph", None) is trace.core_graph for tensor in tensors)


def _host_function(trace: Trace, text: str) -> Callable | None:
    """The host function of the spec that a message speaks of."""
    spec = trace.spec
    if "scaffold_fn" in text:
        return getattr(spec, "scaffold_fn", None)
    names = ["host_call"] if "host_call" in text else ["eval_metrics", "host_call"]
    calls = [call for name in names if (call := getattr(spec, name, None))]
    return calls[0][0] if calls else None
