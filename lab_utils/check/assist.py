"""Hints, our solution, and what a notebook goes on with while a TODO is open."""

from html import escape
from typing import Any

from lab_utils.check import progress, runner, sources, todos
from lab_utils.check.card import Card, in_turn
from lab_utils.check.outcome import Status

_asked: dict[str, int] = {}  # how many hints on a TODO


def hint(todo: str) -> Card:
    """The next hint on a TODO, below those shown before.

    Raises:
        ValueError: there is no such TODO.
    """
    hints = todos.find(todo).hints
    _asked[todo] = min(len(hints), _asked.get(todo, 0) + 1)
    shown = enumerate(hints[: _asked[todo]], 1)
    lines = [f"Hint {number} of {len(hints)}: {text}" for number, text in shown]
    if len(lines) == len(hints):
        lines.append(f'That was the last; solution("{todo}") shows ours.')
    text = "\n".join(lines)
    return in_turn(Card(text, f'<span style="white-space:pre-line">{escape(text)}</span>'))


def solution(todo: str) -> Card:
    """Our solution of a TODO, and why it is so. The progress file notes that it was shown.

    Raises:
        ValueError: there is no such TODO.
    """
    entry = todos.find(todo)
    progress.record_shown(todo)
    title, code = f"Our solution of TODO {todo}", sources.region(todo)
    html = f'<pre style="margin:6px 0;background:none">{escape(code)}</pre>{escape(entry.about)}'
    return in_turn(Card(f"{title}:\n\n{code}\n\n{entry.about}", f"<b>{title}</b>{html}"))


def working(attempt: Any, *needs: str) -> Any:
    """The learner's object where all the TODOs that it needs are correct, else the solution's.

    Cells that use a TODO's result take it through this function: `working(model_fn, "1b", "1c")`, so that
    Run all works at every stage of a learner's work. It goes by what the checks said in this session, prints
    a line where it takes the solution's, and changes no name in the notebook.

    Args:
        attempt: what the learner wrote for the last of `needs`.
        needs: ids of TODOs, the last one being that of `attempt`.
    """
    missing = [id for id in needs if runner.said.get(id) is not Status.CORRECT]
    if not missing:
        return attempt
    entry = todos.find(needs[-1])
    print(f"Not solved yet: TODO {', '.join(missing)}. This cell uses our {entry.names[0]}.")
    return getattr(sources.solved(entry.lab), entry.names[0])
