"""The checks of lab 12, on real TPUs: what a failed start means, what a machine costs, and a report."""

import math
from collections.abc import Callable
from typing import Any

from lab_utils.check.labs.decisions import expect_decisions
from lab_utils.check.todos import Cases, todo
from lab_utils.check.tools import a, expect
from lab_utils.runtime.verify.report import checks

_STARTS = {
    1: ("C", "TPUEstimator drives a chip through the stream executor, and a v5p needs PJRT: no version and no "
        "variable helps."),
    2: ("A", "pip took the newest libtpu, and this tensorflow-tpu asks it for a function that it does not have."),
    3: ("D", "The message says that TensorFlow has no kernel for the op: this package is for CPUs and GPUs."),
    4: ("B", "TensorFlow reads the variables at its import, which was over when they were set."),
    5: ("E", "The import asks a metadata server which machine this is, and only Google's cloud has one."),
}  # fmt: skip


@todo(
    "12a",
    hints=(
        "Ask of each: is it the chip, the package, the order, or the place?",
        "Two of them name an op or a function that is not there. In one TensorFlow lacks it, in the other libtpu.",
    ),
    why="The chip, the pair of packages, the package, the order, and the place.",
)
def failed_starts(answers: dict[int, str]) -> str:
    """Five failed starts, each with the one answer that fits."""
    expect_decisions(answers, _STARTS, "ABCDEF")
    return "The chip, the pair of packages, the package, the order, and the place: all five."


@todo(
    "12b",
    hints=(
        "Of an hour that you pay for, which part is useful?",
        "What does an hour of useful work cost then? And what if nothing of the hour is left?",
    ),
    why="You pay for the hour and use a part of it: divide by that part.",
    slips={
        "useful > 0 and  -> ": "Interruptions eat more than the hour: the job never ends, at any price.",
        "spot / useful < full -> spot < full": "Where half of each hour is lost, an hour of work costs 1.80, not 0.90.",
        "spot / useful < full -> spot * (2 - useful) < full": "What is lost has to be done again on the same "
        "machine: an hour of work costs 0.60 / 0.5 = 1.20, not 0.60 times 1.5.",
        "interruptions * lost_minutes / 60 -> interruptions * lost_minutes": "30 lost minutes are half an hour: an "
        "hour of work costs 0.80.",
    },
)
def spot(spot_pays: Callable) -> Cases:
    """The price over the useful part of an hour, against the full price."""
    for label, *inputs in (
        ("Without interruptions 0.40 is less than 1.00", 0.4, 1.0, 0, 10),
        ("A spot machine at 1.20 is dearer than one at 1.00 from the start", 1.2, 1.0, 0, 10),
        ("Half of each hour is lost, so an hour of work costs 1.80, not 0.90", 0.9, 1.0, 1, 30),
        ("Half of each hour is lost, so an hour of work costs 0.80", 0.4, 1.0, 1, 30),
        ("Twice 15 minutes are lost, so an hour of work costs 0.60 / 0.5 = 1.20", 0.6, 1.0, 2, 15),
        ("Interruptions eat more than the hour: the job never ends, at any price", 0.1, 1.0, 4, 30),
        ("Interruptions eat the whole hour: the job never ends, at any price", 0.1, 1.0, 2, 30),
        ("Both cost 1.00 for an hour of work: spot is not cheaper", 0.5, 1.0, 1, 30),
    ):
        found = spot_pays(*inputs)
        is_bool = type(found).__name__ in ("bool", "bool_")
        expect(is_bool, f"spot_pays should return True or False; yours returns {a(found)}.")
        yield label, bool(found)
    return "An hour of useful work is what is compared."


@todo(
    "12c",
    hints=(
        "Four questions in the order of the list; the first one that is answered with yes decides.",
        "NaN is never smaller than anything; math.isfinite finds it anywhere in the list.",
    ),
    why="A step that learns nothing is broken anywhere; a time means something on a chip only.",
)
def verdict(reading: Callable) -> Cases:
    """Four kinds of report, told apart."""
    for label, report in (
        ("A step of 3 ms that needs at least 1.5 ms is a chip at work: a bound is not a target", {}),
        ("The loss rose: whatever ran, it did not learn", {"losses": [1.8, 1.9]}),
        ("A loss on the way was infinite: the last one alone does not show it", {"losses": [1.8, math.inf, 0.5]}),
        ("The last loss is not a number", {"losses": [1.8, math.nan]}),
        ("A loss on the way was no number", {"losses": [1.8, math.nan, 0.5]}),
        ("The last loss is not below the first: they are equal", {"losses": [1.8, 1.8]}),
        ("The last loss is above the first, whatever came between", {"losses": [1.8, 0.5, 1.9]}),
        ("The last loss is below the first: it may rise on the way", {"losses": [1.8, 2.5, 0.5]}),
        ("The platform is asked for before the clock", {"platform": "cpu", "step": 1.0}),
        ("The step takes its least time, and not less", {"step": 1.5}),
        ("This ran on a CPU", {"platform": "cpu", "step": 80.0}),
        ("This ran on a GPU, and the least time is a TPU's", {"platform": "gpu"}),
        ("A step that does not learn is broken on any machine", {"platform": "cpu", "losses": [1.8, 1.9]}),
        ("The step took less than the least time, which cannot be (the first step, with all that starts up, is not "
         "the one to look at)", {"step": 1.0, "first": 4.0}),
        ("The step took less than the least time that the compiler's bytes allow", {"step": 1.0, "first": 0.9}),
    ):  # fmt: skip
        said = reading(_report(**report))
        answers = ("broken", "no chip", "clock", "reached")
        message = f"reading should return one of {', '.join(answers)}; yours returns {said!r}."
        expect(said in answers, message)
        yield label, said
    return "It learns, on a chip, in a time that can be."


def _report(
    platform: str = "tpu", step: float = 3.0, first: float = 9.0, losses: tuple | list = (1.8, 0.5)
) -> dict[str, Any]:
    figures = [
        {"name": name, "value": value, "unit": unit, "kind": "made up"}
        for name, value, unit in (
            ("compilation", 12.0, "s"),
            ("first step", first, "ms"),
            ("step", step, "ms"),
            ("least time of the step, v5e", 1.5, "ms"),
        )
    ]
    made = {"platform": platform, "chip": "made up", "losses": list(losses), "figures": figures}
    return made | {"checks": checks(made)}
