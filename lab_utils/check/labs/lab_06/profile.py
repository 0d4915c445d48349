"""Input or step: TODO 6i, read from a profile."""

import math
from collections.abc import Callable
from numbers import Real

from lab_utils.check.todos import todo
from lab_utils.check.tools import a, expect
from lab_utils.notebook.profiles import Event

GET_NEXT, DATA = "tf_data_iterator_get_next", "tf_data_private_threadpool"
STEP, WAIT = "SessionRun", "IteratorGetNextOp::DoCompute"


def _job(waits: list[tuple[float, float]], every: float) -> list[Event]:
    """A job of steps of `every` ms, each of which waits within (start, end), while other threads decode."""
    events = []
    for number, (start, end) in enumerate(waits):
        at = number * every
        events += [
            Event("python", STEP, at, at + every - 2),
            Event("python", "train", at, at + every),
            Event(GET_NEXT, WAIT, at + start, at + end),
            Event(GET_NEXT, "Iterator::Root", at + start, at + end),
            Event("tf_Compute", "conv2d/Relu:_FusedConv2D", at + end, at + every - 3),
            Event("tf_Compute 2", "ExecutorState::Process", at + end, at + every - 3),
            Event(DATA, "decode:DecodeJpeg", at + 1, at + every - 4),
            Event(f"{DATA} 2", "decode:DecodeJpeg", at + 1, at + every - 4),
        ]
    return events


@todo(
    "6i",
    hints=(
        "Which event lasts as long as a step does for its caller? Which one lasts as long as the step waits?",
        "Work on other rows goes on beside the step: it is not waiting, however long it takes.",
        "Add up the lengths of the waits, and those of the steps.",
    ),
    why="Only what the step itself waits for makes it longer; work on other threads is hidden behind it.",
)
def share(waiting_share: Callable) -> str:
    """The waits over the steps, on made-up profiles."""
    mixed = _job([(0, 2), (0, 12), (0, 4)], 20)  # 18 of 54 ms
    found = waiting_share(list(mixed))
    expect(
        isinstance(found, Real) and not isinstance(found, bool),
        f"waiting_share should return a number; yours returns {a(found)}.",
    )
    told = "Three steps of 18 ms wait for 2, 12 and 4 ms"
    expect(
        not math.isclose(found, 36 / 54),
        f"{told}. Yours gives {found:.3g}: `Iterator::Root` is the same waiting once more. Take one of the two.",
    )
    expect(
        found <= 1,
        f"{told}, and a share is at most 1; yours gives {found:.3g}. What other rows do beside the step is "
        "not waiting.",
    )
    expect(
        math.isclose(found, 18 / 54, rel_tol=1e-6),
        f"{told}: 18 of 54 ms are {18 / 54:.3f}; yours gives {found:.3g}. Waiting is `{WAIT}`, and a step is "
        f"`{STEP}`.",
    )
    busy = _job([(0, 0.5)] * 4, 30)  # the other threads decode all the time
    found = waiting_share(list(busy))
    expect(
        math.isclose(found, 2 / 112, rel_tol=1e-6),
        "Here the other threads decode all the time, and each step of 28 ms still waits for 0.5 ms alone: "
        f"{2 / 112:.3f}; yours gives {found:.3g}.",
    )
    uneven = [
        *[Event("python", STEP, 0, 10), Event(GET_NEXT, WAIT, 0, 1)],
        *[Event("python", STEP, 10, 110), Event(GET_NEXT, WAIT, 10, 90)],
    ]
    found = waiting_share(list(reversed(uneven)))
    expect(
        math.isclose(found, 81 / 110, rel_tol=1e-6),
        "A step of 10 ms waits for 1 ms, one of 100 ms for 80: 81 of 110 ms are waiting, "
        f"{81 / 110:.3f}; yours gives {found:.3g}. Add up first, then divide.",
    )
    return "The waits over the steps; work on other rows does not count."
