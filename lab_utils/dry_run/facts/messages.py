"""What the exceptions of TPUEstimator mean: a table of its messages.

The first row of `MESSAGES` that fits counts.
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from lab_utils.common.source import LONGEST, NOWHERE, Place, place
from lab_utils.dry_run.facts import blame, clues
from lab_utils.dry_run.facts.clues import Match
from lab_utils.dry_run.facts.refusal import Refusal
from lab_utils.dry_run.program import Api
from lab_utils.dry_run.records import Mode
from lab_utils.dry_run.workload import Trace

Condition = Callable[[Trace, Match], bool]


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
    when: Condition = clues.always
    facts: Callable[[Trace, Match], dict[str, object]] = clues.groups
    where: Callable[[Trace, Match], Place] = clues.at_model
    by_error: bool = True
    because_of: str = ""

    def match(self, trace: Trace, text: str) -> Match | None:
        """How it fits a message of that mode; None where it does not."""
        match = re.search(self.pattern, text)
        return match if match and self.when(trace, match) else None

    def refusal(self, trace: Trace, match: Match) -> Refusal:
        """What is said of the exception of that mode."""
        by_error = (place(trace.error) or trace.error_at) if self.by_error else NOWHERE
        return Refusal(
            self.id,
            by_error or self._where(trace, match),
            self.facts(trace, match),
            f"{type(trace.error).__name__}: {match.string}",
            self.because_of,
        )

    def _where(self, trace: Trace, match: Match) -> Place:
        if trace.model_fn is not None:
            return self.where(trace, match)
        # The constructor itself raised.
        return (self.where if isinstance(self.where, clues.Argument) else clues.Argument()).in_words


# What TPUEstimator says of its arguments, also without a TPU.
SETTINGS = (
    Message("TPU103", r"input_fn .*does not include params argument", where=clues.at_input_fn),
    Message("TPU104", r"model_fn .*does not include params argument"),
    Message(
        "TPU105",
        r"are reserved keys but existed in params",
        where=clues.Argument(keyword="params"),
    ),
    Message(
        "TPU106",
        r"batch size (?P<batch>\d+) must be divisible by number of replicas (?P<cores>\d+)",
        facts=clues.divided,
        where=clues.Argument(keyword="{mode}_batch_size"),
    ),
    Message("TPU107", r"_batch_size`? .*cannot be `?None", where=clues.Argument()),
    Message(
        "TPU129",
        r"num_shards is not set .*should be \((?P<needed>\d+)\), got \((?P<given>\d+)\)",
        where=clues.Argument("TPUConfig", "num_shards"),
    ),
)


# What a session says to a fetch of something that is not in its graph, or of no use to it.
_FETCH = (
    r"should have graph attribute that is equal to current graph"
    r"|marked as not fetchable|The name '.*' refers to a Tensor which does not exist"
    r"|(Argument `fetch`|Fetch argument) .*(cannot be interpreted as a|has invalid type)"
)


_STATIC = r"must have static shape|freeze an InfeedQueue|must have a fixed size for dim"
_SHAPED = r"unknown (TensorShape|rank)|should be defined|fully.defined|must be known"


def _unknown(
    pattern: str, batch: Condition, sizes: Condition = clues.always, *, by_error: bool = True
) -> list[Message]:
    """The rows on sizes that are not known: where `batch` holds of the batch's, else where `sizes` does."""
    rows = (("TPU101", batch, blame.UNKNOWN_BATCH), ("TPU102", sizes, blame.UNKNOWN_SIZES))
    return [
        Message(id, pattern, when, where=clues.at_input(fault), by_error=by_error)
        for id, when, fault in rows
    ]


