"""TODO 8f: which change gains most, from the cost of the lines."""

import math
from collections.abc import Callable
from numbers import Real

from lab_utils.check.todos import todo
from lab_utils.check.tools import a, expect
from lab_utils.dry_run.inspect import LineCost
from lab_utils.common.source import Place


def _line(code: str, cycles: float, bytes_: float = 0, number: int = 1) -> LineCost:
    place = Place(file="cell In [5]", line=number, function="inference", code=code) if code else Place()
    return LineCost(place, cycles, bytes_, flops=cycles * 7)


LINES = [
    _line("x = conv2d(images, 10, 5)", 500_000, 1e6, 3),
    _line("x = dense(x, 300)", 300_000, 9e9, 5),
    _line("x = max_pooling2d(x, 2, 2)", 100_000, 5e6, 4),
    _line("y = max_pooling2d(y, 2, 2)", 60_000, 5e6, 8),
    _line("", 40_000, 1e6),
]


@todo(
    "8f",
    hints=(
        "How many cycles does a change save? It saves only on the lines whose code holds its part.",
        "A small saving on an expensive line may be more than a large one on a cheap line.",
        "All cycles, over the cycles that remain after the change: that is how many times as fast.",
    ),
    why="A change gains no more than the share of the lines that it touches.",
)
def change(best_change: Callable) -> str:
    """The most cycles saved, and the whole before over the whole after."""
    for changes, right, times, because in (
        (
            {"drop both poolings": ("max_pooling2d", 0.0), "a faster convolution": ("conv2d", 0.6)},
            "a faster convolution",
            1 / 0.8,
            "Without the poolings 160,000 of 1,000,000 cycles are saved, with the faster convolution 200,000.",
        ),
        (
            {"half the convolution": ("conv2d(images", 0.9), "a small head": ("dense(x, 300)", 0.1)},
            "a small head",
            1 / 0.73,
            "The convolution is the most expensive line, but a tenth of it is 50,000 cycles, and nine tenths of the "
            "head are 270,000.",
        ),
        (
            {"a faster sort": ("tf.sort", 0.0), "drop both poolings": ("max_pooling2d", 0.0)},
            "drop both poolings",
            1 / 0.84,
            "No line sorts, so that saves nothing. Two lines pool, and both are saved: 160,000 cycles.",
        ),
    ):
        found = best_change(list(LINES), dict(changes))
        expect(
            isinstance(found, tuple | list) and len(found) == 2,
            f"best_change should return a pair, the name and how many times as fast; yours returns {a(found)}.",
        )
        name, factor = found
        expect(
            name in changes,
            f"The first of the pair is the name of a change, a key of `changes`; yours is {name!r}.",
        )
        expect(name == right, f"{because} Yours takes {name!r}.")
        expect(
            isinstance(factor, Real) and not isinstance(factor, bool),
            f"The second of the pair is a number, how many times as fast; yours is {a(factor)}.",
        )
        expect(
            math.isclose(factor, times, rel_tol=1e-6),
            f"{because} All lines together take 1,000,000 cycles, so the step gets {times:.3f} times as fast; "
            f"yours says {factor:.3f}.",
        )
    return "The change that saves most cycles of the whole step."
