"""From the exceptions and log lines of TPUEstimator to findings: a table of its messages, and TPU116.

The first row of `MESSAGES` that fits counts.
"""

import inspect
import re
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from lab_utils.common.source import NOWHERE, Place, own_frame, own_frames, place
from lab_utils.dry_run.advice import SUMMARIES, advice
from lab_utils.dry_run.engine import GRAPHS, rule
from lab_utils.dry_run.lower.bridge import leaf_names
from lab_utils.dry_run.lower.errors import shortened
from lab_utils.dry_run.private import tensorflow as _tensorflow
from lab_utils.dry_run.private import tpu_estimator as _tpu_estimator
from lab_utils.dry_run.program import Api
from lab_utils.dry_run.records import Finding, Mode
from lab_utils.dry_run.rules import finding
from lab_utils.dry_run.trace import blame
from lab_utils.dry_run.workload import Trace
from lab_utils.estimator import tf

Match = re.Match[str]


def _always(trace: Trace, match: Match) -> bool:
    return True


def _groups(trace: Trace, match: Match) -> dict[str, object]:
    """The named groups of the pattern."""
    return match.groupdict()


def _mode(trace: Trace, match: Match) -> dict[str, object]:
    return {"mode": trace.mode}


def _of_model(trace: Trace, match: Match) -> Place:
    return trace.made_at or place(trace.model_fn)


def _of_input_fn(trace: Trace, match: Match) -> Place:
    return place(trace.input_fn)


@dataclass(frozen=True)
class Message:
    """A message of TPUEstimator's, and what is said of it.

    Attributes:
        id: the rule.
        pattern: what the message holds.
        when: what else must be so.
        facts: those of the finding.
        where: the line to blame where the exception passed through none of the program's.
        by_error: the lines that the exception passed through come first.
        because_of: the rule of whose mistake this may be a consequence only.
    """

    id: str
    pattern: str
    when: Callable[[Trace, Match], bool] = _always
    facts: Callable[[Trace, Match], dict[str, object]] = _groups
    where: Callable[[Trace, Match], Place] = _of_model
    by_error: bool = True
    because_of: str = ""

    def match(self, trace: Trace, text: str) -> Match | None:
        """How it fits a message of that mode; None where it does not."""
        match = re.search(self.pattern, text)
        return match if match and self.when(trace, match) else None

    def finding(self, trace: Trace, match: Match) -> Finding:
        """What is said of the exception of that mode."""
        where = (place(trace.error) or trace.error_at) if self.by_error else NOWHERE
        return finding(
            self.id,
            where or self.where(trace, match),
            message=f"{type(trace.error).__name__}: {match.string}",
            because_of=self.because_of,
            **self.facts(trace, match),
        )


@dataclass(frozen=True)
class Argument:
    """Where the program constructs something: the line of an argument, or of the call where it is ""."""

    constructor: str = "TPUEstimator"
    keyword: str = ""

    def __call__(self, trace: Trace, match: Match) -> Place:
        """That line, or the constructor in words."""
        line = blame.argument(
            trace.model_fn, self.constructor, self.keyword.format(mode=trace.mode)
        )
        return line or self.in_words

    @property
    def in_words(self) -> Place:
        """The constructor without a line."""
        return Place(text=f"the constructor of {self.constructor}")


def _divided(trace: Trace | None, match: Match) -> dict[str, object]:
    """Of a batch that does not divide: a size that does."""
    batch, cores = int(match["batch"]), int(match["cores"])
    suggestion = max(cores, round(batch / cores) * cores)
    what = "TPUEstimator gives each core an equal share of it"
    return {"batch": batch, "cores": cores, "what": what, "suggestion": suggestion}


# What TPUEstimator says of its arguments, also without a TPU.
SETTINGS = (
    Message("TPU103", r"input_fn .*does not include params argument", where=_of_input_fn),
    Message("TPU104", r"model_fn .*does not include params argument"),
    Message(
        "TPU105",
        r"are reserved keys but existed in params",
        where=Argument(keyword="params"),
    ),
    Message(
        "TPU106",
        r"batch size (?P<batch>\d+) must be divisible by number of replicas (?P<cores>\d+)",
        facts=_divided,
        where=Argument(keyword="{mode}_batch_size"),
    ),
    Message("TPU107", r"_batch_size`? .*cannot be `?None", where=Argument()),
    Message(
        "TPU129",
        r"num_shards is not set .*should be \((?P<needed>\d+)\), got \((?P<given>\d+)\)",
        where=Argument("TPUConfig", "num_shards"),
    ),
)


