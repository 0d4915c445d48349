"""What a compiled step says in figures: memory, cost, collectives, and the cost of the learner's lines."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from lab_utils.common.figures import Figure, Kind
from lab_utils.common.source import NOWHERE, Place
from lab_utils.dry_run.compile.hlo.collectives import Collective, axes
from lab_utils.dry_run.compile.record import Compiled
from lab_utils.dry_run.program import Partition
from lab_utils.dry_run.records import MEMORY_PARTS, Cost, LineCost, Span


def add_figures(compiled: Compiled, answer: dict[str, Any]) -> None:
    """Adds memory and cost from the compiler's answer, and the roofline that follows, to the step."""
    memory, summary, chip = answer["memory"], compiled.summary, compiled.chip
    parts = memory | {"outputs": memory["outputs"] - memory["alias"]}
    for name in MEMORY_PARTS:
        figure = Figure(name, float(parts[name]), "bytes", Kind.COMPILER)
        setattr(compiled.step.memory, name, figure)
    total = sum(compiled.step.memory.parts.values())
    if total > chip.limit:
        compiled.step.memory.needed = Figure("memory needed", total, "bytes", Kind.COMPILER)
    cost = summary.cost(answer["cost"])
    flops, bytes_ = cost["flops"], cost["bytes"]
    kind = Kind.DERIVED if summary.loop_bytes else Kind.COMPILER
    bound = chip.roofline(flops, bytes_)
    rate = bound.examples_per_second(compiled.program.per_core_batch)
    compiled.step.cost = Cost(
        flops=Figure("FLOPs a step", flops, "FLOP", kind),
        bytes=Figure("HBM traffic a step", bytes_, "B", kind),
        peak_flops=Figure(
            "peak of a core, bfloat16", bound.peak_flops, "FLOP/s", Kind.QUOTED, chip.source
        ),
        peak_bandwidth=Figure(
            "HBM bandwidth of a core", bound.peak_bandwidth, "B/s", Kind.QUOTED, chip.source
        ),
        step_seconds=Figure("roofline bound on a step", bound.seconds, "s", Kind.DERIVED),
        examples_per_second=Figure("examples a core, at most", rate, "examples/s", Kind.DERIVED),
        bf16_share=Figure(
            "matmul FLOPs done in bfloat16", summary.bfloat16_share, "share", Kind.DERIVED
        ),
        bf16_operand_share=Figure(
            "matmul FLOPs with bfloat16 operands",
            summary.bfloat16_operand_share,
            "share",
            Kind.DERIVED,
        ),
        all_reduce_bytes=Figure(
            "all-reduce a step", float(summary.collective_bytes), "B", Kind.COMPILER
        ),
    )


def of_collectives(compiled: Compiled) -> list[Figure]:
    """Bytes a step of each kind of collective, by the axes of the mesh that it works over."""
    partition = compiled.program.partition
    if partition is None:
        return []
    sums: dict[str, int] = {}
    for each in compiled.summary.collectives:
        name = f"{each.kind} over {_over(each, partition)}, a step"
        sums[name] = sums.get(name, 0) + each.bytes
    return [Figure(name, float(size), "B", Kind.COMPILER) for name, size in sorted(sums.items())]


def _over(each: Collective, partition: Partition) -> str:
    if each.kind == "collective-permute":
        return "neighbours"
    names = axes(each.groups, partition.mesh)
    return " and ".join(names) if names else "groups of their own"


def placed(spans: list[Span], place_of: Callable[[str], Place]) -> list[Span]:
    """The instructions with the learner's lines, without their ops.

    Args:
        place_of: the line behind an op of the framework, where the module itself names none.
    """
    known = {each.op: place_of(each.op).source_line for each in spans if each.op and not each.place}
    files = {op: place for op, place in known.items() if place.file}
    return [
        each if each.place else replace(each, place=files.get(each.op, NOWHERE)) for each in spans
    ]


def by_line(spans: list[Span], most: int = 10) -> list[LineCost]:
    """The `most` lines with the most estimated cycles, then bytes; what has no line stands together."""
    sums: dict[Place, LineCost] = {}
    for each in spans:
        line = sums.get(each.place, LineCost(each.place, 0.0, 0.0, 0.0))
        sums[each.place] = LineCost(
            each.place, line.cycles + each.cycles, line.bytes + each.bytes, line.flops + each.flops
        )
    return sorted(sums.values(), key=lambda line: (line.cycles, line.bytes), reverse=True)[:most]
