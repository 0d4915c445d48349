"""`check`: the verdict on what a learner wrote for a TODO, noted and shown."""

import os
from typing import Any

from lab_utils.check import card, life, progress, todos
from lab_utils.check.judge import judge
from lab_utils.check.outcome import Outcome, Status

# What the checks said in this process: `working` asks.
said: dict[str, Status] = {}


class Failed(AssertionError):
    """A check that gives no point, for nbgrader; a notebook shows its message without a stack."""

    def _render_traceback_(self) -> list[str]:
        return [str(self)]


def check(todo: str, *attempts: Any) -> Outcome | None:
    """Checks what the learner wrote for a TODO.

    Args:
        todo: its id, as "1a".
        attempts: the functions or values that the TODO asks for, in the order in which it names them.

    Returns:
        The outcome, which shows itself as the last line of a cell, and also where a hint or another check
        follows in it. The learner's exceptions become outcomes too. None while nbgrader executes the
        notebook: it takes a returned value for points.

    Raises:
        ValueError: there is no such TODO.
        TypeError: it asks for another number of objects.
        Failed: anything but correct while nbgrader executes the notebook, which goes by exceptions.
    """
    entry = todos.find(todo)
    if len(attempts) != len(entry.names):
        raise TypeError(f"write: check({todo!r}, {', '.join(entry.names)})")
    with life.shown(f"Checking TODO {todo}"):
        status, why = judge(entry, attempts)
    said[todo] = status
    if os.environ.get("NBGRADER_EXECUTION"):  # the progress of the person who grades stays as it is
        outcome = Outcome(todo, status, why, 0, 0)
        if status is not Status.CORRECT:
            raise Failed(str(outcome))
        print(outcome)
        return None
    if status is Status.CORRECT:
        progress.record(todo)
    lab = {each.id for each in todos.of_lab(entry.lab)}
    done, shown = (len(lab & ids) for ids in (progress.done(), progress.shown()))
    return card.in_turn(Outcome(todo, status, why, done, len(lab), shown))
