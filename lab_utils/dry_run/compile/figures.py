"""What the TPU compiler made of a step, in figures: memory, cost, collectives, and the learner's lines."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from lab_utils.common.figures import Figure, Kind
from lab_utils.common.source import NOWHERE, Place
from lab_utils.dry_run.compile.forecast import Forecast, forecast
from lab_utils.dry_run.compile.hlo.summary import Summary
from lab_utils.dry_run.program import Program
from lab_utils.dry_run.records import MEMORY_PARTS, CompiledStep, Cost, Finding, LineCost
from lab_utils.runtime.chips import Chip


@dataclass
class Compiled:
    """A program and what the TPU compiler says of it.

    Attributes:
        step: memory and cost, as the report shows them.
        summary: what the optimised program holds; None where there is none.
        time: the parts of its estimated time; None where the compiler estimates none.
        cached: taken from an earlier dry run.
        refusal: the compiler's words where it refused the program; "" where it took it.
    """

    topology: str
    chip: Chip
    program: Program
    step: CompiledStep
    summary: Summary | None = None
    time: Forecast | None = None
    findings: list[Finding] = field(default_factory=list)
    cached: bool = False
    refusal: str = ""

    @property
    def outcome(self) -> str:
        """What became of it, in a word or two."""
        if self.step.fits:
            outcome = "compiled"
        else:
            outcome = "does not fit" if self.step.memory.needed is not None else "refused"
        return f"{outcome} (from the cache)" if self.cached else outcome


def add_figures(compiled: Compiled, answer: dict[str, Any]) -> None:
    """Adds memory and cost from the compiler's answer to the step, and the bound and the time that follow."""
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
    rate = None
    if bound.seconds:  # a step that computes nothing takes no time
        per_second = bound.examples_per_second(compiled.program.per_core_batch)
        rate = Figure("examples a core, at most", per_second, "examples/s", Kind.DERIVED)
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
        examples_per_second=rate,
        all_reduce_bytes=Figure(
            "all-reduce a step", float(summary.collectives.total()), "B", Kind.COMPILER
        ),
    )
    compiled.step.on_chip = summary.on_chip
    _add_forecast(compiled)


def _add_forecast(compiled: Compiled) -> None:
    """Adds the estimated time of a step to its cost, where the compiler estimates cycles."""
    cost, partition = compiled.step.cost, compiled.program.partition
    time = forecast(compiled.summary, compiled.topology, partition and partition.mesh)
    if time is None:
        return
    compiled.time, compiled.step.exchanges = time, time.by_axis
    cost.cycles = Figure(
        "cycles of the schedule", compiled.summary.cycles, "cycles", Kind.ESTIMATED
    )
    cost.estimated_seconds = Figure("estimated time of a step", time.seconds, "s", Kind.ESTIMATED)
    if on_links := time.waiting + time.beside:
        cost.link_seconds = Figure("exchanges, on the links", on_links, "s", Kind.DERIVED)
    if time.exchanges:
        cost.exchange_seconds = Figure(
            "of the step, waiting for exchanges", time.exchanges, "s", Kind.DERIVED
        )
    rate = compiled.program.per_core_batch / time.seconds
    cost.estimated_rate = Figure("examples a core, estimated", rate, "examples/s", Kind.ESTIMATED)


def of_collectives(compiled: Compiled) -> list[Figure]:
    """Bytes a step of each kind of collective, where the cores share a step's arrays."""
    if compiled.program.partition is None or compiled.summary is None:
        return []
    sizes = sorted(compiled.summary.collectives.items())
    return [Figure(f"{kind}, a step", float(size), "B", Kind.COMPILER) for kind, size in sizes]


def by_line(
    costs: dict[tuple[Place, str], np.ndarray], place_of: Callable[[str], Place]
) -> list[LineCost]:
    """The ten lines with the most estimated cycles, then bytes; what has no line stands together.

    Args:
        costs: of a `Summary`, by line and op.
        place_of: the line behind an op of the framework, where the module itself names none.
    """
    sums: dict[Place, np.ndarray] = {}
    for (place, op), cost in costs.items():
        if not place and op:
            line = place_of(op).source_line
            place = line if line.file or line.text else NOWHERE
        sums[place] = sums.get(place, 0.0) + cost
    lines = [LineCost(place, *map(float, cost)) for place, cost in sums.items()]
    return sorted(lines, key=lambda line: (line.cycles, line.bytes), reverse=True)[:10]
