"""The sentences of a report, which every view of it shows."""

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import yaml

from lab_utils.common.figures import Kind, counted, kind_text, memory, rounded, scaled
from lab_utils.dry_run import rules
from lab_utils.dry_run.records import (
    LEAST_STEP_SECONDS,
    CompiledStep,
    Finding,
    Severity,
    StageResult,
    Status,
)
from lab_utils.dry_run.report.outcome import Outcome
from lab_utils.runtime import chips

_MARKS = {
    Status.DONE: "✓",
    Status.FAILED: "✗",
    Status.SKIPPED: "–",
    Status.UNNEEDED: "–",
}

_LINES_BASIS = (
    "These are the ten lines with the most estimated cycles, and their share of the time in which "
    "a core computes. If the compiler has fused ops, they count for the line of the last op. The "
    "compiler estimates no cycles for collectives and copies."
)
ESTIMATE_BASIS = (
    "An estimated time is the number of cycles in the schedule of the compiled program, divided "
    "by the clock rate (derived from the peak), plus the exchanges: their bytes divided by the "
    "published speed of the links, with at least a microsecond for each hop from chip to chip. "
    "Nothing was measured on a TPU, and waiting for input and for the host is not included."
)


def title(finding: Finding) -> str:
    """The title of a finding's rule."""
    return rules.rule(finding.rule).title


def stage_words(stage: StageResult) -> tuple[str, str, str]:
    """A mark, ✗ also for an error that was found; how long it took ("" if skipped), and what it says."""
    errors = any(finding.severity is Severity.ERROR for finding in stage.findings)
    number = counted(len(stage.findings), "finding") if stage.findings else ""
    took = scaled(stage.seconds, "s") if stage.status in (Status.DONE, Status.FAILED) else ""
    mark = _MARKS[Status.FAILED if errors else stage.status]
    return mark, took, "; ".join(part for part in (number, stage.detail) if part)


def ignored(report: Outcome) -> list[str]:
    """The findings that a person set aside."""
    return [f"{finding.rule} at {finding.where}" for finding in report.ignored]


@dataclass(frozen=True)
class LineShare:
    """What one line of a step takes, as reports show it.

    Attributes:
        share: of the cycles of the whole step, 0 to 1.
        where: the line; "no line" for what has none.
        costs: its time, HBM traffic and FLOPs, in words.
    """

    share: float
    where: str
    costs: str

    @property
    def percent(self) -> str:
        """The share in words."""
        return f"{self.share:.0%}" if self.share >= 0.01 else "<1%"


def line_shares(step: CompiledStep) -> list[LineShare]:
    """The most expensive lines of a step, each with its share of the time in which a core computes."""
    cost = step.cost
    cycles = cost.cycles.value if cost.cycles else 0.0
    seconds = cost.estimated_seconds.value if cost.estimated_seconds else 0.0
    if cost.exchange_seconds:
        seconds -= cost.exchange_seconds.value
    shares = []
    for line in step.lines:
        share = line.cycles / cycles if cycles else 0.0
        took = scaled(share * seconds, "s") if seconds else f"{line.cycles:,.0f} cycles"
        costs = f"{took}, {scaled(line.bytes, 'B')}, {scaled(line.flops, 'FLOP')}"
        shares.append(LineShare(share, str(line.place) or "no line", costs))
    return shares


def speed_sentences(step: CompiledStep, report: Outcome) -> list[str]:
    """What is known of one program's speed: its estimated time, its exchanges, the bound that none beats."""
    if step.cost.estimated_seconds is None:
        return [_bound_sentence(step, report.cores)]
    estimate = _estimate_sentence(step, report)
    return [
        text for text in (estimate, exchange_sentence(step), _bound_beside(step, report)) if text
    ]


def exchange_sentence(step: CompiledStep) -> str:
    """What the exchanges of a step take on the links, over which axes, and what of it the core waits for."""
    cost = step.cost
    if cost.link_seconds is None:
        return ""
    axes = "; ".join(str(axis) for axis in step.exchanges if axis.seconds)
    waits = f"{scaled(cost.exchange_seconds.value, 's')} of it" if cost.exchange_seconds else "none"
    return (
        f"Its exchanges take {scaled(cost.link_seconds.value, 's')} on the links: {axes}. The core "
        f"waits for {waits}, and computes during the rest of this time."
    )


