"""What the losses and the state of some steps say, whatever computed them: TPU402, TPU403, TPU405, TPU408."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from lab_utils.common.source import Place
from lab_utils.dry_run.program import Api
from lab_utils.dry_run.records import Finding
from lab_utils.dry_run.rules import finding

# Relative to the larger value. Summation in another order gives 1e-6 or so.
SAME_LOSS, SAME_VARIABLE = 1e-3, 1e-5
# Beyond SAME_LOSS, up to this: a loss averaged on each core over its own number of weighted examples.
OWN_AVERAGE = 0.2
# The least that a term of its own makes of a loss in float32: ten times what another order of summation does.
LEAST_TERM = 10 * SAME_VARIABLE
# A sum over N cores is N times their mean. Clipping, random numbers and statistics of each core's own
# examples change a number too, and by this factor at most; they never take it past the square root of N.
LEAST_RATIO = 1.6


@dataclass(frozen=True)
class Ran:
    """What is seen of one step: the losses of all cores, and the names of arrays that are not finite."""

    losses: list[float]
    not_finite: list[str]


def least_ratio(cores: int, roughly: bool) -> float:
    """How many times one core's a number of `cores` cores is where it is their sum instead of their mean.

    Args:
        roughly: random numbers or statistics of each core's own examples make it another number by right.
    """
    return max(math.sqrt(cores), LEAST_RATIO) if roughly else LEAST_RATIO


def not_finite(
    steps: Iterable[Ran], of_loss: Place, of_array: Callable[[str], Place]
) -> list[Finding]:
    """TPU402 for a loss that is not finite, or TPU405 for an array, whichever is first, with its line.

    What a lost loss does to the state of its step is not told beside it.
    """
    for number, step in enumerate(steps, 1):
        for loss in step.losses:
            if not math.isfinite(loss):
                return [finding("TPU402", of_loss, loss=loss, step=number)]
        for name in step.not_finite:
            return [finding("TPU405", of_array(name), variable=name, step=number)]
    return []


def depends_on_cores(
    where: Place, step: int, what: str, values: Sequence[float], case: str, *, note: bool = False
) -> Finding:
    """TPU403: `values` are what many cores and one core find of `what`."""
    many, one = (f"{value:.6g}" for value in values)
    facts = {"step": step, "what": what, "many": many, "one": one}
    return finding("TPU403", where, note=note, case=case, **facts)


def is_a_term(losses: Sequence[tuple[float, float]]) -> bool:
    """Whether cores count a term that no example changes, as a penalty on weights, more often than one core.

    Args:
        losses: of many cores and of one with the same weights, and other examples in each pair. In all pairs
            but the first, each core has the same examples: what relates or weighs the examples of a core
            is then the same on all cores, and would make another difference there.
    """
    ones = [one for _, one in losses]
    apart = [many - one for many, one in losses]
    most = max(abs(loss) for pair in losses for loss in pair)
    is_same = max(apart) - min(apart) <= SAME_VARIABLE * most < max(ones) - min(ones)
    return is_same and min(map(abs, apart)) > LEAST_TERM * most


def no_change(where: Place, steps: int, api: Api, trained: Iterable[tuple[str, str]]) -> Finding:
    """TPU408, where no trained variable changes, of which these are names and types.

    Where one of them has as few digits as bfloat16, a small update is lost.
    """
    lost = next((name for name, dtype in trained if dtype == "bfloat16"), "")
    facts = {"case": "bfloat16", "name": lost} if lost else {"case": api}
    return finding("TPU408", where, steps=steps, **facts)
