"""The checks of lab 12, on real TPUs: what a failed start means, what a machine costs, and a report."""

import math
from collections.abc import Callable
from typing import Any

from lab_utils.check.labs.decisions import expect_decisions
from lab_utils.check.todos import Cases, Slip, todo
from lab_utils.check.tools import a, expect
from lab_utils.runtime.verify import checks

_STARTS = {
    1: ("C", "TPUEstimator drives a chip through the stream executor, and a v5p needs PJRT: no version and no "
        "variable helps."),
    2: ("A", "pip installed the newest libtpu, which lacks a function that this tensorflow-tpu calls."),
    3: ("D", "The message says that TensorFlow has no kernel for the op: this package is for CPUs and GPUs."),
    4: ("B", "TensorFlow reads the variables at its import, and they were set after it."),
    5: ("E", "The import asks a metadata server which machine this is, and only Google's cloud has one."),
}  # fmt: skip


@todo(
    "12a",
    hints=(
        "Ask of each start: is the cause the chip, the package, the order, or the place?",
        "Two messages name a missing op or function. TensorFlow lacks one of them, and libtpu lacks the other.",
    ),
    why="The causes are the chip, the pair of packages, the package, the order, and the place.",
)
def failed_starts(answers: dict[int, str]) -> str:
    """Five failed starts, each with the one answer that fits."""
    expect_decisions(answers, _STARTS, "ABCDEF")
    return "All five: the chip, the pair of packages, the package, the order, and the place."


@todo(
    "12b",
    hints=(
        "Which part of a paid hour is useful?",
        "What does an hour of useful work cost then? And what if no part of the hour is useful?",
    ),
    why="You pay for the hour and use a part of it: divide by that part.",
    slips=(
        Slip(
            "useful > 0 and ",
            "",
            "Interruptions take more than an hour: the job never ends, at any price.",
        ),
        Slip(
            "spot / useful < full",
            "spot < full",
            "Where half of each hour is lost, an hour of work costs 1.80, not 0.90.",
        ),
        Slip(
            "spot / useful < full",
            "spot * (2 - useful) < full",
            "Lost work has to be repeated on the same machine: an "
            "hour of work costs 0.60 / 0.5 = 1.20, not 0.60 times 1.5.",
        ),
        Slip(
            "interruptions * lost_minutes / 60",
            "interruptions * lost_minutes",
            "30 lost minutes are half an hour: an hour of work costs 0.80.",
        ),
    ),
)
def spot(spot_pays: Callable) -> Cases:
    """The price over the useful part of an hour, against the full price."""
    for label, *inputs in (
        ("Without interruptions 0.40 is less than 1.00", 0.4, 1.0, 0, 10),
        ("Without interruptions a spot machine at 1.20 costs more than 1.00", 1.2, 1.0, 0, 10),
        ("Half of each hour is lost, so an hour of work costs 1.80, not 0.90", 0.9, 1.0, 1, 30),
        ("Half of each hour is lost, so an hour of work costs 0.80", 0.4, 1.0, 1, 30),
        ("Twice 15 minutes are lost, so an hour of work costs 0.60 / 0.5 = 1.20", 0.6, 1.0, 2, 15),
        ("Interruptions take more than an hour: the job never ends, at any price", 0.1, 1.0, 4, 30),
        ("Interruptions take the whole hour: the job never ends, at any price", 0.1, 1.0, 2, 30),
        ("Both cost 1.00 for an hour of work: spot is not cheaper", 0.5, 1.0, 1, 30),
    ):
        answer = spot_pays(*inputs)
        is_bool = type(answer).__name__ in ("bool", "bool_")
        expect(is_bool, f"spot_pays should return True or False; yours returns {a(answer)}.")
        yield label, bool(answer)
    return "Your function compares the prices of an hour of useful work."


@todo(
    "12c",
    hints=(
        "Ask the four questions in the order of the list; the first yes decides.",
        "NaN is never smaller than anything; math.isfinite finds it anywhere in the list.",
    ),
    why="A step that does not learn is broken on any machine; its time means something only on a chip.",
)
def verdict(reading: Callable) -> Cases:
    """Four kinds of report, told apart."""
    for label, report in (
        ("A step took 3 ms and needs at least 1.5 ms: a chip may well be slower than its bound", {}),
        ("The loss rose: whatever ran, it did not learn", {"losses": [1.8, 1.9]}),
        ("A loss in the middle was infinite: the last loss does not show that", {"losses": [1.8, math.inf, 0.5]}),
        ("A loss in the middle was not a number", {"losses": [1.8, math.nan, 0.5]}),
        ("The last loss is not below the first: they are equal", {"losses": [1.8, 1.8]}),
        ("The last loss is above the first, whatever came between", {"losses": [1.8, 0.5, 1.9]}),
        ("The last loss is below the first: it may rise in the middle", {"losses": [1.8, 2.5, 0.5]}),
        ("The question about the platform comes before the one about the time", {"platform": "cpu", "step": 1.0}),
        ("The step took exactly its least time, which is possible", {"step": 1.5}),
        ("This ran on a CPU", {"platform": "cpu", "step": 80.0}),
        ("This ran on a GPU, and the least time is a TPU's", {"platform": "gpu"}),
        ("A step that does not learn is broken on any machine", {"platform": "cpu", "losses": [1.8, 1.9]}),
        ("The step took less than the least time, which is impossible (do not use the first step, which includes the "
         "start-up)", {"step": 1.0, "first": 4.0}),
    ):  # fmt: skip
        answer = reading(_report(**report))
        answers = ("broken", "no chip", "clock", "reached")
        message = f"reading should return one of {', '.join(answers)}; yours returns {answer!r}."
        expect(answer in answers, message)
        yield label, answer
    return "Your function tests whether a step learned, on a chip, in a possible time."


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
    report = {"platform": platform, "chip": "made up", "losses": list(losses), "figures": figures}
    return report | {"checks": checks(report)}
