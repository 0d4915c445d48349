"""What TPUEstimator refuses of the calls themselves, before it builds a graph: TPU132, TPU133.

Only a program that was run has shown its calls. TPUEstimator checks them itself here, one after the other.
"""

from collections.abc import Iterator

from lab_utils.dry_run.advice import advice
from lab_utils.dry_run.engine import rule
from lab_utils.dry_run.facts.messages import refused_settings
from lab_utils.dry_run.private import tpu_estimator as _tpu_estimator
from lab_utils.dry_run.records import Finding, Mode
from lab_utils.dry_run.rules import finding
from lab_utils.dry_run.workload import Call
from lab_utils.estimator import tpu

_RULES = {Mode.TRAIN: "TPU132", Mode.EVAL: "TPU133"}
_METHODS = {Mode.TRAIN: "train", Mode.EVAL: "evaluate"}


@rule("TPU132", "TPU133", "TPU199", needs=("calls", "cores"))
def refused_calls(calls: list[Call], cores: int) -> Iterator[Finding]:
    """A finding for each line whose call a TPUEstimator on `cores` cores would refuse.

    With use_tpu=False, as all of a program, the evaluation is a note: many programs choose its steps by
    use_tpu. An Estimator that has use_tpu=False beside others stays on the host.
    """
    calls = [call for call in calls if isinstance(call.estimator, tpu.TPUEstimator)]
    on_tpu = [call for call in calls if _tpu_estimator.settings(call.estimator).use_tpu]
    for call in on_tpu or calls:
        error = _refusal(call, cores)
        if error is None or refused_settings(error):  # of settings building the graph says why
            continue
        text = " ".join(f"{type(error).__name__}: {error}".split())
        if "steps" in text:
            note = call.mode is Mode.EVAL and not on_tpu
            words = str(call).replace(call.mode, _METHODS[call.mode], 1)
            yield finding(_RULES[call.mode], call.place, message=text, call=words, note=note)
        else:
            facts = {"mode": call.mode, "error": text, "hint": advice(text)}
            yield finding("TPU199", call.place, message=text, **facts)


def _refusal(call: Call, cores: int) -> Exception | None:
    if call.mode not in _RULES:
        return None
    with _tpu_estimator.rehearsing(cores) as rehearsal:
        try:
            twin = rehearsal.twin(call.estimator)
        except ValueError:  # building the graph says why
            return None
        return _tpu_estimator.refusal(twin, call.mode, call.arguments)
