"""What a cell shows: the outcome of a check or a card; several in one cell one after the other."""

from dataclasses import dataclass
from typing import TypeVar

from lab_utils.common.enums import StrEnum
from lab_utils.common.notices import in_notebook
from lab_utils.notebook import look

STYLE = (
    "font:14px/1.5 var(--jp-ui-font-family,system-ui,sans-serif);max-width:46em;padding:8px 14px;"
    "color:var(--jp-content-font-color1,#1f2328);background:var(--jp-layout-color1,#fff);"
    "border:1px solid var(--jp-border-color2,#d0d7de);border-left:5px solid {colour};border-radius:4px"
)
SOFT = "color:var(--jp-content-font-color2,#57606a);font-size:12px"
_SIGN = "display:inline-block;min-width:1.4em;text-align:center;border-radius:3px;color:#fff"
_BLOCK = "display:inline-block;width:18px;height:7px;margin-right:3px;border-radius:2px"
_EMPTY = "var(--jp-border-color2,#d0d7de)"
Result = TypeVar("Result")


class Status(StrEnum):
    """The four outcomes of a check."""

    CORRECT = "correct"
    INCORRECT = "incorrect"
    NOT_ATTEMPTED = "not attempted"
    CANNOT_CHECK = "cannot be checked here"


_LOOKS = {
    Status.CORRECT: ("✓", look.RIGHT),
    Status.INCORRECT: ("✗", look.WRONG),
    Status.NOT_ATTEMPTED: ("○", look.NEUTRAL),
    Status.CANNOT_CHECK: ("?", look.UNSURE),
}


class Wrong(Exception):
    """Raised by a check's function: what is wrong, in the learner's terms."""


class NotAttempted(Exception):
    """Raised by a check's function where nothing was written yet: what is to be done first."""


class CannotCheck(Exception):
    """Raised by a check's function: what this machine lacks for it."""


class WithoutStack:
    """An exception of which a notebook shows the message only."""

    def _render_traceback_(self) -> list[str]:
        return [str(self)]


class CallError(WithoutStack, ValueError):
    """A call that names no TODO, or hands over another number of objects than it asks for."""


@dataclass(frozen=True)
class Outcome:
    """What a check says of TODO `todo`.

    `correct` of the lab's `total` TODOs have been right; `solutions` counts those whose solution was shown.
    """

    todo: str
    status: Status
    why: str
    correct: int
    total: int
    solutions: int = 0

    def __repr__(self) -> str:
        return f"TODO {self.todo}: {self.status}. {self.why}"

    def _repr_html_(self) -> str:
        icon, colour = _LOOKS[self.status]
        shades = [look.FILLED] * self.correct + [_EMPTY] * (self.total - self.correct)
        blocks = "".join(f'<span style="{_BLOCK};background:{shade}"></span>' for shade in shades)
        count = f"{self.correct} of {self.total} in this lab"
        count += f", {self.solutions} with the solution shown" if self.solutions else ""
        return (
            f'<div style="{STYLE.format(colour=colour)}">'
            f'<b><span style="{_SIGN};background:{colour}">{icon}</span> '
            f"TODO {self.todo}: {self.status}</b><br>"
            f'<span style="white-space:pre-line">{look.with_code(self.why)}</span>'
            f'<div style="{SOFT};margin-top:4px">{blocks} {count}</div></div>'
        )


@dataclass(frozen=True)
class Card:
    """A text, and the HTML that stands for it in a notebook; with None the text itself does."""

    text: str
    html: str | None = None

    def __repr__(self) -> str:
        return self.text

    def _repr_html_(self) -> str | None:
        return self.html and f'<div style="{STYLE.format(colour=look.NOTE)}">{self.html}</div>'


def display_in_notebook(result: Result) -> Result | None:
    """Displays a result in a notebook, and returns it elsewhere.

    A notebook shows only the last value of a cell by itself: a verdict above a print would be lost.
    """
    if not in_notebook():
        return result
    from IPython.display import display

    display(result)
    return None