def _estimate_sentence(step: CompiledStep, report: Outcome) -> str:
    """The estimated time of a step, what published programs say of such estimates, and the rate."""
    cost, seconds, cores = step.cost, step.cost.estimated_seconds.value, report.cores
    parts = f"{cost.cycles.value:,.0f} cycles of its schedule"
    if cost.exchange_seconds is not None:
        parts += f", and {scaled(cost.exchange_seconds.value, 's')} of waiting for other chips"
    low, high = times_of_estimates()
    return (
        f"The {step.name} takes about {scaled(seconds, 's')}, as the TPU compiler estimates it ({parts}). "
        f"Published programs took {low:.2f} to {high:.2f} times such an estimate"
        f"{_without_training(report.topology)}; here that is {scaled(seconds * low, 's')} to "
        f"{scaled(seconds * high, 's')}. {_estimated_rate(step, cores)}"
    )


def _estimated_rate(step: CompiledStep, cores: int) -> str:
    """Examples a second at the estimate; for a step shorter than what the host does, why there are none."""
    if step.cost.estimated_seconds.value < LEAST_STEP_SECONDS:
        return (
            "The work of the host for a step (dispatch, infeed) takes longer, so no rate in "
            "examples per second follows from this estimate."
        )
    return f"At this estimate, the rate is {_rates(step.cost.estimated_rate.value, step, cores)}."


def _without_training(topology: str) -> str:
    """A remark where no whole training on that chip is among the published programs."""
    if has_training(topology):
        return ""
    return f" (none of them a training on {chips.parse(topology)[0].name})"


def has_training(topology: str) -> bool:
    """Whether a training on this kind of chip is among the published programs with an estimated time."""
    chip = chips.parse(topology)[0].name
    estimated = (row for row in published() if hasattr(row, "of_estimate"))
    return any(row.chip == chip and row.kind != "matmul" for row in estimated)


# Where the estimate is so many times the bound, the bound tells nothing of the speed.
_FAR_APART = 3


def _bound_beside(step: CompiledStep, report: Outcome) -> str:
    """The bound beside an estimate: what it follows from, or why it says little."""
    bound = step.cost.roofline
    if bound is None:
        return ""
    if step.cost.estimated_seconds.value > _FAR_APART * bound.seconds:
        own = memory(chips.parse(report.topology)[0].own_memory)
        why = (
            f"arrays stay in the chip's own memory ({own} a core), so there is little HBM traffic"
            if step.on_chip
            else "most of its time goes to work that is neither matmuls nor HBM traffic"
        )
        return f"Its roofline bound says little: {why}."
    return f"It cannot take less than {scaled(bound.seconds, 's')}: {_roofline_parts(step)}."


def _bound_sentence(step: CompiledStep, cores: int) -> str:
    """The roofline bound of a program for which the compiler estimates no cycles."""
    bound, cost = step.cost.roofline, step.cost
    sentence = (
        f"The {step.name} takes at least {scaled(bound.seconds, 's')}, bound by {bound.bound_by}: "
        f"{_roofline_parts(step)}."
    )
    if cost.examples_per_second is not None:
        sentence += f" That is at most {_rates(cost.examples_per_second.value, step, cores)}."
    return sentence


def _rates(rate: float, step: CompiledStep, cores: int) -> str:
    """Examples/s of a core and of all cores; where the step uses fewer, that instead."""
    together = f"{rounded(rate * cores)} examples/s on {counted(cores, 'core')}"
    if step.cores not in (None, cores):
        together = f"and the step uses {step.cores} of the {counted(cores, 'core')}"
    return f"{rounded(rate)} examples/s a core, {together}"


def _roofline_parts(step: CompiledStep) -> str:
    """What a bound follows from, the longer part first."""
    bound = step.cost.roofline
    compute = (
        f"its {scaled(bound.flops, 'FLOP')} take {scaled(bound.compute_seconds, 's')} at "
        f"{scaled(bound.peak_flops, 'FLOP/s')}"
    )
    traffic = (
        f"its {scaled(bound.bytes, 'B')} of HBM traffic take {scaled(bound.memory_seconds, 's')} at "
        f"{scaled(bound.peak_bandwidth, 'B/s')}"
    )
    return ", ".join((compute, traffic) if bound.bound_by == "FLOPs" else (traffic, compute))


