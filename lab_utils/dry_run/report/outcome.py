"""The outcome of a dry run as data: verdict, findings, figures, and what was not checked."""

import json
import math
from dataclasses import asdict, dataclass, field
from pathlib import Path

from lab_utils.dry_run.records import Finding, Severity, Stage, StageResult
from lab_utils.figures import Figure, Kind

FORMAT = 1

READY, FINDINGS, COULD_NOT_RUN = "ready", "findings", "could not run"
EXIT_STATUS = {READY: 0, FINDINGS: 1, COULD_NOT_RUN: 2}

# Parts of a core's memory, in the order in which reports show them.
MEMORY_PARTS = ("arguments", "temporaries", "outputs", "code")

NEVER_CHECKED = (
    "Real speed: no TPU was used. The roofline is a bound that a step cannot beat, not a measurement.",
    "Numerics on a TPU: the matrix unit rounds float32 operands to bfloat16; the virtual cores here do not.",
    "The infeed and outfeed of a TPU host, host_call and outside compilation at work.",
    "Input on several hosts, each reading its own share of the files.",
    "Checkpoints, buckets, permissions, quota and the network.",
)


@dataclass
class CompiledStep:
    """What the TPU compiler said of one program (`name`: "train step"), as one core runs it.

    `memory`: bytes by part (MEMORY_PARTS), with "available" for what the compiler lets a program use,
    and "needed" where it did not fit.
    `cost`: "flops", "bytes", "peak_flops", "peak_bandwidth", "step_seconds" (the roofline bound),
    "examples_per_second" (a core's, at that bound), "bf16_share", "all_reduce_bytes"; each where known.
    """

    name: str
    memory: dict[str, Figure] = field(default_factory=dict)
    cost: dict[str, Figure] = field(default_factory=dict)

    @property
    def used(self) -> float | None:
        """Bytes that the program needs of a core's memory; None where the compiler did not say."""
        if "needed" in self.memory:
            return self.memory["needed"].value
        parts = [self.memory[part].value for part in MEMORY_PARTS if part in self.memory]
        return sum(parts) if parts else None

    @property
    def fits(self) -> bool:
        """False where the compiler ran out of a core's memory."""
        return "needed" not in self.memory

    @property
    def has_roofline(self) -> bool:
        """Whether the figures that a roofline needs are all there."""
        return all(
            name in self.cost and self.cost[name].value > 0
            for name in ("flops", "bytes", "peak_flops", "peak_bandwidth")
        )

    @property
    def arithmetic_seconds(self) -> float:
        """Seconds that the step's FLOP take at the published peak."""
        return self.cost["flops"].value / self.cost["peak_flops"].value

    @property
    def memory_seconds(self) -> float:
        """Seconds that the step's bytes take at the published bandwidth."""
        return self.cost["bytes"].value / self.cost["peak_bandwidth"].value

    @property
    def bound_by(self) -> str:
        """Which of the two bounds the step: "memory" or "arithmetic"."""
        return "memory" if self.memory_seconds >= self.arithmetic_seconds else "arithmetic"


