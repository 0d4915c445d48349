"""The checks of lab 12, on real TPUs: what a failed start means, what a machine costs, and a slice."""

from collections.abc import Callable
from typing import Any

from lab_utils.check.labs.decisions import expect_decisions
from lab_utils.check.todos import Cases, Slip, todo
from lab_utils.check.tools import a, expect
from lab_utils.common.figures import Figure, Kind

_STARTS = {
    1: ("C", "TPUEstimator drives a chip through the stream executor, but a v5p needs PJRT, and no version or variable "
        "changes that."),
    2: ("A", "pip installed the newest libtpu, which lacks a function that this tensorflow-tpu calls."),
    3: ("D", "The message says that TensorFlow has no kernel for the op: this package is for CPUs and GPUs."),
    4: ("B", "TensorFlow reads the variables only when it is imported, and here they were set later."),
    5: ("E", "The import asks a metadata server which machine this is, but only Google's cloud has such a server."),
    6: ("G", "Only one process at a time can use a chip, and the message names that process."),
}  # fmt: skip


@todo(
    "12a",
    hints=(
        "Ask for each person: does the problem come from the chip, the packages, the order of the cells, the place, or another process?",
        "Two messages name a missing op or function. TensorFlow lacks one of them, and libtpu lacks the other.",
    ),
    why="The six causes are the chip, the pair of packages, a TensorFlow without TPU kernels, the order of the cells, the place, and another process.",
)
def failed_starts(answers: dict[int, str]) -> str:
    """Six failed starts, each with the one answer that fits."""
    expect_decisions(answers, _STARTS, "ABCDEFG")
    return "All six are right: you told apart a wrong chip, wrong packages, a wrong order, a wrong place, and another process."


@todo(
    "12b",
    hints=(
        "Which part of an hour that you pay for is useful?",
        "What does an hour of useful work cost then? And what if no part of the hour is useful?",
    ),
    why="You pay for the whole hour and use a part of it, so divide the price by that part.",
    slips=(
        Slip(
            "useful > 0 and ",
            "",
            "If each hour of work costs more than an hour of interruptions, the job never ends, however low the price is.",
        ),
        Slip(
            "spot / useful < full",
            "spot < full",
            "If half of each hour is lost, an hour of work costs 1.80, not 0.90.",
        ),
        Slip(
            "spot / useful < full",
            "spot * (2 - useful) < full",
            "Lost work has to be repeated on the same machine, so an hour of work costs 0.60 / 0.5 = 1.20, not 0.60 times 1.5.",
        ),
        Slip(
            "interruptions * lost_minutes / 60",
            "interruptions * lost_minutes",
            "30 lost minutes are half an hour, so an hour of work costs 0.80.",
        ),
    ),
)
def spot(spot_pays: Callable) -> Cases:
    """The price divided by the useful part of an hour is compared with the full price."""
    for label, *inputs in (
        ("Without interruptions, 0.40 is less than 1.00", 0.4, 1.0, 0, 10),
        ("Without interruptions, a spot machine at 1.20 costs more than 1.00", 1.2, 1.0, 0, 10),
        ("Half of each hour is lost, so an hour of work costs 1.80, not 0.90", 0.9, 1.0, 1, 30),
        ("Half of each hour is lost, so an hour of work costs 0.80", 0.4, 1.0, 1, 30),
        ("15 minutes are lost twice, so an hour of work costs 0.60 / 0.5 = 1.20", 0.6, 1.0, 2, 15),
        (
            "Interruptions take more than an hour, so the job never ends at any price",
            0.1,
            1.0,
            4,
            30,
        ),
        ("Interruptions take the whole hour, so the job never ends at any price", 0.1, 1.0, 2, 30),
        ("An hour of work costs 1.00 on both, so spot is not cheaper", 0.5, 1.0, 1, 30),
    ):
        answer = spot_pays(*inputs)
        is_bool = type(answer).__name__ in ("bool", "bool_")
        expect(is_bool, f"spot_pays should return True or False; yours returns {a(answer)}.")
        yield label, bool(answer)
    return "Your function compares the prices of an hour of useful work."