# The first row that fits counts.
MESSAGES = (
    Message(
        # With version 1 control flow only.
        "TPU199",
        "CrossShardOptimizer must be used",
        facts=clues.other,
        because_of="TPU201",
    ),
    # TPUEstimator's own padding got more examples than it asked for.
    *SETTINGS,
    Message("TPU110", r"must have type ?`?TPUEstimatorSpec", facts=clues.mode),
    Message("TPU111", r"should preserve batch size dimension, but got scalar", facts=clues.scalar),
    Message(
        "TPU112", r"length of tensors \d+ does not match method args", where=clues.at_host_function
    ),
    Message(
        "TPU113",
        r"Please use tf.contrib.summary instead of tf.summary inside of host_calls",
        where=clues.at_host_function,
    ),
    Message("TPU115", _FETCH),
    Message(
        "TPU206",
        r"MergeSummary.* in a while loop",
        facts=lambda *_: {"op": "tf.summary", "case": Api.ESTIMATOR},
    ),
    Message("TPU117", r"scaffold_fn returns None", where=clues.at_host_function),
    Message(
        "TPU118",
        r'eval_metric_ops with ".*: (?P<metric>[^":]+)(?::\d+)?" must be from the default graph',
        when=clues.has_strayed,
        facts=clues.function_of_metric,
        where=clues.at_metric,
        by_error=False,
    ),
    Message(
        "TPU118",
        r"depends on TPU computation|in a while loop|is out of scope"
        r"|must be from the (same|default) graph",
        facts=clues.function,
    ),
    Message(
        "TPU128",
        r"convert (a|elements of) SparseTensor|RaggedTensor' object has no",
        facts=lambda *_: {"source": "input_fn"},
        where=clues.at_input(blame.SPARSE),
    ),
    Message("TPU199", "pad_single_tensor", facts=clues.other, because_of="TPU214"),
    Message(
        "TPU119",
        r"'string'> is not a supported TPU infeed type|data type for TPU: string",
        facts=clues.strings,
        where=clues.at_input(blame.STRINGS),
    ),
    Message(
        "TPU120",
        r"dtype: '(?P<dtype>\w+)'> is not a supported TPU infeed type",
        where=clues.at_dtype,
    ),
    Message("TPU120", r"Unsupported data type for TPU: (?P<dtype>\w+)", where=clues.at_dtype),
    Message("TPU121", r"`?input_fn`? must return `?a? ?`?Dataset", where=clues.at_input_fn),
    Message("TPU122", r"predictions(\[.*?\])? must be (dict of Tensors|Tensor, given)"),
    Message("TPU123", r"predictions has dynamic shape"),
    Message(
        "TPU126",
        r"Missing (loss|train_op|predictions)|(loss|train_op|predictions) must be",
        facts=clues.mode,
    ),
    *_unknown(_STATIC, clues.only_the_batch_is_unknown),
    Message(
        "TPU131",
        r"Shape (?P<shape>\[.*?\]) (cannot be sharded|does not contain) .*dimension (?P<axis>\d+)",
        where=clues.at_shape,
    ),
    Message(
        "TPU199",
        r"object has no attribute 'dtype'",
        when=clues.feeds_values,
        facts=clues.values,
        where=clues.at_input_fn,
    ),
    Message("TPU130", r"'(int|NoneType)' object has no attribute 'value'"),
    *_unknown(_SHAPED, clues.in_estimator_of_the_batch, clues.in_estimator),
    Message("TPU127", _SHAPED),
    Message(
        "TPU112",
        r"positional argument|unexpected keyword argument|multiple values for argument",
        when=clues.is_called_wrongly,
        where=clues.at_host_function,
    ),
    Message("TPU118", "", when=clues.captures, facts=clues.function),
    Message(
        "TPU199",
        r"maximum_iterations was not passed .*'(?P<loop>[^']+)/while_context'",
        facts=clues.other,
        where=clues.at_loop,
        by_error=False,
    ),
    # What the model made of a size that is None: the line of the model is not to blame.
    *_unknown("", clues.got_unknown_batch, clues.got_unknown_sizes, by_error=False),
    Message("TPU199", "", facts=clues.other),
)


def refusal_of(trace: Trace) -> Refusal:
    """What is said of the exception with which TPUEstimator, or the program, ended the graph of a mode."""
    refusal = _first(MESSAGES, trace)
    assert refusal is not None, "the last row fits each"
    return refusal


def refused_settings(error: Exception) -> Refusal | None:
    """The same of an exception met while the learner's own code made the estimator.

    None where it is not about the settings of a TPUEstimator.
    """
    made = Trace(Mode.TRAIN, 0, None, error=error)  # its functions are not known yet
    return _first(SETTINGS, made)


def _first(rows: Iterable[Message], trace: Trace) -> Refusal | None:
    """What the first row that fits says of the exception of a mode."""
    text = " ".join(str(trace.error)[:LONGEST].split())
    matches = ((row, row.match(trace, text)) for row in rows)
    return next((row.refusal(trace, match) for row, match in matches if match), None)


def is_of_fetch(error: Exception) -> bool:
    """Whether a session raised it, or what stands in for one, because of what it was to fetch."""
    return bool(re.search(_FETCH, " ".join(str(error)[:LONGEST].split())))