@dataclass(repr=False)
class Report:
    """The outcome of a dry run; shows itself in a terminal (`print`) and in a notebook.

    `subject` says what was judged; `versions` holds the versions that took part. `feed` holds the input
    pipeline's figures: "examples_per_second", "bytes_per_second" and "host_cores" measured here,
    "demand" (examples/s that the cores of one host take at most), and what follows from the two.
    """

    subject: str
    topology: str
    cores: int
    stages: list[StageResult] = field(default_factory=list)
    compiled: list[CompiledStep] = field(default_factory=list)
    feed: dict[str, Figure] = field(default_factory=dict)
    not_checked: list[str] = field(default_factory=list)
    versions: dict[str, str] = field(default_factory=dict)

    @property
    def findings(self) -> list[Finding]:
        """Every finding, in the order of the stages, the gravest first within each."""
        order = list(Severity)
        return [
            finding
            for stage in self.stages
            for finding in sorted(stage.findings, key=lambda found: order.index(found.severity))
        ]

    def grouped_findings(self) -> list[list[Finding]]:
        """The findings, those of one rule together that differ in place and message alone."""
        groups: dict[tuple, list[Finding]] = {}
        for finding in self.findings:
            same = (finding.stage, finding.rule, finding.severity, finding.why, finding.fix)
            groups.setdefault(same, []).append(finding)
        return list(groups.values())

    @property
    def verdict(self) -> str:
        """ "findings" where any error or warning stands; else "could not run" where a stage failed
        or none ran; else "ready". Notes never change it."""
        if any(finding.severity is not Severity.NOTE for finding in self.findings):
            return FINDINGS
        statuses = {stage.status for stage in self.stages}
        return READY if "done" in statuses and "failed" not in statuses else COULD_NOT_RUN

    @property
    def exit_status(self) -> int:
        """0 ready, 1 findings, 2 could not run."""
        return EXIT_STATUS[self.verdict]

    @property
    def verdict_sentence(self) -> str:
        """The verdict in a sentence, with what limits it."""
        count = {severity: 0 for severity in Severity}
        for finding in self.findings:
            count[finding.severity] += 1
        tally = ", ".join(
            f"{number} {severity}{'s' if number > 1 else ''}"
            for severity, number in count.items()
            if number
        )
        missing = [stage.stage for stage in self.stages if stage.status != "done"]
        limits = f" Not checked: {', '.join(missing)}." if missing else ""
        if self.verdict == FINDINGS:
            return f"Not ready for {self.topology}: {tally}.{limits}"
        if self.verdict == COULD_NOT_RUN:
            failed = ", ".join(stage.stage for stage in self.stages if stage.status == "failed")
            return (
                f"No verdict: {failed} failed.{limits}"
                if failed
                else "No verdict: no stage was carried out."
            )
        notes = f" ({tally})" if tally else ""
        if missing:
            return f"Ready for {self.topology}, as far as was checked{notes}.{limits}"
        return f"Ready for {self.topology}{notes}."

    @property
    def memory(self) -> dict[str, Figure]:
        """Memory of a core for the first compiled program, the train step: bytes by part."""
        return self.compiled[0].memory if self.compiled else {}

    @property
    def cost(self) -> dict[str, Figure]:
        """FLOP, bytes and bounds of the first compiled program, the train step."""
        return self.compiled[0].cost if self.compiled else {}

    def figures(self) -> list[tuple[str, Figure]]:
        """Every figure with the group that it belongs to ("train step", "feed", a stage's name)."""
        rows = [
            (step.name, figure)
            for step in self.compiled
            for figure in (*step.memory.values(), *step.cost.values())
        ]
        rows += [("feed", figure) for figure in self.feed.values()]
        rows += [(str(stage.stage), figure) for stage in self.stages for figure in stage.figures]
        return rows

    def to_json(self) -> str:
        """The report as JSON text; `format` grows when a reader of the old one would misread it."""
        content = {
            "format": FORMAT,
            "verdict": self.verdict,
            "exit_status": self.exit_status,
            **asdict(self),
        }
        return json.dumps(_without_nan(content), indent=2, ensure_ascii=False, allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> "Report":
        """The report that `to_json` wrote.

        Raises:
            ValueError: for text that is not such a report, or of a format that this version cannot read.
        """
        try:
            content = json.loads(text)
            if content["format"] != FORMAT:
                raise ValueError(
                    f"this report has format {content['format']}; this version of lab_utils reads {FORMAT}. "
                    "Read it with the version that wrote it, or make the report anew."
                )
            return cls(
                subject=content["subject"],
                topology=content["topology"],
                cores=content["cores"],
                stages=[_stage_result(stage) for stage in content["stages"]],
                compiled=[
                    CompiledStep(
                        step["name"], _figures_by_key(step["memory"]), _figures_by_key(step["cost"])
                    )
                    for step in content["compiled"]
                ],
                feed=_figures_by_key(content["feed"]),
                not_checked=content["not_checked"],
                versions=content["versions"],
            )
        except (KeyError, TypeError, json.JSONDecodeError) as error:
            raise ValueError(f"not a dry-run report: {type(error).__name__} {error}") from error

    def write_html(self, path: str | Path) -> None:
        """Writes the report as one HTML page that needs nothing else."""
        from lab_utils.dry_run.report import html

        Path(path).write_text(html.page(self), encoding="utf-8")

    def __repr__(self) -> str:
        return f"<Report on {self.subject}: {self.verdict_sentence}>"

    def __str__(self) -> str:
        from lab_utils.dry_run.report import terminal as text

        return text.render(self)

    def _repr_html_(self) -> str:
        from lab_utils.dry_run.report import html

        return html.fragment(self)


def _without_nan(value: object) -> object:
    """`value` with every number that JSON lacks (nan, inf) as text; `float` reads it back."""
    if isinstance(value, dict):
        return {key: _without_nan(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_without_nan(item) for item in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def _figure(content: dict) -> Figure:
    return Figure(**content | {"kind": Kind(content["kind"]), "value": float(content["value"])})


def _figures_by_key(content: dict) -> dict[str, Figure]:
    return {key: _figure(figure) for key, figure in content.items()}


def _finding(content: dict) -> Finding:
    return Finding(
        **content | {"stage": Stage(content["stage"]), "severity": Severity(content["severity"])}
    )


def _stage_result(content: dict) -> StageResult:
    return StageResult(
        **content
        | {
            "stage": Stage(content["stage"]),
            "findings": [_finding(finding) for finding in content["findings"]],
            "figures": [_figure(figure) for figure in content["figures"]],
        }
    )
