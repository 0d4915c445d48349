"""The catalogue of rules: each finding's id, stage, severity and words, from one page per rule.

A rule is the file TPUxxx.md of this folder: a YAML header (stage, severity, title, lab, why, fix), then
the page that a reader opens. `why` and `fix` may hold {placeholders}, which `finding` fills from its facts;
{steps:step} gives "1 step" or "40 steps". Where they differ from case to case, such as from one API to the
other, they are a mapping: from the cases, divided by commas, to the text.
`lab` is the number of the lab that teaches the rule; its title is in labs.json, which lab_utils.build writes.
Ids are stable: a number is never given to another rule.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from string import Formatter
from typing import Any

import yaml

from lab_utils.common.figures import counted
from lab_utils.common.source import Place
from lab_utils.dry_run.records import Finding, Severity, Stage

_PAGES = Path(__file__).parent
_MARK = "---\n"


class _Words(Formatter):
    """Formats {number:noun} with the noun in the form that the number needs."""

    def format_field(self, value: object, format_spec: str) -> str:
        if not format_spec:
            return str(value)
        return f"{value} {counted(int(str(value) == '1'), format_spec).partition(' ')[2]}"


_WORDS = _Words()


@dataclass(frozen=True)
class Rule:
    """One rule: `why` and `fix` are templates by case, `body` is Markdown.

    The case is "" where a template is the same in all. `lab` is the number and the title of the lab that
    teaches it: "04 Metrics and the host".
    """

    id: str
    stage: Stage
    severity: Severity
    title: str
    lab: str
    why: dict[str, str]
    fix: dict[str, str]
    body: str

    @property
    def cases(self) -> list[str]:
        """The cases that a finding must name one of; "" alone where there are none."""
        return sorted((self.why.keys() | self.fix.keys()) - {""}) or [""]

    def templates(self, case: str) -> tuple[str, str]:
        """Why and fix of a case; KeyError where the rule does not have it."""
        if case not in self.cases:
            raise KeyError(f"{self.id} has the cases {self.cases}, not {case!r}")
        return tuple(texts.get(case) or texts[""] for texts in (self.why, self.fix))

    def facts(self, case: str = "") -> frozenset[str]:
        """The names of the facts that a finding of this rule must bring."""
        parts = [part for text in self.templates(case) for part in Formatter().parse(text)]
        return frozenset(name for _, name, _, _ in parts if name is not None)


def _read(path: Path) -> Rule:
    try:
        _, header, body = path.read_text(encoding="utf-8").split(_MARK, 2)
        fields = yaml.safe_load(header)
        fields |= {name: _by_case(fields[name]) for name in ("why", "fix")}
        stage, severity = Stage(fields.pop("stage")), Severity(fields.pop("severity"))
        fields["lab"] = f"{fields['lab']} {_titles()[fields['lab']]}"
        return Rule(path.stem, stage, severity, body=body.strip() + "\n", **fields)
    except (AttributeError, KeyError, TypeError, ValueError, yaml.YAMLError) as error:
        raise ValueError(f"{path.name}: not a rule's page ({error})") from error


def _by_case(texts: Any) -> dict[str, str]:
    """The texts of a header by case: a text for all, or a mapping."""
    pairs = texts.items() if isinstance(texts, dict) else [("", texts)]
    return {case: str(text).strip() for cases, text in pairs for case in cases.split(", ")}


@cache
def _titles() -> dict[str, str]:
    """The titles of the labs by their numbers."""
    return json.loads((_PAGES / "labs.json").read_text(encoding="utf-8"))


@cache
def catalogue() -> dict[str, Rule]:
    """All rules by id, in the order of their numbers."""
    return {path.stem: _read(path) for path in sorted(_PAGES.glob("TPU*.md"))}


def rule(id: str) -> Rule:
    """The rule `id`.

    Raises:
        KeyError: there is no such rule.
    """
    try:
        return catalogue()[id]
    except KeyError:
        raise KeyError(f"no rule {id!r}; there are {', '.join(catalogue())}") from None


def ids_in(text: str) -> tuple[str, ...]:
    """The rules, or beginnings of their ids, that a text such as "TPU305,TPU4" lists.

    Raises:
        ValueError: one is not a rule's.
    """
    ids = tuple(part.strip().upper() for part in text.split(",") if part.strip())
    for id in ids:
        if not any(name.startswith(id) for name in catalogue()):
            raise ValueError(f"there is not a rule {id} (--rules lists them)")
    return ids


def in_lab(item: Finding, labs: Mapping[str, str]) -> Finding:
    """The finding with the lab that `labs` has in the place of its own; both by their numbers."""
    number = labs.get(item.lab[:2])
    return replace(item, lab=f"{number} {_titles()[number]}") if number else item


def page(id: str) -> str:
    """The rule's page as Markdown: id and title as the heading, stage and severity, then the text."""
    entry = rule(id)
    return (
        f"# {entry.id}: {entry.title}\n\n"
        f"Stage: {entry.stage}. Severity: {entry.severity}. Lab: {entry.lab}.\n\n{entry.body}"
    )


def finding(
    id: str,
    place: Place,
    *,
    message: str = "",
    note: bool = False,
    because_of: str = "",
    case: str = "",
    **facts: object,
) -> Finding:
    """A finding of rule `id` at `place`, its why and fix, those of `case`, filled from `facts`.

    `message` is the text that TensorFlow or the compiler gave, or would have given on a TPU; it is left out
    where the why quotes it whole. With `note` it is a note, whatever the rule's severity: it may well be
    what the program means. `because_of` is the rule of whose mistake it may be a consequence only.

    Raises:
        KeyError: there is no such rule, or it has no such case.
        TypeError: a fact that the rule's texts need is missing, or one is not used by them.
    """
    entry = rule(id)
    if facts.keys() != (needed := entry.facts(case)):
        raise TypeError(f"{id} needs the facts {sorted(needed)}, and was given {sorted(facts)}")
    why, fix = (_WORDS.format(text, **facts) for text in entry.templates(case))
    severity = Severity.NOTE if note else entry.severity
    message = "" if message.rstrip(".") in why else message
    return Finding(id, entry.stage, severity, place, why, fix, entry.lab, message, because_of)
