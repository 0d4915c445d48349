"""Our solution of a TODO, shown when hints have not been enough."""

import inspect
import re
import textwrap
from dataclasses import dataclass
from html import escape

from lab_utils.check import progress, shown, todos
from lab_utils.check.outcome import STYLE
from lab_utils.notebook import look


@dataclass(frozen=True)
class Solution:
    """Our code for a TODO, and why it is so."""

    todo: str
    code: str
    why: str

    def __repr__(self) -> str:
        return f"Our solution of TODO {self.todo}:\n\n{self.code}\n\n{self.why}"

    __str__ = __repr__

    def _repr_html_(self) -> str:
        return (
            f'<div style="{STYLE.format(colour=look.NOTE)}"><b>Our solution of TODO {self.todo}</b>'
            f'<pre style="margin:6px 0;background:none">{escape(self.code)}</pre>{escape(self.why)}</div>'
        )


def solution(todo: str) -> Solution:
    """Our solution of a TODO, and why it is so. The progress file notes that it was shown.

    Raises:
        ValueError: there is no such TODO.
    """
    entry = todos.find(todo)
    progress.record_shown(todo)
    why = entry.why or inspect.getdoc(entry.function) or ""
    return shown.in_turn(Solution(todo, region(todos.source(todos.lab_of(todo)), todo), why))


def region(source: str, todo: str) -> str:
    """The lines of a solution's module that a TODO asks for: below its comment, as far as its block goes."""
    found = re.search(rf"^( *)# TODO {todo}: .*\n", source, re.M)
    if found is None:
        return ""
    kept = []
    for line in source[found.end() :].splitlines():
        depth = len(line) - len(line.lstrip())
        if line.strip() and (depth < len(found[1]) or re.match(" *# TODO ", line)):
            break
        kept.append(line)
    return textwrap.dedent("\n".join(kept)).strip("\n")
