"""A dry run's report for a terminal: plain text, 100 columns, colour only when asked."""

import textwrap
from itertools import groupby

from lab_utils.dry_run import rules
from lab_utils.dry_run.records import Finding, Severity, StageResult
from lab_utils.dry_run.report.outcome import FINDINGS, MEMORY_PARTS, READY, CompiledStep, Report
from lab_utils.figures import Figure, figure_text, kind_text, memory, rounded, scaled

WIDTH = 100
_BAR = 60
_FILL = {"arguments": "█", "temporaries": "▓", "outputs": "▒", "code": "░"}
_COLOURS = {"red": 31, "green": 32, "yellow": 33, "blue": 34, "bold": 1}
_SEVERITY_COLOUR = {Severity.ERROR: "red", Severity.WARNING: "yellow", Severity.NOTE: "blue"}


def title(finding: Finding) -> str:
    """The title of a finding's rule; "" for a rule that this version does not know."""
    try:
        return rules.rule(finding.rule).title
    except KeyError:
        return ""


def speed_sentence(step: CompiledStep, cores: int) -> str:
    """What the roofline says of one program: the least time of a step, and what it follows from."""
    flops, size = step.cost["flops"].value, step.cost["bytes"].value
    peak, bandwidth = step.cost["peak_flops"].value, step.cost["peak_bandwidth"].value
    arithmetic = (
        f"its {scaled(flops, 'FLOP')} take {scaled(step.arithmetic_seconds, 's')} at "
        f"{scaled(peak, 'FLOP/s')}"
    )
    traffic = (
        f"its {scaled(size, 'B')} of memory traffic take {scaled(step.memory_seconds, 's')} at "
        f"{scaled(bandwidth, 'B/s')}"
    )
    first, second = (traffic, arithmetic) if step.bound_by == "memory" else (arithmetic, traffic)
    least = max(step.arithmetic_seconds, step.memory_seconds)
    sentence = (
        f"The {step.name} takes at least {scaled(least, 's')}, bound by {step.bound_by}: "
        f"{first}, {second}."
    )
    if "examples_per_second" in step.cost:
        rate = step.cost["examples_per_second"].value
        sentence += (
            f" That is at most {rounded(rate)} examples/s a core, "
            f"{rounded(rate * cores)} examples/s on {cores} cores."
        )
    return sentence


def speed_basis(step: CompiledStep) -> str:
    """Where the figures of `speed_sentence` come from."""
    return (
        f"FLOP and bytes {step.cost['flops'].kind}; peaks {kind_text(step.cost['peak_flops'])}. "
        "A bound, not a measurement."
    )


def memory_sentence(step: CompiledStep) -> str:
    """How much of a core's memory one program takes."""
    available = step.memory.get("available")
    used = memory(step.used)
    if available is None:
        return f"The {step.name} takes {used} of a core's memory."
    usable = memory(available.value)
    if not step.fits:
        return f"The {step.name} needs {used} of a core's memory and may use {usable}: it does not fit."
    share = step.used / available.value
    part = f"{share:.0%}" if share >= 0.01 else "under 1%"
    return f"The {step.name} takes {used} of the {usable} that a core lets a program use ({part})."


def feed_sentence(report: Report) -> str:
    """How the input pipeline stands to the demand of the compiled step."""
    rate = report.feed["examples_per_second"].value
    cores_used = report.feed["host_cores"].value
    sentence = (
        f"The input pipeline gives {rounded(rate)} examples/s on this machine, "
        f"using {rounded(cores_used)} of its cores (measured here)."
    )
    if "demand" not in report.feed:
        return sentence
    demand = report.feed["demand"].value
    most = rounded(demand)
    sentence += f" The cores of one host take at most {most} examples/s, by the roofline bound"
    if demand <= rate:
        return sentence + ": it is fast enough."
    return sentence + (
        f", {rounded(demand / rate)} times as many: the work of about "
        f"{report.feed['host_cores_needed'].value:,.0f} host cores like these, if it spreads evenly."
    )


def render(report: Report, colour: bool = False) -> str:
    """The whole report as text of at most 100 columns; `colour` adds terminal colours."""

    def paint(text: str, name: str) -> str:
        return f"\x1b[{_COLOURS[name]}m{text}\x1b[0m" if colour else text

    verdict_colour = {READY: "green", FINDINGS: "red"}.get(report.verdict, "yellow")
    blocks = [
        [
            paint(line, verdict_colour if index == 0 else "bold")
            for index, line in enumerate(_wrapped(report.verdict_sentence))
        ]
        + _wrapped(subject_line(report)),
        [line for stage in report.stages for line in _stage_lines(stage)],
    ]
    for stage, groups in groupby(report.grouped_findings(), key=lambda group: group[0].stage):
        for index, group in enumerate(groups):
            heading = [paint(str(stage).upper(), "bold")] if index == 0 else []
            blocks.append(heading + _finding_lines(group, paint))
    for step in report.compiled:
        lines = _memory_lines(step) if step.used is not None else []
        if step.has_roofline:
            lines += _wrapped(speed_sentence(step, report.cores)) + _wrapped(speed_basis(step))
        if lines:
            blocks.append([paint(step.name.upper(), "bold"), *lines])
    if "examples_per_second" in report.feed:
        blocks.append([paint("INPUT PIPELINE", "bold"), *_wrapped(feed_sentence(report))])
    if rows := report.figures():
        blocks.append([paint("FIGURES", "bold"), *_table(rows)])
    blocks.append(
        [paint("NOT CHECKED", "bold")]
        + [line for item in report.not_checked for line in _wrapped(item, "- ", "  ")]
    )
    return "\n\n".join("\n".join(block) for block in blocks if block)