def settings_finding(error: BaseException) -> Finding | None:
    """The finding for an exception met while the learner's own code made the estimator.

    None where it is not about the settings of a TPUEstimator.
    """
    text = " ".join(str(error).split())
    for row in SETTINGS:
        if match := re.search(row.pattern, text):
            argument = row.where if isinstance(row.where, Argument) else Argument()
            where = place(error) or argument.in_words
            message = f"{type(error).__name__}: {text}"
            return finding(row.id, where, message=message, **row.facts(None, match))
    return None


# What a session says to a fetch of something that is not in its graph, or of no use to it.
FETCH = (
    r"should have graph attribute that is equal to current graph"
    r"|marked as not fetchable|The name '.*' refers to a Tensor which does not exist"
    r"|(Argument `fetch`|Fetch argument) .*(cannot be interpreted as a|has invalid type)"
)


def _of_input(fault: blame.Fault) -> Callable[[Trace, Match], Place]:
    """The line of the input pipeline that brings in the fault, else that of input_fn."""
    return lambda trace, match: _in_input(trace, fault) or place(trace.input_fn)


def _in_input(trace: Trace, fault: blame.Fault) -> Place:
    """The line of the input pipeline that brings in the fault; NOWHERE if none can be told."""
    op = blame.culprit(trace.graph, fault) if trace.graph is not None else None
    return place(op).source_line if op is not None and own_frame(op.traceback) else NOWHERE


def _of_dtype(trace: Trace, match: Match) -> Place:
    return _of_input(blame.of_type(match["dtype"]))(trace, match)


def _of_shape(trace: Trace, match: Match) -> Place:
    return _of_input(blame.of_shape(match["shape"]))(trace, match)


def _of_host_function(trace: Trace, match: Match) -> Place:
    """The host function of the spec that a message speaks of."""
    spec, text = trace.spec, match.string
    if "scaffold_fn" in text:
        function = getattr(spec, "scaffold_fn", None)
    else:
        names = ["host_call"] if "host_call" in text else ["eval_metrics", "host_call"]
        calls = [call for name in names if (call := getattr(spec, name, None))]
        function = calls[0][0] if calls else None
    return place(function or trace.model_fn)


def _strayed_metric(trace: Trace, match: Match) -> Any | None:
    """The op of a metric that joined the model's graph: metric_fn made it of a captured tensor alone."""
    return _tensorflow.find_operation(trace.core_graph, match["metric"])


def _has_strayed(trace: Trace, match: Match) -> bool:
    return _strayed_metric(trace, match) is not None


def _of_loop(trace: Trace, match: Match) -> Place:
    """The line of the loop that a message names, else the one that the exception passed through."""
    loop = _tensorflow.find_operation(trace.core_graph, f"{match['loop']}/LoopCond")
    line = place(loop).source_line if loop is not None else NOWHERE
    return line if line.file else place(trace.error) or _of_model(trace, match)


def _of_metric(trace: Trace, match: Match) -> Place:
    return place(_strayed_metric(trace, match)) or _of_model(trace, match)


def _function_of_metric(trace: Trace, match: Match) -> dict[str, object]:
    frame = own_frame(_strayed_metric(trace, match).traceback)
    return {"function": frame.name if frame else "A host function"}


def _function(trace: Trace, match: Match) -> dict[str, object]:
    """The innermost function of the program that the exception passed through."""
    frame = (own_frames(trace.error) or [None])[-1]
    return {"function": frame.name if frame else "A host function"}


def _scalar(trace: Trace, match: Match) -> dict[str, object]:
    """The first scalar that goes to a host function, and where it is computed."""
    for name in ("host_call", "eval_metrics"):
        _, tensors = getattr(trace.spec, name, None) or (None, ())
        names = leaf_names(name, tensors)
        for leaf, tensor in zip(names, tf.nest.flatten(tensors), strict=True):
            if tensor.shape.rank == 0:
                line = place(tensor.op).position
                return {"tensor": f"{leaf}, computed at {line}," if line else leaf}
    return {"tensor": "one of them"}


def _only_the_batch_is_unknown(trace: Trace, match: Match) -> bool:
    """Whether a message about shapes speaks of the first dimension alone."""
    fixed = re.search(r"must have a fixed size for dimension (\d+)", match.string)
    if fixed:
        return fixed[1] == "0"
    shape = re.search(r"shape=\(((?:None|\?|\d+)(?:, ?(?:None|\?|\d+))*),?\)", match.string)
    if not shape:
        return False
    first, *others = (size.strip() for size in shape[1].split(","))
    return not first.isdigit() and all(size.isdigit() for size in others)


