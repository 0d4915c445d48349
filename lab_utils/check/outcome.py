"""What a check says: one of four outcomes, shown in a notebook or as text."""

from dataclasses import dataclass
from html import escape

from lab_utils.common.enums import StrEnum
from lab_utils.notebook import look

STYLE = (
    "font:14px/1.5 var(--jp-ui-font-family,system-ui,sans-serif);max-width:46em;padding:8px 14px;"
    "color:var(--jp-content-font-color1,#1f2328);background:var(--jp-layout-color1,#fff);"
    "border:1px solid var(--jp-border-color2,#d0d7de);border-left:5px solid {colour};border-radius:4px"
)
SIGN = "display:inline-block;min-width:1.4em;text-align:center;border-radius:3px;color:#fff"
SOFT = "color:var(--jp-content-font-color2,#57606a);font-size:12px"


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


class CannotCheck(Exception):
    """Raised by a check's function: what this machine lacks for it."""


@dataclass(frozen=True)
class Outcome:
    """What a check says of TODO `todo`.

    `done` of the lab's `total` TODOs have been right, and the solutions of `shown` of them were shown.
    """

    todo: str
    status: Status
    why: str
    done: int
    total: int
    shown: int = 0

    def __repr__(self) -> str:
        return f"TODO {self.todo}: {self.status}. {self.why}"

    __str__ = __repr__

    def _repr_html_(self) -> str:
        icon, colour = _LOOKS[self.status]
        blocks = "".join(
            f'<span style="display:inline-block;width:18px;height:7px;margin-right:3px;border-radius:2px;'
            f'background:{look.FILLED if number < self.done else "var(--jp-border-color2,#d0d7de)"}"></span>'
            for number in range(self.total)
        )
        told = f", {self.shown} with the solution shown" if self.shown else ""
        return (
            f'<div style="{STYLE.format(colour=colour)}">'
            f'<b><span style="{SIGN};background:{colour}">{icon}</span> '
            f"TODO {self.todo}: {self.status}</b><br>"
            f'<span style="white-space:pre-line">{escape(self.why)}</span>'
            f'<div style="{SOFT};margin-top:4px">{blocks} {self.done} of {self.total} in this lab{told}'
            "</div></div>"
        )
