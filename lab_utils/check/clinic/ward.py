"""A patient of the clinic: a program with planted faults, and what is to be known of them."""

import ast
import difflib
import functools
import string
from dataclasses import dataclass, field
from typing import Any

from lab_utils import datasets

_SHORT = 3  # lines of a statement that is one place
NAMES = ("digits", "photographs", "reviews", "portraits", "boxes", "films")


@dataclass(frozen=True)
class Fault:
    """One planted fault: `right`, found once in the healthy program, became `wrong`.

    Attributes:
        rule: the dry run's id for it; "" where no rule sees it, and only what the program computes tells.
        at: beginnings of further lines of the sick program at which the fault may be seen.
        why: the sentence among the choices.
        comment: what a learner hears who has found it.
        silent: whether a TPU gives no message either.
    """

    rule: str
    right: str
    wrong: str
    why: str
    comment: str
    at: tuple[str, ...] = ()
    silent: bool = False


@dataclass(frozen=True, eq=False)  # dicts have no hash
class Ward:
    """A patient: `healthy` is the program as it should be; `allowed` are rules that it may break.

    `others` are sentences among the choices that name no fault, each with what speaks against it.
    `columns` are predictions that the sick program gives as [B, 1], which a cure may leave so.
    """

    name: str
    healthy: str
    faults: tuple[Fault, ...]
    fine: dict[str, str]
    others: dict[str, str] = field(default_factory=dict)
    weight: str = ""
    columns: tuple[str, ...] = ()
    allowed: tuple[str, ...] = ()

    @functools.cached_property
    def sick(self) -> str:
        """The program with all its faults."""
        text = self.healthy
        for fault in self.faults:
            _first_line(text, fault.right)  # the text holds it once
            text = text.replace(fault.right, fault.wrong)
        return text

    @property
    def choices(self) -> dict[str, str]:
        """What may be wrong with a line, by letter; more than there are faults."""
        sentences = sorted({fault.why for fault in self.faults} | set(self.others))
        return dict(zip(string.ascii_uppercase, sentences, strict=False))

    def lines(self, fault: Fault) -> set[int]:
        """The lines of the sick program, from 1, at which the fault may be seen."""
        text, numbers = self.sick, set()
        if fault.wrong:
            first = _first_line(text, fault.wrong)
            before, after = fault.right.splitlines(), fault.wrong.splitlines()
            numbers = {first + n for n, line in enumerate(after) if line not in before}
            for tag, _, _, gap, _ in difflib.SequenceMatcher(None, before, after).get_opcodes():
                if tag == "delete":  # a line is missing: those beside the gap show it
                    numbers |= {first + gap - 1, first + gap}
        for start in fault.at:
            numbers |= {number for number, line in enumerate(text.splitlines(), 1) if start in line}
        return _whole_statements(text, numbers)

    def word(self, line: int) -> str:
        """Why a healthy line of the sick program is fine; "" where nothing is noted."""
        code = self.sick.splitlines()[line - 1]
        return next((word for part, word in self.fine.items() if part in code), "")

    def changes(self, text: str) -> list["Change"]:
        """Where a learner's version differs from the sick program, comments and empty lines left out."""
        sick, edited = self.sick.splitlines(), text.splitlines()
        matcher = difflib.SequenceMatcher(None, *map(_code, (sick, edited)), autojunk=False)
        changes = []
        for tag, start, end, first, last in matcher.get_opcodes():
            before = [n for n in range(start, end) if _code(sick)[n]]
            after = [n for n in range(first, last) if _code(edited)[n]]
            if tag != "equal" and (before or after):
                beside = before or [start - 1, start]  # of lines that came in between
                near = {n + 1 for n in beside}
                changes.append(
                    Change([n + 1 for n in before], [n + 1 for n in after], first + 1, near)
                )
        return changes

    def places(self, text: str) -> dict[Fault, list[int]]:
        """Which of a learner's changes, numbered from 0, stand where a fault may be seen."""
        changes = self.changes(text)
        seen = {fault: self.lines(fault) for fault in self.faults}
        return {
            fault: [n for n, change in enumerate(changes) if lines & change.near]
            for fault, lines in seen.items()
        }


@dataclass(frozen=True)
class Change:
    """Lines of the sick program that a learner took out, and those in their place, each numbered from 1.

    `at` is the line of the learner's file at which they stood, also where no other ones came in; `near` are
    the lines of the sick program themselves, or those beside the gap that others came into.
    """

    sick: list[int]
    edited: list[int]
    at: int
    near: set[int]


@functools.cache
def ward(name: str) -> Ward:
    """The patient of that name.

    Raises:
        ValueError: there is none.
    """
    path = datasets.photos.files_folder() / "clinic" / f"{name}.py"
    if not path.is_file():
        raise ValueError(f"no patient is called {name!r}; there are {', '.join(NAMES)}")
    healthy, _, chart = path.read_text(encoding="utf-8").partition("\nWARD = ")
    fields: dict[str, Any] = ast.literal_eval(chart)
    faults = tuple(Fault(**fault) for fault in fields.pop("faults"))
    return Ward(name, healthy.rstrip("\n") + "\n", faults, fine=fields.pop("healthy"), **fields)


def _code(lines: list[str]) -> list[str]:
    """Lines without comments of their own, and without what stands at their ends."""
    return ["" if line.lstrip().startswith("#") else line.rstrip() for line in lines]


def _first_line(text: str, part: str) -> int:
    """The number of the line on which `part` begins, which the text holds once."""
    assert text.count(part) == 1, f"{text.count(part)} times in the program: {part!r}"
    return text[: text.index(part)].count("\n") + 1


def _whole_statements(text: str, lines: set[int]) -> set[int]:
    """`lines`, and the others of the short simple statements that they stand in."""
    whole = set(lines)
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.stmt) and not hasattr(node, "body"):
            span = set(range(node.lineno, node.end_lineno + 1))
            if span & lines and len(span) <= _SHORT:
                whole |= span
    return whole