@todo(
    "12c",
    hints=(
        "Which rows have both hours and a price? You cannot compare the others.",
        "What does the whole training run cost on each slice, at the high end of its hours?",
        "What should you return if no row is left?",
    ),
    why="The hours are a range, so you are sure to meet a deadline and a budget only if its high end meets them. For a row "
    "without hours or without a price, nobody knows the bill.",
    slips=(
        Slip(
            "cost = trial.price * hours[1]",
            "cost = trial.price",
            "Compare the cost of the whole training run, not the price of an hour.",
        ),
        Slip(
            "cost = trial.price * hours[1]",
            "cost = trial.price * hours[0]",
            "The training may take as long as the high end says, and then the budget is too small.",
        ),
        Slip(
            "if hours[1] <= deadline",
            "if hours[0] <= deadline",
            "The training may take as long as the high end says, and then it ends after the deadline.",
        ),
        Slip(
            "hours[1] <= deadline and ",
            "",
            "On a slice that you choose, the training ends after the deadline.",
        ),
        Slip(
            " and cost <= budget",
            "",
            "On a slice that you choose, the training costs more than the budget.",
        ),
        Slip("min(costs", "max(costs", "You choose the most expensive slice."),
    ),
)
def budget(cheapest: Callable) -> Cases:
    """The topology of least cost among those sure to be in time and within the budget, with known hours."""
    steps = 100_000
    small, large = _trial("v6e:1x1", 0.20, 3.0), _trial("v6e:2x4", 0.02, 24.0)
    other, slow = _trial("v5e:2x4", 0.05, 9.6), _trial("v2:2x2", 0.80, 0.5)
    unknown, short = _trial("v5p:2x2x1", 0.02, 0.1), _trial("v5e:1x1", 0.0005, 0.1)
    full, unpriced = _trial("v5e:2x2", None, 0.1), _trial("v3:2x2", 0.02, None)
    low, high = small.hours(steps)
    within, ample = (low + high) / 2, 1e6
    for label, trials, deadline, money in (
        ("An hour on the large slice costs more, but the whole training run on it costs less", [small, large], ample, ample),
        ("The same rows in the other order", [large, small], ample, ample),
        ("The cheapest of four", [small, other, slow, large], ample, ample),
        ("The cheapest ends after the deadline", [slow, small, other], 1.1 * high, ample),
        ("The slice is in time at the low end of its hours, but not at the high end", [small], within, ample),
        ("The only slice costs more than the budget", [small], ample, 1.5 * low),
        ("The budget is enough at the low end of the hours, but not at the high end", [small], ample, 3.0 * within),
        ("The dry run gives no hours for the slice with the lowest price per hour", [unknown, other], ample, ample),
        ("The step on one slice is so short that the dry run gives no hours", [short, other], ample, ample),
        ("The step does not fit in memory on the slice with the lowest price per hour", [full, other], ample, ample),
        ("The price of one slice is not known", [unpriced, other], ample, ample),
        ("No row has both hours and a price", [unknown, full, unpriced], ample, ample),
    ):  # fmt: skip
        answer = cheapest(list(trials), steps, deadline, money)
        expect(
            answer is None or isinstance(answer, str),
            f'cheapest should return a topology such as "v6e:1x1", or None; yours returns {a(answer)}.',
        )
        yield label, answer
    return "Your choice has known hours and a known price, is in time and within the budget, and costs least."


def _trial(topology: str, seconds: float | None, price: float | None) -> Any:
    """A made-up row of a comparison; without seconds the step does not fit."""
    from lab_utils.dry_run.inspect import CompiledStep, Cost, Memory, Trial

    def size(gib: float) -> Figure:
        return Figure("size", gib * 2**30, "bytes", Kind.COMPILER)

    step = CompiledStep("train step", Memory(temporaries=size(1), available=size(8)))
    if seconds is None:
        step.memory.temporaries = step.memory.needed = size(9)
        return Trial(topology, 64, step, "does not fit: it needs 9 GiB of 8 GiB", price)
    step.cost = Cost(estimated_seconds=Figure("time", seconds, "s", Kind.ESTIMATED))
    return Trial(topology, 64, step, price=price)
