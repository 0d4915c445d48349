"""What a mode's trace tells beside a message of TPUEstimator's: for the columns of the table in messages.py.

Each function takes the trace, and how a row's pattern fits the message.
"""

import inspect
import re
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from lab_utils.common.source import NOWHERE, Place, own_frame, own_frames, place
from lab_utils.dry_run.advice import advice
from lab_utils.dry_run.facts import blame
from lab_utils.dry_run.lower.bridge import leaf_names
from lab_utils.dry_run.lower.errors import shortened
from lab_utils.dry_run.private import tensorflow as _tensorflow
from lab_utils.dry_run.records import Mode
from lab_utils.dry_run.workload import Trace
from lab_utils.estimator import tf

Match = re.Match[str]


# Whether a row fits.


def always(trace: Trace, match: Match) -> bool:
    """The pattern alone decides."""
    return True


def only_the_batch_is_unknown(trace: Trace, match: Match) -> bool:
    """Whether a message about shapes speaks of the first dimension alone."""
    fixed = re.search(r"must have a fixed size for dimension (\d+)", match.string)
    if fixed:
        return fixed[1] == "0"
    shape = re.search(r"shape=\(((?:None|\?|\d+)(?:, ?(?:None|\?|\d+))*),?\)", match.string)
    if not shape:
        return False
    first, *others = (size.strip() for size in shape[1].split(","))
    return not first.isdigit() and all(size.isdigit() for size in others)


def in_estimator(trace: Trace, match: Match) -> bool:
    """Whether it is TPUEstimator's own code that stumbled: model_fn was not called yet."""
    return trace.core_graph is None


def in_estimator_of_the_batch(trace: Trace, match: Match) -> bool:
    """Whether it stumbled, and only over the first dimension."""
    return in_estimator(trace, match) and only_the_batch_is_unknown(trace, match)


def feeds_values(trace: Trace, match: Match) -> bool:
    """Whether TPUEstimator stumbled, and input_fn returns something that is not a tensor."""
    return in_estimator(trace, match) and bool(blame.names_of_values(trace.given))


def is_called_wrongly(trace: Trace, match: Match) -> bool:
    """Whether a function of the spec was given other arguments than it takes."""
    return trace.spec is not None and isinstance(trace.error, TypeError)


def has_strayed(trace: Trace, match: Match) -> bool:
    """Whether the op that the message names is a metric that joined the model's graph."""
    return _strayed_metric(trace, match) is not None


def _strayed_metric(trace: Trace, match: Match) -> Any | None:
    """The op of a metric that joined the model's graph: metric_fn made it of a captured tensor alone."""
    return _tensorflow.find_operation(trace.core_graph, match["metric"])


def captures(trace: Trace, match: Match) -> bool:
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


def got_unknown_batch(trace: Trace, match: Match) -> bool:
    """Whether model_fn was to be given batches of unknown size."""
    return blame.unknown_batch(_shapes_of_model(trace))


def got_unknown_sizes(trace: Trace, match: Match) -> bool:
    """Whether model_fn was to be given examples of unknown sizes."""
    return blame.unknown_sizes(_shapes_of_model(trace))


def _shapes_of_model(trace: Trace) -> list[tf.TensorShape]:
    """The shapes of what model_fn was to be given. Those of serving may be unknown."""
    if trace.mode is Mode.SERVING:
        return []
    if trace.core_graph is None and trace.graph is not None and not place(trace.error):
        return blame.last_shapes(trace.graph)  # TPUEstimator's own code stumbled
    tensors = tf.nest.flatten((trace.features, trace.labels))
    return [tensor.shape for tensor in tensors if tf.is_tensor(tensor)]


# The facts of the finding.


def groups(trace: Trace, match: Match) -> dict[str, object]:
    """The named groups of the pattern."""
    return match.groupdict()


def mode(trace: Trace, match: Match) -> dict[str, object]:
    """The mode."""
    return {"mode": trace.mode}


def divided(trace: Trace, match: Match) -> dict[str, object]:
    """Of a batch that does not divide: a size that does."""
    batch, cores = int(match["batch"]), int(match["cores"])
    suggestion = max(cores, round(batch / cores) * cores)
    what = "TPUEstimator gives each core an equal share of it"
    return {"batch": batch, "cores": cores, "what": what, "suggestion": suggestion}


def strings(trace: Trace, match: Match) -> dict[str, object]:
    """Of strings among the data: which of them."""
    names = blame.names_of_strings(trace.given)
    return {"source": f"input_fn ({names})" if names else "input_fn"}


