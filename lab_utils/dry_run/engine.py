"""Facts and the rules that need them: a rule is a function of facts, and the engine is a loop.

A fact is computed once, when a rule first needs it. Where it cannot be had, every rule that needs it is left
out, and stands under NOT CHECKED with its id and the reason.
"""

import importlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from lab_utils.dry_run import rules
from lab_utils.dry_run.facts.base import STEPS, Facts
from lab_utils.dry_run.records import Finding, Mode, Stage
from lab_utils.dry_run.unavailable import Unavailable


@dataclass(frozen=True)
class Rule:
    """A registered rule.

    Attributes:
        ids: of the findings that the function yields.
        needs: the names of the facts that it takes, in the order of its parameters.
        modes: in which it is asked.
        stage: in which it is asked.
        function: yields findings; it may raise Unavailable, too.
    """

    ids: tuple[str, ...]
    needs: tuple[str, ...]
    modes: tuple[Mode, ...]
    stage: Stage
    function: Callable[..., Iterator[Finding]]


RULES: list[Rule] = []


def rule(
    *ids: str,
    needs: tuple[str, ...],
    modes: tuple[Mode, ...] = STEPS,
    stage: Stage | None = None,
) -> Callable[[Callable], Callable]:
    """Registers a function of facts as the rule, or the rules, of these ids.

    It is asked in `stage`, where the kind of program it is for shows the mistake in another stage than that
    of the page of the first id.
    """
    asked_in = stage or rules.rule(ids[0]).stage

    def register(function: Callable[..., Iterator[Finding]]) -> Callable[..., Iterator[Finding]]:
        RULES.append(Rule(ids, needs, modes, asked_in, function))
        return function

    return register


@dataclass
class Silent:
    """The rules that have said nothing of a program.

    Attributes:
        left_out: those that could not be asked, by the mode and why.
        not_asked: those that need facts of another kind of program, by the mode.
    """

    left_out: dict[tuple[Mode, str], set[str]] = field(default_factory=dict)
    not_asked: dict[Mode, set[str]] = field(default_factory=dict)


def rules_of(facts: Facts, stage: Stage) -> list[Rule]:
    """The rules of a stage that are asked of a program with such facts."""
    names = [importlib.import_module(f"{rules.__name__}.{name}").__name__ for name in facts.modules]
    asked = [item for item in RULES if item.stage is stage and facts.mode in item.modes]
    return [item for name in names for item in asked if item.function.__module__ == name]


def apply_rules(facts: Facts, stage: Stage, silent: Silent) -> list[Finding]:
    """Asks all rules of a stage of one mode; those that cannot say anything are added to `silent`."""
    findings: list[Finding] = []
    asked: set[str] = set()
    others: set[str] = set()
    for item in rules_of(facts, stage):
        if not facts.has(item.needs):
            others.update(item.ids)
            continue
        asked.update(item.ids)
        try:
            given = [getattr(facts, name) for name in item.needs]
            findings += item.function(*given)
        except Unavailable as why:
            silent.left_out.setdefault((facts.mode, str(why)), set()).update(item.ids)
    # A rule may have a second function, for what only another kind of program has.
    silent.not_asked.setdefault(facts.mode, set()).update(others - asked)
    return findings
