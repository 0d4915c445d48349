"""What a learner calls for a TODO: its verdict, hints, our solution, and what cells go on with."""

import copy
import os
from html import escape
from typing import Any

from lab_utils.check import programs, progress, sources, todos
from lab_utils.check.judge import judge
from lab_utils.check.outcome import (
    CallError,
    Card,
    Outcome,
    Status,
    WithoutStack,
    display_in_notebook,
)
from lab_utils.check.same import difference
from lab_utils.check.tools import scope_of

# By TODO, in this process: the first object of the last check that was right; hints asked for.
right_objects: dict[str, Any] = {}
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
    try:
        sources.folder()  # without solutions no answer is judged: "correct" would tell which one is right
        status, why = judge(entry, attempts)
    except sources.NoSolutionsError as error:
        status, why = Status.CANNOT_CHECK, str(error)
    if status is Status.CORRECT:
        right_objects[todo] = _kept(attempts[0], entry.names[0])
    if os.environ.get("NBGRADER_EXECUTION"):  # the progress of the person who grades stays as it is
        outcome = Outcome(todo, status, why, 0, 0)
        if status is not Status.CORRECT:
            raise Failed(str(outcome))
        print(outcome)
        return None
    if status in (Status.CORRECT, Status.INCORRECT):
        progress.record_try(todo, status is Status.CORRECT)
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
        lines.append(f'That was the last hint; solution("{todo}") shows our solution.')
    text = "\n".join(lines)
    return display_in_notebook(
        Card(text, f'<span style="white-space:pre-line">{escape(text)}</span>')
    )


def solution(todo: str) -> Card | None:
    """Our solution of a TODO, and why it is so. The progress file notes it where the TODO is open.

    Raises:
        CallError: there is no such TODO.
    """
    entry = todos.find(todo)
    try:
        title, code = f"Our solution of TODO {todo}", sources.region(todo)
    except sources.NoSolutionsError as error:
        return display_in_notebook(Card(str(error), escape(str(error))))
    if todo not in progress.todos("done"):
        progress.record("shown", todo)
    html = f'<pre style="margin:6px 0;background:none">{escape(code)}</pre>{escape(entry.why)}'
    return display_in_notebook(Card(f"{title}:\n\n{code}\n\n{entry.why}", f"<b>{title}</b>{html}"))


def working(attempt: Any, *needs: str) -> Any:
    """The learner's object where all the TODOs that it needs have been right, else the solution's.

    Cells that use a TODO's result take it through this function: `working(model_fn, "1b", "1c")`, so that
    Run all works at every stage of a learner's work. It goes by what the checks said in this session, and
    changes no name in the notebook. It prints a line where it takes the solution's, and where `attempt` is
    another object than the one that was right, which it takes then. Where `attempt` calls a function of an
    earlier TODO that is another one than was right, it takes the solution's.

    Args:
        attempt: what the learner wrote for the last of `needs`; a file by its path.
        needs: ids of TODOs, the last one being that of `attempt`.
    """
    id, missing = needs[-1], [id for id in needs if id not in right_objects]
    entry = todos.find(id)
    name = entry.names[0]
    if missing:
        earlier = set(missing) <= progress.todos("done")
        how = "Not checked since this notebook was started" if earlier else "Not solved yet"
        return _ours(entry, attempt, f"{how}: TODO {', '.join(missing)}.")
    for need in map(todos.find, needs[:-1]):
        if _is_another(need, attempt):
            why = f"{need.names[0]} has changed since it was right: run {todos.call(need)} again."
            return _ours(entry, attempt, why)
    right = right_objects[id]
    now = attempt if callable(attempt) else _kept(attempt, name)
    if now is right or not (callable(now) or callable(right) or difference(right, now)):
        return attempt
    print(
        f"{name} has changed since it was right. This cell uses the earlier one. To use the new one, "
        f"run {todos.call(entry)} again."
    )
    return _usable(right, name)


def _ours(entry: todos.Todo, attempt: Any, why: str) -> Any:
    """The solution's object, with a printed line that says why; the learner's where there is no solution."""
    name = entry.names[0]
    try:
        ours = getattr(sources.solved(entry.lab), name)
    except sources.NoSolutionsError:
        return attempt
    print(f"{why} This cell uses our {name}.")
    return _usable(ours, name)


def _is_another(need: todos.Todo, attempt: Any) -> bool:
    """Whether `attempt` finds another function for an earlier TODO than the one that was right."""
    right = right_objects[need.id]
    now = scope_of(attempt).get(need.names[0], right) if callable(attempt) else right
    return callable(now) and now is not right


def _kept(value: Any, name: str) -> Any:
    """A function as it is, a file as its text, other values copied: a dict is changed in its place."""
    if callable(value):
        return value
    try:
        if name.endswith(".py"):
            return programs.read_program(value, name)
        return copy.deepcopy(value)
    except Exception:  # a file that has gone; some tensors and graphs cannot be copied
        return value


def _usable(value: Any, name: str) -> Any:
    """What cells go on with: the path of a file with that text where `name` is that of a file."""
    return programs.written(value, name) if name.endswith(".py") else value