def values(trace: Trace, match: Match) -> dict[str, object]:
    """Of values that are not tensors among the data: which of them, beside the message."""
    names = blame.names_of_values(trace.given)
    error = f"{other(trace, match)['error']}. input_fn returns {names}, which is not a tensor"
    hint = "Return only tensors from input_fn, and pass what is the same for all batches in params."
    return {"mode": trace.mode, "hint": hint, "error": error}


def scalar(trace: Trace, match: Match) -> dict[str, object]:
    """The first scalar that goes to a host function, and where it is computed."""
    for name in ("host_call", "eval_metrics"):
        _, tensors = getattr(trace.spec, name, None) or (None, ())
        names = leaf_names(name, tensors)
        for leaf, tensor in zip(names, tf.nest.flatten(tensors), strict=True):
            if tensor.shape.rank == 0:
                line = place(tensor.op).position
                return {"tensor": f"{leaf}, computed at {line}," if line else leaf}
    return {"tensor": "one of them"}


def function(trace: Trace, match: Match) -> dict[str, object]:
    """The innermost function of the program that the exception passed through."""
    frame = (own_frames(trace.error) or [None])[-1]
    return {"function": frame.name if frame else "A host function"}


def function_of_metric(trace: Trace, match: Match) -> dict[str, object]:
    """The function that makes that metric."""
    frame = own_frame(_strayed_metric(trace, match).traceback)
    return {"function": frame.name if frame else "A host function"}


def other(trace: Trace, match: Match) -> dict[str, object]:
    """The message itself, and what is known to help."""
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
        f". {trace.global_batch} is the global batch, but model_fn gets a core's share, {share} examples. "
        'Take the size from the shape of the features, or from params["batch_size"]'
    )


# The line to blame where the exception passed through none of the program's.


def at_model(trace: Trace, match: Match) -> Place:
    """Where model_fn makes its spec, else model_fn."""
    return trace.made_at or place(trace.model_fn)


def at_input_fn(trace: Trace, match: Match) -> Place:
    """The line of input_fn."""
    return place(trace.input_fn)


def at_input(fault: blame.Fault) -> Callable[[Trace, Match], Place]:
    """The line of the input pipeline that brings in the fault, else that of input_fn."""
    return lambda trace, match: _in_input(trace, fault) or place(trace.input_fn)


def _in_input(trace: Trace, fault: blame.Fault) -> Place:
    """The line of the input pipeline that brings in the fault; NOWHERE if none can be told."""
    op = blame.culprit(trace.graph, fault) if trace.graph is not None else None
    return place(op).source_line if op is not None and own_frame(op.traceback) else NOWHERE


def at_dtype(trace: Trace, match: Match) -> Place:
    """What brings in elements of the type that the message names."""
    return at_input(blame.of_type(match["dtype"]))(trace, match)


def at_shape(trace: Trace, match: Match) -> Place:
    """What brings in elements of the shape that the message names."""
    return at_input(blame.of_shape(match["shape"]))(trace, match)


def at_host_function(trace: Trace, match: Match) -> Place:
    """The host function of the spec that a message speaks of."""
    spec, text = trace.spec, match.string
    if "scaffold_fn" in text:
        function = getattr(spec, "scaffold_fn", None)
    else:
        names = ["host_call"] if "host_call" in text else ["eval_metrics", "host_call"]
        calls = [call for name in names if (call := getattr(spec, name, None))]
        function = calls[0][0] if calls else None
    return place(function or trace.model_fn)


def at_loop(trace: Trace, match: Match) -> Place:
    """The line of the loop that a message names, else the one that the exception passed through."""
    loop = _tensorflow.find_operation(trace.core_graph, f"{match['loop']}/LoopCond")
    line = place(loop).source_line if loop is not None else NOWHERE
    return line if line.file else place(trace.error) or at_model(trace, match)


def at_metric(trace: Trace, match: Match) -> Place:
    """The line of that metric."""
    return place(_strayed_metric(trace, match)) or at_model(trace, match)


@dataclass(frozen=True)
class Argument:
    """Where the program constructs something: the line of an argument, or of the call where it is ""."""

    constructor: str = "TPUEstimator"
    keyword: str = ""

    def __call__(self, trace: Trace, match: Match) -> Place:
        """That line, or the constructor in words."""
        at = trace.estimator_at if self.constructor == "TPUEstimator" else NOWHERE
        keyword = self.keyword.format(mode=trace.mode)
        line = blame.argument(trace.model_fn, self.constructor, keyword, at)
        return line or self.in_words

    @property
    def in_words(self) -> Place:
        """The constructor without a line."""
        return Place(text=f"the constructor of {self.constructor}")