def bases(report: Outcome) -> list[tuple[str, str]]:
    """Where the figures of the steps come from, once for all of them: what, and from where."""
    rows = [
        ("estimated times", ESTIMATE_BASIS)
        for step in report.compiled
        if step.cost.estimated_seconds
    ]
    for step in report.compiled:
        if step.cost.roofline:
            peaks = kind_text(step.cost.peak_flops)
            rows.append(("bounds", f"FLOPs and bytes {step.cost.flops.kind}; peaks {peaks}."))
            rows.append(("published speeds", shares_sentence()))
    rows += [("lines", _LINES_BASIS) for step in report.compiled if step.lines]
    return list(dict.fromkeys(rows))


@cache
def published() -> tuple[SimpleNamespace, ...]:
    """How near real TPUs came to such bounds: the rows of published.yaml, which says what the fields mean."""
    rows = yaml.safe_load(Path(__file__).with_name("published.yaml").read_text(encoding="utf-8"))
    return tuple(SimpleNamespace(**row | {"read": str(row["read"])}) for row in rows)


def times_of_estimates() -> tuple[float, float]:
    """The least and the most times that a published program took of its estimated time."""
    times = [1 / row.of_estimate for row in published() if hasattr(row, "of_estimate")]
    return min(times), max(times)


def shares_sentence() -> str:
    """A sentence: what share of their bounds the published programs of each kind reached."""
    kinds: dict[str, list[float]] = {}
    for row in published():
        kinds.setdefault(row.kind, []).append(row.of_bound)
    ranges = ", ".join(f"{kind}: {_range(shares)}" for kind, shares in kinds.items())
    return (
        f"On real TPUs, programs reached these shares of such bounds: {ranges} (sources in "
        "tests/benchmarks/README.md). Your program was not measured."
    )


def _range(shares: list[float]) -> str:
    low, high = f"{min(shares):.0%}", f"{max(shares):.0%}"
    return low if low == high else f"{low.rstrip('%')} to {high}"


def memory_sentence(step: CompiledStep) -> str:
    """How much of a core's memory one program takes."""
    available = step.memory.available
    used = memory(step.memory.used)
    if available is None:
        return f"The {step.name} takes {used} of a core's memory."
    usable = memory(available.value)
    if step.memory.needed is not None:
        return f"The {step.name} needs {used} of a core's memory and may use {usable}: it does not fit."
    share = step.memory.used / available.value
    part = f"{share:.0%}" if share >= 0.01 else "under 1%"
    return f"The {step.name} takes {used} of the {usable} that a core lets a program use ({part})."


_AT_MOST = ("at most", "roofline bound")


def feed_sentence(report: Outcome) -> str:
    """How the input pipeline compares with the rate that the compiled step requires."""
    feed = report.feed
    rate = feed.examples_per_second.value
    sentence = (
        f"The input pipeline delivers {rounded(rate)} examples/s on this machine, "
        f"using about {feed.host_cores.value:.1f} of its {counted(int(feed.machine_cores.value), 'core')} "
        "(measured here)."
    )
    if feed.required is None:
        return sentence
    demand = feed.required.value
    by = ("about", "estimated time") if feed.required.kind is Kind.ESTIMATED else _AT_MOST
    sentence += (
        f" The cores of one host take {by[0]} {rounded(demand)} examples/s, according to the "
        f"{by[1]}"
    )
    if demand <= rate:
        return sentence + ": it is fast enough."
    return sentence + (
        f", {rounded(demand / rate)}x what this machine delivers; that would take about "
        f"{feed.host_cores_needed.value:,.0f} such CPU cores, assuming linear scaling."
    )


def subject_line(report: Outcome) -> str:
    """What was judged, as a program of what, for how many cores of which topology, and by which versions."""
    parts = [report.subject]
    if report.framework:
        on = f" on {report.backend}" if report.backend != report.framework else ""
        parts.append(f"{report.framework}{on}")
    parts += [
        _cores(report),
        ", ".join(f"{name} {version}" for name, version in report.versions.items()),
    ]
    return "; ".join(part for part in parts if part)


def _cores(report: Outcome) -> str:
    whole = f"{counted(report.cores, 'core')} of {report.topology}"
    if report.topology_is_chosen:
        whole += f" (chosen for {report.backend})"
    if report.backend and report.devices is None:
        return f"not lowered for the {whole}"
    return whole if report.devices in (None, report.cores) else f"{report.devices} of the {whole}"
