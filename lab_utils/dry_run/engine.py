"""Facts and the rules that need them: a rule is a function of facts, and the engine is a loop.

A fact is computed once, when a rule first needs it. Where it cannot be had, every rule that needs it is left
out, and stands under NOT CHECKED with its id and the reason.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from lab_utils.dry_run import rules
from lab_utils.dry_run.records import Finding, Mode, Stage
from lab_utils.dry_run.unavailable import Unavailable

# The modes that have a step on a core; serving is a graph for the host.
STEPS = (Mode.TRAIN, Mode.EVAL, Mode.PREDICT)
GRAPHS = (*STEPS, Mode.SERVING)


class fact:
    """Marks a method of `Facts` as a fact: computed when first asked for, and kept; so is its absence."""

    def __init__(self, func: Callable[[Any], Any]) -> None:
        # The name that functools.cached_property gives it: others look for the function there.
        self.func = func
        self.__doc__ = func.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, facts: Any, owner: type | None = None) -> Any:
        if facts is None:
            return self
        if self.name not in facts.known:
            try:
                facts.known[self.name] = self.func(facts)
            except Unavailable as why:
                facts.known[self.name] = why
        value = facts.known[self.name]
        if isinstance(value, Unavailable):
            raise Unavailable(*value.args)
        return value


class Facts:
    """What is known of one mode of what was handed over; of this class, nothing.

    A subclass has the facts of its kind of program, as methods marked with `fact`, and plain attributes for
    what is known from the start. What it does not have is unavailable, for the reason `without`. `stopped_by`
    is the rule whose mistake kept the graph of the mode from being built, "" for none.
    """

    stopped_by = ""

    def __init__(self, mode: Mode, without: str = "") -> None:
        self.mode, self.without = mode, without
        self.known: dict[str, Any] = {}

    def give(self, names: tuple[str, ...]) -> list[Any]:
        """The facts of those names.

        Raises:
            Unavailable: one cannot be had.
        """
        return [self._one(name) for name in names]

    def _one(self, name: str) -> Any:
        if not hasattr(type(self), name) and name not in vars(self):
            raise Unavailable(self.without)
        return getattr(self, name)


@dataclass(frozen=True)
class Rule:
    """A registered rule.

    Attributes:
        ids: of the findings that the function yields.
        needs: the names of the facts that it takes, in the order of its parameters.
        modes: in which it is asked.
        function: yields findings; it may raise Unavailable, too.
    """

    ids: tuple[str, ...]
    needs: tuple[str, ...]
    modes: tuple[Mode, ...]
    function: Callable[..., Iterator[Finding]]

    @property
    def stage(self) -> Stage:
        """The stage in which it is asked: that of the page of its first id."""
        return rules.rule(self.ids[0]).stage


RULES: list[Rule] = []


def rule(
    *ids: str, needs: tuple[str, ...], modes: tuple[Mode, ...] = STEPS
) -> Callable[[Callable], Callable]:
    """Registers a function of facts as the rule, or the rules, of these ids."""

    def register(function: Callable[..., Iterator[Finding]]) -> Callable[..., Iterator[Finding]]:
        RULES.append(Rule(ids, needs, modes, function))
        return function

    return register


# Why a program of another kind has no facts for a rule.
FOR_AN_ESTIMATOR = "asked of a TPUEstimator only"

# Why rules were left out -> their ids, for one mode.
LeftOut = dict[str, set[str]]


def apply_rules(facts: Facts, stage: Stage) -> tuple[list[Finding], LeftOut]:
    """The findings of all rules of a stage for one mode, and the rules that could not be asked."""
    findings: list[Finding] = []
    left_out: LeftOut = {}
    for item in RULES:
        if item.stage is stage and facts.mode in item.modes:
            try:
                findings += item.function(*facts.give(item.needs))
            except Unavailable as why:
                left_out.setdefault(str(why), set()).update(item.ids)
    return findings, left_out
