"""The cost of a compiled step by the learner's lines."""

from collections.abc import Callable

from lab_utils.common.source import NOWHERE, Place, place_of_line
from lab_utils.dry_run.compile.hlo.summary import Summary
from lab_utils.dry_run.compile.hlo.work import Work
from lab_utils.dry_run.program import Program
from lab_utils.dry_run.records import LineCost, Span


def by_line(work: list[Work], place_of: Callable[[str], Place], most: int = 10) -> list[LineCost]:
    """The `most` lines with the most estimated cycles, then bytes; what has no line stands together.

    Args:
        place_of: the line behind an op of the framework, where the module itself names none.
    """
    sums: dict[Place, list[float]] = {}
    for each in work:
        where = placed(each, place_of)
        held = sums.setdefault(where, [0.0, 0.0, 0.0])
        for number, value in enumerate((each.cycles, each.bytes, each.flops)):
            held[number] += value
    ranked = sorted(sums.items(), key=lambda item: item[1][:2], reverse=True)
    return [LineCost(where, *costs) for where, costs in ranked[:most]]


def placed(each: Work, place_of: Callable[[str], Place]) -> Place:
    """The learner's line of an instruction, without its op; NOWHERE where it is not known."""
    if each.file:
        return place_of_line(each.file, each.line)
    found = place_of(each.op) if each.op else NOWHERE
    return found.source_line if found.file else NOWHERE


def spans(summary: Summary | None, program: Program) -> list[Span]:
    """The instructions of a compiled step in the compiler's order, for a trace."""
    return [
        Span(
            each.name,
            each.opcode,
            each.op,
            placed(each, program.origin.place_of),
            each.cycles,
            each.bytes,
            each.flops,
            each.rounds,
        )
        for each in (summary.work if summary else ())
    ]
