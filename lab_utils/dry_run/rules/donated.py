"""What the arguments of a call of a JAX step tell: TPU247."""

from collections.abc import Iterator
from typing import Any

from lab_utils.common.source import Place
from lab_utils.dry_run.engine import rule
from lab_utils.dry_run.private import jax as _tracing
from lab_utils.dry_run.records import Finding
from lab_utils.dry_run.rules import finding


@rule("TPU247", needs=("step", "jaxpr", "called_at"))
def given_twice(step: Any, jaxpr: Any, where: Place) -> Iterator[Finding]:
    """A finding where one array stands twice among the arguments, and the step may take its memory.

    `where` is the line of the call.
    """
    arrays, donated = step.given, _tracing.donated(step.traced)
    names, used = _tracing.names(jaxpr), _used(jaxpr)
    firsts: dict[int, int] = {}
    for number in sorted(arrays):
        first = firsts.setdefault(id(arrays[number]), number)
        pair = (first, number)
        if first == number or not all(jaxpr.invars[n] in used for n in pair):
            continue  # JAX leaves out what the step does not use
        if taken := [names[n] for n in pair if donated[n]]:
            facts = {"first": names[first], "second": names[number]}
            yield finding("TPU247", where, donated=" and ".join(taken), **facts)
            return


def _used(jaxpr: Any) -> set[Any]:
    """The variables that an equation takes, or that are results."""
    taken = [each for equation in jaxpr.eqns for each in equation.invars]
    return {each for each in [*taken, *jaxpr.outvars] if not hasattr(each, "val")}