def subject_line(report: Report) -> str:
    """What was judged, for how many cores of which topology, and by which versions."""
    versions = ", ".join(f"{name} {version}" for name, version in report.versions.items())
    return f"{report.subject}; {report.cores} cores of {report.topology}" + (
        f"; {versions}" if versions else ""
    )


def _wrapped(text: str, first: str = "", then: str = "") -> list[str]:
    """`text` in lines of at most 100 columns, its own line breaks and indents kept."""
    lines = []
    for number, line in enumerate(text.splitlines() or [""]):
        indent = len(line) - len(line.lstrip())
        lines += textwrap.wrap(
            line.strip(),
            WIDTH,
            initial_indent=(first if number == 0 else then) + " " * indent,
            subsequent_indent=then + " " * indent,
            break_on_hyphens=False,
        )
    return lines


def _stage_lines(stage: StageResult) -> list[str]:
    mark = {"done": "✓", "failed": "✗", "skipped": "–"}.get(stage.status, "?")
    count = len(stage.findings)
    found = f"{count} finding{'s' if count > 1 else ''}" if count else ""
    took = scaled(stage.seconds, "s") if stage.status != "skipped" else ""
    head = f"{mark} {stage.stage:<8}{stage.status:<8} {took:>8}  "
    said = "; ".join(part for part in (found, stage.detail) if part)
    return _wrapped(said, head, " " * len(head)) or [head.rstrip()]


def _finding_lines(group: list[Finding], paint) -> list[str]:
    """One rule's findings: each place with its message, then what they share."""
    finding = group[0]
    name = f"{str(finding.severity).upper()} {finding.rule}"
    first, *rest = _wrapped(title(finding), f"  {name}  ", "  ") or [f"  {name}"]
    lines = [first.replace(name, paint(name, _SEVERITY_COLOUR[finding.severity]), 1), *rest]
    parts = [
        part for found in group for part in (("where", found.where), ("message", found.message))
    ]
    parts += [("why", finding.why), ("fix", finding.fix), ("lab", finding.lab)]
    parts.append(("page", f"python -m lab_utils.dry_run --rule {finding.rule}"))
    for label, said in parts:
        if said:
            lines += _wrapped(said, f"    {label:<9}", " " * 13)
    return lines


def _memory_lines(step: CompiledStep) -> list[str]:
    """A bar of the memory by part; a core's end is marked, and what does not fit stands beyond it."""
    lines = _wrapped(memory_sentence(step))
    parts = {part: step.memory[part].value for part in MEMORY_PARTS if part in step.memory}
    if not parts or "available" not in step.memory:
        return lines
    limit = step.memory["available"].value
    per_cell = max(limit, step.used) / _BAR
    cells, end, filled = "", 0.0, 0
    for part, size in parts.items():
        end += size
        upto = min(_BAR, max(round(end / per_cell), filled + (size > 0)))
        cells += _FILL[part] * (upto - filled)
        filled = upto
    cells = cells.ljust(_BAR, "·")
    mark = round(limit / per_cell)
    end = f" {memory(limit)} usable" if step.fits else f" ] usable: {memory(limit)}"
    lines.append(f"  [{cells[:mark]}]{cells[mark:]}{end}")
    legend = "   ".join(f"{_FILL[part]} {part} {memory(size)}" for part, size in parts.items())
    return lines + _wrapped(legend, "  ", "  ")


def _table(rows: list[tuple[str, Figure]]) -> list[str]:
    """Figures in columns (group, name, value, kind); the kinds' long sources are footnotes."""
    notes: dict[str, int] = {}
    cells = []
    for group, figure in rows:
        kind = str(figure.kind)
        if figure.source:
            kind += f" [{notes.setdefault(figure.source, len(notes) + 1)}]"
        cells.append((group, figure.name, figure_text(figure), kind))
    widths = [max(len(row[column]) for row in cells) for column in range(3)]
    widths[1] = min(
        widths[1], WIDTH - 6 - widths[0] - widths[2] - max(len(row[3]) for row in cells)
    )
    lines, previous = [], None
    for group, name, value, kind in cells:
        shown = group if group != previous else ""
        first, *rest = textwrap.wrap(name, max(widths[1], 12)) or [""]
        lines.append(f"{shown:<{widths[0]}}  {first:<{widths[1]}}  {value:>{widths[2]}}  {kind}")
        lines += [" " * (widths[0] + 2) + line for line in rest]
        previous = group
    for source, number in notes.items():
        lines += _wrapped(source, f"[{number}] ", "    ")
    return lines
