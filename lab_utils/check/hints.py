"""Hints, one stage at a time, and only when asked for."""

from dataclasses import dataclass
from html import escape

from lab_utils.check import shown, todos
from lab_utils.check.outcome import STYLE
from lab_utils.notebook import look

_shown: dict[str, int] = {}


@dataclass(frozen=True)
class Hint:
    """The hints on a TODO that have been asked for so far."""

    todo: str
    texts: tuple[str, ...]
    total: int

    def __repr__(self) -> str:
        lines = [f"Hint {n} of {self.total}: {text}" for n, text in enumerate(self.texts, 1)]
        if len(self.texts) == self.total:
            lines.append(f'That was the last; solution("{self.todo}") shows ours.')
        return "\n".join(lines)

    __str__ = __repr__

    def _repr_html_(self) -> str:
        style = STYLE.format(colour=look.NOTE)
        return f'<div style="{style};white-space:pre-line">{escape(str(self))}</div>'


def hint(todo: str) -> Hint:
    """The next hint on a TODO, below those shown before.

    Raises:
        ValueError: there is no such TODO.
    """
    hints = todos.find(todo).hints
    _shown[todo] = min(len(hints), _shown.get(todo, 0) + 1)
    return shown.in_turn(Hint(todo, tuple(hints[: _shown[todo]]), len(hints)))
