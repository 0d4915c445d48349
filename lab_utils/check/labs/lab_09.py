"""The checks of lab 09: lines of a report, what fills the memory, the largest batch, and the one that pays."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

from lab_utils.check.labs.decisions import expect_decisions
from lab_utils.check.same import a
from lab_utils.check.todos import Cases, Slip, todo
from lab_utils.check.tools import expect
from lab_utils.common.source import Place
from lab_utils.dry_run.inspect import LineCost

_LINES = [
    LineCost(Place(file="cell In [5]", line=line, code=code), cycles, bytes_, flops=7 * cycles)
    for line, code, cycles, bytes_ in (
        (3, "x = conv2d(images, 10, 5)", 500_000, 1e6),
        (5, "x = dense(x, 300)", 300_000, 9e9),
        (4, "x = max_pooling2d(x, 2, 2)", 100_000, 5e6),
        (8, "y = max_pooling2d(y, 2, 2)", 60_000, 5e6),
        (9, "", 40_000, 1e6),
    )
]


@todo(
    "9a",
    hints=(
        "How many cycles does a change save? It saves only on lines whose code contains its piece.",
        "A small saving on an expensive line may be more than a large one on a cheap line.",
        "The speed-up is all cycles divided by the cycles that remain after the change.",
    ),
    why="A change saves no more than the share of the lines that it touches.",
    slips=(
        Slip(
            "sum(each.cycles for each in lines if",
            "sum(each.bytes for each in lines if",
            "Count the cycles of the lines that a change touches, not their bytes.",
        ),
        Slip(
            "(1 - left) * sum",
            "left * sum",
            "The share is what remains of a line, so the change saves 1 minus the share.",
        ),
        Slip(
            "(1 - left) * ", "", "The change does not save the whole line: a share of it remains."
        ),
        Slip(
            "total / (total - saved[best])",
            "total / saved[best]",
            "The speed-up is all cycles divided by those that remain, not by those that are saved.",
        ),
        Slip(
            ", total / (total - saved[best])",
            "",
            "best_change should return a pair: the name and the speed-up.",
        ),
        Slip("lines)\n", "lines if each.place.code)\n", "The line without code counts as well."),
    ),
)
def change(best_change: Callable) -> Cases:
    """The most cycles saved, and the whole before over the whole after."""
    poolings = {"drop both pooling layers": ("max_pooling2d", 0.0)}
    label = "Dropping the pooling layers saves 160,000 of 1,000,000 cycles, and the faster convolution saves 200,000"
    yield label, best_change(list(_LINES), poolings | {"a faster convolution": ("conv2d", 0.6)})
    label = (
        "A tenth of the convolution, the most expensive line, is 50,000 of 1,000,000 cycles, but nine tenths of the head "
        "are 270,000"
    )
    changes = {
        "half the convolution": ("conv2d(images", 0.9),
        "a small head": ("dense(x, 300)", 0.1),
    }
    yield label, best_change(list(_LINES), changes)
    label = "No line sorts, so a faster sort saves nothing. Dropping both pooling layers saves 160,000 of 1,000,000 cycles"
    yield label, best_change(list(_LINES), {"a faster sort": ("tf.sort", 0.0)} | poolings)
    return "Your function finds the change that saves most cycles of the whole step."


_LARGEST = 1024 * 1444 * 1444 * 4 / 2**30  # GiB of the scores
_LINE = {
    1: "Line 1 makes 1,024 x 38 x 38 x 64 numbers. Does another line make more?",
    2: "Line 2 only merges two axes: its result has as many numbers as that of line 1.",
    4: "Line 4 returns a small result, but the softmax in it is an array as large as one in another line.",
    5: "The mean of line 5 leaves 64 numbers for each picture.",
}
_CHANGE = {
    "change": "Which change leaves less than a third of the product in line 3?",
    "change A": "A smaller type halves the largest arrays, but two of them still need more than the usable 7.5 GiB, so a smaller type is not enough.",
    "change C": "The largest array has no axis for the numbers of a patch: the product sums over them.",
    "change D": "The pictures take only a quarter of a gigabyte as float32; the temporaries fill the memory.",
}


@todo(
    "9b",
    hints=(
        "A picture has 38 by 38 positions after line 1. How many numbers does the result of each line have?",
        "Line 3 multiplies [B, 1444, 64] by [B, 64, 1444]. A GiB is 2**30 bytes.",
    ),
    why="An array with two axes of positions grows with the square of their number: a quarter of the positions leaves "
    "a sixteenth of the array.",
)
def memory_culprit(memory_diagnosis: Any) -> str:
    """The line, the size of its result, and a change that makes it fit."""
    keys = ("line", "GiB", "change")
    expect(
        isinstance(memory_diagnosis, Mapping) and set(memory_diagnosis) == {*keys},
        f"Expected a dict with the keys {', '.join(keys)}; yours is {a(memory_diagnosis)}.",
    )
    line, size = memory_diagnosis["line"], memory_diagnosis["GiB"]
    expect(line == 3, _LINE.get(line, f"{line!r} is not the number of a line that makes an array."))
    expect(
        isinstance(size, Real) and abs(size / _LARGEST - 1) < 0.01,
        "The line is right. Its result has 1,024 x 1,444 x 1,444 numbers of 4 bytes; a GiB is 2**30 bytes. "
        f"Yours is {size!r}.",
    )
    expect_decisions(memory_diagnosis, {"change": ("B", _CHANGE["change"])}, "ABCD", _CHANGE)
    return (
        f"The scores, one for each pair of positions, need {size:.1f} GiB. A quarter of the positions leaves a sixteenth "
        "of that."
    )


@todo(
    "9c",
    hints=(
        "Which batch tells you most about the others: one next to an end, or one in the middle?",
        "If the middle fits, which end of the interval does it replace? And if it does not fit?",
        "When are the two ends neighbours, so that there is nothing left between them?",
    ),
    why="Each compilation halves the number of candidates, so five are enough for 31 candidates. Trying one after "
    "the other takes up to 31.",
    slips=(
        Slip("return low", "return high", "That batch does not fit: `high` never does."),
        Slip(
            "<= available",
            "< available",
            "A step fits if it needs exactly the bytes that are available.",
        ),
        Slip(
            "while high - low > 128:",
            "while high > low:",
            "Your search does not end: stop when its two bounds are only 128 apart.",
        ),
        Slip(
            " // 128 * 128",
            "",
            "Your search compiles batches that are not multiples of 128, so they cannot be the answer.",
        ),
        Slip(
            "if needed(middle) <= available:",
            "if needed(middle) > available:",
            "A batch that fits becomes the lower end of the interval.",
        ),
    ),
)
def bisection(largest_that_fits: Callable) -> Cases:
    """The largest multiple of 128 that fits, by few calls, also where bytes grow in steps."""
    for label, needed, available, low, high in (
        ("With 1 MB for each picture, 100 MB of weights, and 2.5 GB available", _in_proportion, 2.5e9, 1024, 4096),
        ("With exactly as much available as 2,048 pictures need", _in_proportion, _in_proportion(2048), 1024, 4096),
        ("With bytes that grow in steps of 512 pictures, because of padding", _in_steps, 2.5e9, 128, 8192),
        ("If `low` is itself the largest that fits", _in_proportion, _in_proportion(1100), 1024, 3072),
        ("If all batches below `high` fit", _in_proportion, _in_proportion(3071), 1024, 3072),
        ("If `low` and `high` are neighbours", _in_proportion, _in_proportion(1100), 1024, 1152),
    ):  # fmt: skip
        counted = _Compilations(needed)
        result = largest_that_fits(counted, available, low, high)
        yield f"{label}, between {low:,} and {high:,}", result
        expect(
            isinstance(result, Integral),
            f"A batch size is a whole number, int(...); yours is {result!r}.",
        )
        enough = math.ceil(math.log2((high - low) / 128))
        expect(
            len(counted.batches) <= enough + _MORE,
            f"{label}: your search compiles {len(counted.batches)} batches between {low:,} and {high:,}, where {enough} are "
            "enough. Let each call halve what is left.",
        )
    return "Your search finds the largest multiple of 128 that fits, and each compilation halves what is left."


_MORE = 2  # calls that a search may take beyond those that it needs, for its ends
_ENDLESS = 100


class _Compilations:
    """Stands for the compiler: bytes by batch, and a note of each batch that was asked for."""

    def __init__(self, needed: Callable[[int], float]) -> None:
        self.needed = needed
        self.batches: list[int] = []

    def __call__(self, batch: int) -> float:
        self.batches.append(batch)
        expect(
            len(self.batches) < _ENDLESS,
            "Your search does not end: stop when its two bounds are only 128 apart.",
        )
        expect(
            batch % 128 == 0,
            f"Your search compiles a batch of {batch}, but only multiples of 128 are candidates.",
        )
        return self.needed(batch)


def _in_proportion(batch: int) -> float:
    return 1e8 + 1e6 * batch


def _in_steps(batch: int) -> float:
    return 1e8 + 1e6 * 512 * math.ceil(batch / 512)


@todo(
    "9d",
    hints=(
        "Which rows have a rate at all, and which rate is the best?",
        "Of the rows that are fast enough, which one do you want?",
    ),
    why="With a larger batch than needed, the same pictures make fewer steps, in which a model learns less.",
    slips=(
        Slip(
            "return min(",
            "return max(",
            "That is the largest batch that is fast enough, not the smallest.",
        ),
        Slip(
            ">= share * best",
            "== best",
            "A smaller batch reaches the share of the best rate, too.",
        ),
        Slip(
            ">= share * best",
            "> share * best",
            "A batch with exactly that share is fast enough.",
        ),
        Slip(
            "min(trial.batch for",
            "min(trial.examples_per_second for",
            "That is a rate: return the batch per core of that row.",
        ),
    ),
)
def paying(smallest_that_pays: Callable) -> Cases:
    """The smallest batch with a share of the best rate, whatever the order of the rows."""
    flat = {128: 900.0, 256: 990.0, 512: 1000.0, 4096: 960.0, 8192: None}
    falling = {1024: 500.0, 128: 800.0, 4096: 300.0, 65_536: None}
    for label, rates, share in (
        ("With rates of 900, 990, 1,000 and 960, and a share of 0.95", flat, 0.95),
        ("With the same rows, and a share of 0.9, which the first row reaches exactly", flat, 0.9),
        ("With the same rows, and a share of 1", flat, 1.0),
        ("With rates that fall with the batch, and rows in a different order", falling, 0.95),
        ("If the largest batch is the fastest", {128: 100.0, 256: 200.0, 512: 400.0}, 0.9),
        ("If only one batch fits", {8192: None, 16: 10.0}, 0.95),
    ):
        trials = [_Row(batch, rate) for batch, rate in rates.items()]
        yield label, smallest_that_pays(trials, share)
    return "Your batch is the smallest that is nearly as fast as the fastest."


@dataclass(frozen=True)
class _Row:
    """A row of a search, with what the lab tells of it."""

    batch: int
    examples_per_second: float | None
