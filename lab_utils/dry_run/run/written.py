"""Numbers of the program's own that may be that of its cores, or the batch of one: what they are on one core.

A program that divides by 8 on 8 cores is right there, and one core that divides by 8 computes something else.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from lab_utils.dry_run.program import Program
from lab_utils.dry_run.wording import some

_MOST = 4  # readings of a kind: each takes a run


@dataclass(frozen=True)
class Reading:
    """The step of many cores and of one, if `what` holds: "8 at a.py:3 stands for the number of cores"."""

    what: str
    many: Program
    one: Program


def readings(program: Program, many: Program, one: Program) -> Iterator[Reading]:
    """What numbers may mean that scale what is computed, and that are the same for many cores and for one.

    `many` and `one` run in place of `program`, on as many cores or fewer, with as large a batch or a smaller.
    """
    if not (many.origin.with_numbers and one.origin.with_numbers):
        return
    steps = (many, one)
    factors = [step.origin.factors() for step in steps]
    common = sorted(set(factors[0].values()) & set(factors[1].values()))
    for what in ("cores", "per_core_batch"):
        size = getattr(program, what)
        found = [
            (line, number) for line, number in common if size > 1 and number in (size, 1 / size)
        ]
        for group in _groups(found):
            programs = [
                _with(step, {name: getattr(step, what) ** (1 if of[name][1] == size else -1)
                             for name in of if of[name] in group})
                for step, of in zip(steps, factors, strict=True)
            ]  # fmt: skip
            numbers = some(
                f"{number:g} at {line.partition(', in ')[0]}"
                + ("" if number == size else f", which is 1/{size:g},")
                for line, number in group
            )
            words = {"cores": "the number of cores", "per_core_batch": "the batch of a core"}[what]
            yield Reading(f"{numbers} stands for {words}", *programs)


def _groups(found: list[tuple[str, float]]) -> list[list[tuple[str, float]]]:
    """All of them, then each for itself."""
    single = [[each] for each in found]
    return [found, *single][:_MOST] if len(found) > 1 else single


def _with(step: Program, numbers: dict[str, float]) -> Program:
    return replace(step, hlo=step.origin.with_numbers(numbers).hlo)