def _in_estimator(trace: Trace, match: Match) -> bool:
    """Whether it is TPUEstimator's own code that stumbled: model_fn was not called yet."""
    return trace.core_graph is None


def _in_estimator_of_the_batch(trace: Trace, match: Match) -> bool:
    return _in_estimator(trace, match) and _only_the_batch_is_unknown(trace, match)


def _is_called_wrongly(trace: Trace, match: Match) -> bool:
    return trace.spec is not None and isinstance(trace.error, TypeError)


def _captures(trace: Trace, match: Match) -> bool:
    """Whether the host function that raised holds a tensor of the model: that is of one core's share.

    It may be in its closure, or an attribute of what is there.
    """
    function = _failed_host_function(trace)
    if function is None:
        return False
    held = [*inspect.getclosurevars(inspect.unwrap(function)).nonlocals.values()]
    held.append(getattr(function, "__self__", None))
    held += [value for each in held for value in getattr(each, "__dict__", {}).values()]
    tensors = filter(tf.is_tensor, tf.nest.flatten(held))
    return any(getattr(tensor, "graph", None) is trace.core_graph for tensor in tensors)


def _failed_host_function(trace: Trace) -> Callable | None:
    """The host function of the spec that an exception passed through; None where it passed through none."""
    calls = [getattr(trace.spec, name, None) for name in ("eval_metrics", "host_call")]
    functions = [call[0] for call in calls if call]
    codes = {frame.f_code for frame, _ in traceback.walk_tb(trace.error.__traceback__)}
    return next(
        (f for f in functions if getattr(inspect.unwrap(f), "__code__", None) in codes), None
    )


def _model_got_unknown_batch(trace: Trace, match: Match) -> bool:
    return blame.unknown_batch(_shapes_of_model(trace))


def _model_got_unknown_sizes(trace: Trace, match: Match) -> bool:
    return blame.unknown_sizes(_shapes_of_model(trace))


def _shapes_of_model(trace: Trace) -> list[tf.TensorShape]:
    """The shapes of what model_fn was to be given. Those of serving may be unknown."""
    if trace.mode is Mode.SERVING:
        return []
    if trace.core_graph is None and trace.graph is not None and not place(trace.error):
        return blame.last_shapes(trace.graph)  # TPUEstimator's own code stumbled
    tensors = tf.nest.flatten((trace.features, trace.labels))
    return [tensor.shape for tensor in tensors if tf.is_tensor(tensor)]


def _other(trace: Trace, match: Match) -> dict[str, object]:
    text = match.string
    error = f"{type(trace.error).__name__}: {shortened(text)}{_global_batch(trace, text)}"
    return {"mode": trace.mode, "hint": advice(text), "error": error}


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


_STATIC = r"must have static shape|freeze an InfeedQueue|must have a fixed size for dim"
_SHAPED = r"unknown (TensorShape|rank)|should be defined|fully.defined|must be known"

