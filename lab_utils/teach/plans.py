"""Courses of several lengths, from solutions/instructor/plans.yaml: their sessions, with minutes.

A plan names its sessions, or says how many meetings there are: then the sections of the labs are divided
among them as evenly as they can be, and each meeting ends at a section.
"""

import itertools
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import nbformat
import yaml

from lab_utils.check import sources
from lab_utils.teach import minutes, quiz, slides

_SHORTEST = 5  # minutes of a section; one that is shorter goes with the section before it


@dataclass(frozen=True)
class Part:
    """What a session holds of a lab: the minutes of its lecture (0 where it is over), and of its sections.

    It begins at the heading `first`, and ends before the heading `until`: "" at the lab's beginning and end.
    """

    lab: int
    lecture: int
    own: int
    first: str = ""
    until: str = ""

    @property
    def takes(self) -> int:
        """Minutes of lecture and lab."""
        return self.lecture + self.own


@dataclass(frozen=True)
class Session:
    """What happens between two breaks; `minutes` are those that it has, 0 where a plan does not say."""

    title: str
    parts: list[Part]
    arrival: int = 0
    pause: int = 0
    minutes: int = 0

    @property
    def takes(self) -> int:
        """Minutes with arrival, lectures and the break after it."""
        return self.arrival + sum(part.takes for part in self.parts) + self.pause


def read(root: Path) -> dict[str, list[dict[str, Any]]]:
    """Plans and demos of solutions/instructor/plans.yaml."""
    return yaml.safe_load((root / "solutions/instructor/plans.yaml").read_text(encoding="utf-8"))


def labs(plan: dict) -> list[int]:
    """The labs that a plan teaches, in its order."""
    return plan.get("labs") or [lab for session in plan["sessions"] for lab in session["labs"]]


def not_taught(plan: dict) -> list[int]:
    """The labs that a plan does not name."""
    return [lab for lab in sources.labs() if lab not in labs(plan)]


def sessions(root: Path, plan: dict) -> list[Session]:
    """The sessions of a plan; those of meetings are made of the labs' sections."""
    short = plan.get("short", False)
    if "meetings" in plan:
        units = [unit for lab in labs(plan) for unit in _units(root, lab, short)]
        return _meetings(plan, units)
    return [
        Session(
            session["title"],
            [whole(root, lab, short) for lab in session["labs"]],
            session.get("arrival", 0),
            session.get("break", 0),
        )
        for session in plan["sessions"]
    ]


def hours(plan: dict) -> float:
    """The hours that a plan has."""
    return plan["meetings"] * plan["minutes"] / 60 if "meetings" in plan else plan["hours"]


def takes(root: Path, plan: dict) -> int:
    """Minutes of a plan with its lectures and breaks."""
    return sum(session.takes for session in sessions(root, plan))


def whole(root: Path, lab: int, short: bool = False) -> Part:
    """A whole lab, behind its talk or its short one."""
    return Part(lab, slides.minutes(root, lab, short), sources.labs()[lab]["minutes"])


@cache
def route_by_level(root: Path) -> int:
    """Minutes of the one-day route if each of its exercises took the minutes of its level."""
    labs = ((_source(lab), _questions(root, lab)) for lab in range(minutes.SPINE))
    return round(sum(sum(minutes.sections(*lab, by_level=True).values()) for lab in labs))


def _source(lab: int) -> nbformat.NotebookNode:
    return nbformat.read(sources.paths()[lab], as_version=4)


def _questions(root: Path, lab: int) -> int:
    return len(quiz.questions(root).get(f"{lab:02d}", ()))


@cache
def section_minutes(root: Path, lab: int) -> dict[str, int]:
    """Whole minutes of a lab's sections, by heading; they add up to the minutes that the lab states."""
    parts = minutes.sections(_source(lab), _questions(root, lab))
    share = sources.labs()[lab]["minutes"] / sum(parts.values())
    ends = [round(share * end) for end in itertools.accumulate(parts.values())]
    return {name: end - before for name, end, before in zip(parts, ends, [0, *ends], strict=False)}


def _units(root: Path, lab: int, short: bool) -> list[Part]:
    """A lab as its sections, none shorter than `_SHORTEST` nor a mere recap; the lecture comes first."""
    found: list[tuple[str, int]] = []
    for heading, own in section_minutes(root, lab).items():
        closing = heading.startswith("Recap")  # no meeting begins with what the one before did
        if found and (closing or own < _SHORTEST or found[-1][1] < _SHORTEST):
            found[-1] = (found[-1][0], found[-1][1] + own)
        else:
            found.append((heading, own))
    (_, opening), *others = found
    return [
        Part(lab, slides.minutes(root, lab, short), opening),
        *(Part(lab, 0, own, heading) for heading, own in others),
    ]


def _meetings(plan: dict, units: list[Part]) -> list[Session]:
    """As many meetings as the plan has, the longest of them as short as it can be.

    Raises:
        ValueError: the labs do not fit.
    """
    count, room = plan["meetings"], plan["minutes"] - plan["reserve"]
    for limit in range(max(unit.takes for unit in units), room + 1):
        filled = _filled(units, limit)
        if len(filled) <= count:
            following = [*(meeting[0] for meeting in filled[1:]), None]
            return [
                Session(_title(number, plan["a_week"]), _joined(*pair), minutes=plan["minutes"])
                for number, pair in enumerate(zip(filled, following, strict=True))
            ]
    raise ValueError(
        f"{plan['title']}: the labs do not fit into {count} meetings of {room} minutes"
    )


def _title(number: int, a_week: int) -> str:
    return f"Week {number // a_week + 1}, meeting {number % a_week + 1}"


def _filled(units: list[Part], limit: int) -> list[list[Part]]:
    """Meetings of at most `limit` minutes, each as full as it can be."""
    filled: list[list[Part]] = [[]]
    for unit in units:
        if sum(each.takes for each in filled[-1]) + unit.takes > limit:
            filled.append([])
        filled[-1].append(unit)
    return filled


def _joined(units: list[Part], following: Part | None) -> list[Part]:
    """The sections of each lab in one meeting as one part; `following` begins the next meeting."""
    parts = []
    for lab, group in itertools.groupby(units, lambda unit: unit.lab):
        of_lab = list(group)
        until = following.first if following and following.lab == lab else ""
        lecture, own = (sum(getattr(each, of) for each in of_lab) for of in ("lecture", "own"))
        parts.append(Part(lab, lecture, own, of_lab[0].first, until))
    return parts
