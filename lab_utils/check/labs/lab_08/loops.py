"""What the host costs: TODO 8i, a session call from two measurements, and 8j, the loop that hides it."""

import math
from collections.abc import Callable
from numbers import Integral, Real

from lab_utils.check.todos import todo
from lab_utils.check.tools import a, expect


@todo(
    "8i",
    hints=(
        "How many calls does each of the two runs make for the same number of steps?",
        "The steps themselves take the same time in both runs. What is left of the difference, and how many calls is that?",
    ),
    why="Both runs take the same steps: their difference is the calls that only one of them makes.",
)
def call(call_seconds: Callable) -> str:
    """The difference of two runs over the difference of their calls."""
    for step, each, steps, loops in (
        (0.002, 0.010, 400, (2, 10)),  # 200 and 40 calls
        (0.0005, 0.003, 1000, (1, 100)),
        (0.004, 0.0002, 60, (3, 4)),
    ):
        timed = {loop: steps * step + steps / loop * each for loop in loops}
        for given in (timed, dict(reversed(timed.items()))):
            found = call_seconds(dict(given), steps)
            _expect_seconds(found)
            told = (
                f"{steps} steps of {1e3 * step:g} ms, in loops of {loops[0]} and of {loops[1]}, with a call of "
                f"{1e3 * each:g} ms for each loop, take {timed[loops[0]]:.4g} and {timed[loops[1]]:.4g} s"
            )
            expect(
                not math.isclose(found, timed[loops[0]] - timed[loops[1]]),
                f"{told}. The difference, {found:.4g} s, is that of many calls: divide by how many more the one "
                "run makes.",
            )
            expect(
                not math.isclose(found, timed[loops[0]] / (steps / loops[0])),
                f"{told}. Seconds over calls, {found:.4g} s, hold the steps of a loop as well: they are in both "
                "runs, so take the difference.",
            )
            expect(found > 0, f"{told}. A call cannot take {found:.4g} s. Subtract the faster run from the slower one; the dict may hold them in either order.")
            expect(
                math.isclose(found, each, rel_tol=1e-6),
                f"{told}; yours finds {1e3 * found:.4g} ms a call. A run makes steps / loop calls.",
            )
    return "The steps cancel out; what remains is the calls."


@todo(
    "8j",
    hints=(
        "Which share of a loop's time is steps, for a loop of n?",
        "Only divisors of the steps to a checkpoint come into question: try them from the smallest on.",
        "What is left where even one loop from checkpoint to checkpoint is too short?",
    ),
    why="A longer loop than needed hides hooks and logs; one that does not divide the steps moves the checkpoints.",
)
def loop(shortest_loop: Callable) -> str:
    """The shortest divisor that keeps the core busy."""
    for step, call_, checkpoint, share, right in (
        (0.001, 0.005, 1000, 0.95, 100),  # 95 would do, and does not divide
        (0.001, 0.005, 1000, 0.5, 5),  # exactly a half
        (0.1, 0.001, 500, 0.9, 1),
        (0.002, 0.010, 360, 0.895, 45),  # 0.9, not just 0.9: another formula may round it down
        (0.0001, 0.01, 200, 0.99, 200),  # none is enough
        (0.001, 0.002, 7, 0.6, 7),  # a prime
    ):
        found = shortest_loop(step, call_, checkpoint, share)
        expect(
            isinstance(found, Real) and not isinstance(found, bool),
            f"shortest_loop should return a number of steps; yours returns {a(found)}.",
        )
        told = (
            f"Steps of {1e3 * step:g} ms, {1e3 * call_:g} ms a call, a checkpoint each {checkpoint} steps, at work "
            f"{share:.0%} of the time"
        )
        expect(found >= 1, f"{told}: a loop has at least one step; yours has {found}.")
        expect(
            found == int(found) and checkpoint % int(found) == 0,
            f"{told}: a loop of {found:g} does not divide {checkpoint}, so checkpoints would come at other steps.",
        )
        busy = found * step / (found * step + call_)
        expect(
            busy >= share - 1e-9 or found == checkpoint,
            f"{told}: with a loop of {found} it is {busy:.1%}, and a longer one does divide {checkpoint}.",
        )
        expect(
            found <= right,
            f"{told}: a loop of {right} is enough; yours takes {found}, which hides hooks and logs for longer.",
        )
        expect(
            isinstance(found, Integral),
            f"iterations_per_loop is a whole number, an int; yours is {found!r}.",
        )
    return "The shortest loop that divides the checkpoint's steps and keeps the core busy."


def _expect_seconds(found: object) -> None:
    expect(
        isinstance(found, Real) and not isinstance(found, bool),
        f"call_seconds should return seconds, a number; yours returns {a(found)}.",
    )
