"""What a cell shows: a card with a coloured edge; several in one cell one after the other."""

import sys
from dataclasses import dataclass
from typing import Any, TypeVar

from lab_utils.notebook import look

STYLE = (
    "font:14px/1.5 var(--jp-ui-font-family,system-ui,sans-serif);max-width:46em;padding:8px 14px;"
    "color:var(--jp-content-font-color1,#1f2328);background:var(--jp-layout-color1,#fff);"
    "border:1px solid var(--jp-border-color2,#d0d7de);border-left:5px solid {colour};border-radius:4px"
)
SOFT = "color:var(--jp-content-font-color2,#57606a);font-size:12px"
Result = TypeVar("Result")

_waiting: list[Any] = []  # the result of this cell that only its last line would show


@dataclass(frozen=True)
class Card:
    """A text, and the HTML that stands for it in a notebook; with None the text itself does."""

    text: str
    html: str | None = None

    def __repr__(self) -> str:
        return self.text

    __str__ = __repr__

    def _repr_html_(self) -> str | None:
        return self.html and f'<div style="{STYLE.format(colour=look.NOTE)}">{self.html}</div>'


def in_turn(result: Result) -> Result:
    """The same result; one that was made before in the same cell is displayed first.

    A notebook shows the last result of a cell alone.
    """
    ipython = sys.modules.get("IPython")
    shell = ipython and ipython.get_ipython()
    if shell is None:
        return result
    shell.events.register("pre_run_cell", _next_cell)  # numbers of cells do not always count up
    for earlier in _waiting:
        ipython.display.display(earlier)
    _waiting[:] = [result]
    return result


def _next_cell(info: Any) -> None:
    _waiting.clear()
