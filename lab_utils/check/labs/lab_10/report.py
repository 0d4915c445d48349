"""What a report of `--verify` says: TODO 10f."""

import math
from collections.abc import Callable
from typing import Any

from lab_utils.check.todos import todo
from lab_utils.check.tools import expect
from lab_utils.runtime.verify.report import checks

ANSWERS = ("broken", "no chip", "clock", "reached")


@todo(
    "10f",
    hints=(
        'Four questions in the order of the list; the first one that is answered with yes decides.',
        'NaN is never smaller than anything; math.isfinite finds it anywhere in the list.',
    ),
    why='A step that learns nothing is broken anywhere; a time means something on a chip only.',
)
def verdict(reading: Callable) -> str:
    """Four kinds of report, told apart."""
    for report, answer, why in (
        (
            _report(),
            "reached",
            "A step of 3 ms that needs at least 1.5 ms is a chip at work: a bound is not a target.",
        ),
        (_report(losses=[1.8, 1.9]), "broken", "The loss rose: whatever ran, it did not learn."),
        (
            _report(losses=[1.8, math.inf, 0.5]),
            "broken",
            "A loss on the way was infinite: the last one alone does not show it.",
        ),
        (_report(losses=[1.8, math.nan]), "broken", "The last loss is not a number."),
        (_report(losses=[1.8, math.nan, 0.5]), "broken", "A loss on the way was no number."),
        (_report(losses=[1.8, 1.8]), "broken", "The last loss is not below the first: they are equal."),
        (_report(losses=[1.8, 0.5, 1.9]), "broken", "The last loss is above the first, whatever came between."),
        (
            _report(losses=[1.8, 2.5, 0.5]),
            "reached",
            "The last loss is below the first: it may rise on the way.",
        ),
        (_report("cpu", step=1.0), "no chip", "The platform is asked for before the clock."),
        (_report(step=1.5), "reached", "The step takes its least time, and not less."),
        (_report("cpu", step=80.0), "no chip", "This ran on a CPU."),
        (_report("gpu"), "no chip", "This ran on a GPU, and the least time is a TPU's."),
        (
            _report("cpu", losses=[1.8, 1.9]),
            "broken",
            "A step that does not learn is broken on any machine.",
        ),
        (
            _report(step=1.0, first=4.0),
            "clock",
            "The step took less than the least time, which cannot be (the first step, with all that starts "
            "up, is not the one to look at).",
        ),
        (
            _report(step=1.0, first=0.9),
            "clock",
            "The step took less than the least time that the compiler's bytes allow.",
        ),
    ):
        said = reading(report)
        expect(
            said in ANSWERS,
            f"reading should return one of {', '.join(ANSWERS)}; yours returns {said!r}.",
        )
        expect(said == answer, f'{why} That is "{answer}"; yours says "{said}".')
    return "It learns, on a chip, in a time that can be."


def _report(
    platform: str = "tpu", step: float = 3.0, first: float = 9.0, losses: tuple | list = (1.8, 0.5)
) -> dict[str, Any]:
    values = {
        "compilation": 12.0,
        "first step": first,
        "step": step,
        "least time of the step, v5e": 1.5,
    }
    figures = [
        {
            "name": name,
            "value": value,
            "unit": "s" if name == "compilation" else "ms",
            "kind": "made up",
        }
        for name, value in values.items()
    ]
    made = {"platform": platform, "chip": "made up", "losses": list(losses), "figures": figures}
    return made | {"checks": checks(made)}
