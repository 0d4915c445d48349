"""What a learner calls for a TODO: its verdict, hints, our solution, and what cells go on with."""

import os
from html import escape
from typing import Any

from lab_utils.check import progress, sources, todos
from lab_utils.check.judge import judge
from lab_utils.check.outcome import (
    CallError,
    Card,
    Outcome,
    Status,
    WithoutStack,
    display_in_notebook,
)

# What the checks said in this process, and how many hints were asked for, by TODO.
statuses: dict[str, Status] = {}
hint_counts: dict[str, int] = {}


class Failed(WithoutStack, AssertionError):
    """A check that gives no point, for nbgrader."""


def check(todo: str, *attempts: Any) -> Outcome | None:
    """Checks what the learner wrote for a TODO.

    Args:
        todo: its id, as "1a".
        attempts: the functions or values that the TODO asks for, in the order in which it names them.

    Returns:
        The outcome; the learner's exceptions become outcomes too. None in a notebook, which displays it, and
        while nbgrader executes the notebook: it takes a returned value for points.

    Raises:
        CallError: there is no such TODO, or it asks for another number of objects.
        Failed: anything but correct while nbgrader executes the notebook, which goes by exceptions.
    """
    entry = todos.find(todo)
    if len(attempts) != len(entry.names):
        raise CallError(f"Write: {todos.call(entry)}")
    status, why = judge(entry, attempts)
    statuses[todo] = status
    if os.environ.get("NBGRADER_EXECUTION"):  # the progress of the person who grades stays as it is
        outcome = Outcome(todo, status, why, 0, 0)
        if status is not Status.CORRECT:
            raise Failed(str(outcome))
        print(outcome)
        return None
    if status is Status.CORRECT:
        progress.record("done", todo)
    lab = {other.id for other in todos.of_lab(entry.lab)}
    correct, solutions = (len(lab & progress.todos(kind)) for kind in ("done", "shown"))
    return display_in_notebook(Outcome(todo, status, why, correct, len(lab), solutions))


def hint(todo: str) -> Card | None:
    """The next hint on a TODO, below those shown before.

    Raises:
        CallError: there is no such TODO.
    """
    hints = todos.find(todo).hints
    hint_counts[todo] = min(len(hints), hint_counts.get(todo, 0) + 1)
    first = enumerate(hints[: hint_counts[todo]], 1)
    lines = [f"Hint {number} of {len(hints)}: {text}" for number, text in first]
    if len(lines) == len(hints):
        lines.append(f'That was the last; solution("{todo}") shows ours.')
    text = "\n".join(lines)
    return display_in_notebook(
        Card(text, f'<span style="white-space:pre-line">{escape(text)}</span>')
    )


def solution(todo: str) -> Card | None:
    """Our solution of a TODO, and why it is so. The progress file notes that it was shown.

    Raises:
        CallError: there is no such TODO.
    """
    entry = todos.find(todo)
    progress.record("shown", todo)
    title, code = f"Our solution of TODO {todo}", sources.region(todo)
    html = f'<pre style="margin:6px 0;background:none">{escape(code)}</pre>{escape(entry.why)}'
    return display_in_notebook(Card(f"{title}:\n\n{code}\n\n{entry.why}", f"<b>{title}</b>{html}"))


def working(attempt: Any, *needs: str) -> Any:
    """The learner's object where all the TODOs that it needs are correct, else the solution's.

    Cells that use a TODO's result take it through this function: `working(model_fn, "1b", "1c")`, so that
    Run all works at every stage of a learner's work. It goes by what the checks said in this session, prints
    a line where it takes the solution's, and changes no name in the notebook.

    Args:
        attempt: what the learner wrote for the last of `needs`.
        needs: ids of TODOs, the last one being that of `attempt`.
    """
    missing = [id for id in needs if statuses.get(id) is not Status.CORRECT]
    if not missing:
        return attempt
    entry = todos.find(needs[-1])
    print(f"Not solved yet: TODO {', '.join(missing)}. This cell uses our {entry.names[0]}.")
    return getattr(sources.solved(entry.lab), entry.names[0])