# The first row that fits counts.
MESSAGES = (
    Message(
        "TPU199", "CrossShardOptimizer must be used", facts=_other, because_of="TPU201"
    ),  # by version 1 control flow only
    Message(
        "TPU199", "pad_single_tensor", facts=_other, because_of="TPU214"
    ),  # got more examples than it asked for
    *SETTINGS,
    Message("TPU110", r"must have type ?`?TPUEstimatorSpec", facts=_mode),
    Message("TPU111", r"should preserve batch size dimension, but got scalar", facts=_scalar),
    Message("TPU112", r"length of tensors \d+ does not match method args", where=_of_host_function),
    Message(
        "TPU113",
        r"Please use tf.contrib.summary instead of tf.summary inside of host_calls",
        where=_of_host_function,
    ),
    Message("TPU115", FETCH),
    Message(
        "TPU206",
        r"MergeSummary.* in a while loop",
        facts=lambda *_: {"op": "tf.summary", **SUMMARIES[Api.ESTIMATOR]},
    ),
    Message("TPU117", r"scaffold_fn returns None", where=_of_host_function),
    Message(
        "TPU118",
        r'eval_metric_ops with ".*: (?P<metric>[^":]+)(?::\d+)?" must be from the default graph',
        when=_has_strayed,
        facts=_function_of_metric,
        where=_of_metric,
        by_error=False,
    ),
    Message(
        "TPU118",
        r"depends on TPU computation|in a while loop|is out of scope"
        r"|must be from the (same|default) graph",
        facts=_function,
    ),
    Message(
        "TPU128",
        r"convert (a|elements of) SparseTensor|RaggedTensor' object has no",
        facts=lambda *_: {"source": "input_fn"},
        where=_of_input(blame.SPARSE),
    ),
    Message(
        "TPU119",
        r"'string'> is not a supported TPU infeed type|data type for TPU: string",
        facts=lambda *_: {"source": "input_fn"},
        where=_of_input(blame.STRINGS),
    ),
    Message(
        "TPU120",
        r"dtype: '(?P<dtype>\w+)'> is not a supported TPU infeed type",
        where=_of_dtype,
    ),
    Message("TPU120", r"Unsupported data type for TPU: (?P<dtype>\w+)", where=_of_dtype),
    Message("TPU121", r"`?input_fn`? must return `?a? ?`?Dataset", where=_of_input_fn),
    Message("TPU122", r"predictions must be dict of Tensors"),
    Message("TPU123", r"predictions has dynamic shape"),
    Message(
        "TPU126",
        r"Missing (loss|train_op|predictions)|(loss|train_op|predictions) must be",
        facts=_mode,
    ),
    Message(
        "TPU101",
        _STATIC,
        when=_only_the_batch_is_unknown,
        where=_of_input(blame.UNKNOWN_BATCH),
    ),
    Message("TPU102", _STATIC, where=_of_input(blame.UNKNOWN_SIZES)),
    Message(
        "TPU131",
        r"Shape (?P<shape>\[.*?\]) (cannot be sharded|does not contain) .*dimension (?P<axis>\d+)",
        where=_of_shape,
    ),
    Message("TPU130", r"'(int|NoneType)' object has no attribute 'value'"),
    Message(
        "TPU101",
        _SHAPED,
        when=_in_estimator_of_the_batch,
        where=_of_input(blame.UNKNOWN_BATCH),
    ),
    Message("TPU102", _SHAPED, when=_in_estimator, where=_of_input(blame.UNKNOWN_SIZES)),
    Message("TPU127", _SHAPED),
    Message(
        "TPU112",
        r"positional argument|unexpected keyword argument|multiple values for argument",
        when=_is_called_wrongly,
        where=_of_host_function,
    ),
    Message("TPU118", "", when=_captures, facts=_function),
    Message(
        "TPU199",
        r"maximum_iterations was not passed .*'(?P<loop>[^']+)/while_context'",
        facts=_other,
        where=_of_loop,
        by_error=False,
    ),
    # What the model made of a size that is None: the line of the model is not to blame.
    Message(
        "TPU101",
        "",
        when=_model_got_unknown_batch,
        where=_of_input(blame.UNKNOWN_BATCH),
        by_error=False,
    ),
    Message(
        "TPU102",
        "",
        when=_model_got_unknown_sizes,
        where=_of_input(blame.UNKNOWN_SIZES),
        by_error=False,
    ),
    Message("TPU199", "", facts=_other),
)


@rule(*dict.fromkeys(row.id for row in MESSAGES), needs=("refusal",), modes=GRAPHS)
def messages(trace: Trace | None) -> Iterator[Finding]:
    """The finding for the exception with which TPUEstimator, or the program, ended the graph of a mode."""
    if trace is not None:
        row, match = _first_row(trace)
        yield row.finding(trace, match)


def _first_row(trace: Trace) -> tuple[Message, Match]:
    """The first row that fits the exception of a mode, and how: the last row fits each."""
    text = " ".join(str(trace.error).split())
    matches = ((row, row.match(trace, text)) for row in MESSAGES)
    return next((row, match) for row, match in matches if match)


def rule_of(trace: Trace) -> str:
    """The rule whose mistake ended the graph of a mode."""
    row, _ = _first_row(trace)
    return row.because_of or row.id


@rule("TPU116", needs=("log", "spec", "made_at", "model_fn"), modes=GRAPHS)
def ignored_scaffold(
    log: list[str], spec: Any, made_at: Place, model_fn: Callable
) -> Iterator[Finding]:
    """A finding for a scaffold that was given work, and that TPUEstimator says it ignores."""
    ignored = [line for line in log if "Scaffold is ignored" in line]
    if ignored and _tpu_estimator.scaffold_does_something(spec.scaffold):
        yield finding("TPU116", made_at or place(model_fn), message=ignored[0])
