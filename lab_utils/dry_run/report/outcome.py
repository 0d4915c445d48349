"""The outcome of a dry run as data: verdict, findings, figures, and what was not checked."""

import json
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field

from lab_utils.common.figures import Figure, counted
from lab_utils.dry_run.records import (
    CompiledStep,
    Cost,
    Feed,
    Finding,
    Memory,
    Numerics,
    Severity,
    StageResult,
    Status,
)

FORMAT = 2

READY, FINDINGS, COULD_NOT_RUN = "ready", "findings", "could not run"
EXIT_STATUS = {READY: 0, FINDINGS: 1, COULD_NOT_RUN: 2}

_SPEED = (
    "Real speed: no TPU was used. Times are estimated from the compiler's schedule, and bounds "
    "follow from counted FLOPs and bytes."
)
_NUMERICS = (
    "Numerics on a TPU: the matrix unit rounds float32 operands to bfloat16, but the virtual "
    "cores here do not. With numerics=True (--numerics), the dry run also runs the steps with "
    "this rounding."
)
_NUMERICS_LEFT = (
    "Numerics on a TPU beyond matmuls and convolutions: its log, exp and division, and the order "
    "of its sums, give different last digits."
)
_INFEED = "Infeed, outfeed and outside compilation as they behave on a real TPU host."
_NEVER_CHECKED = (
    "Input on several hosts, each reading its own share of the files.",
    "Checkpoints, buckets, permissions, quota and the network.",
)


def never_checked(numerics: Numerics | None = None, *, of_jax: bool = False) -> list[str]:
    """What a dry run does not check, with `numerics` or without; programs of JAX have no infeed."""
    infeed = [] if of_jax else [_INFEED]
    return [_SPEED, _NUMERICS_LEFT if numerics else _NUMERICS, *infeed, *_NEVER_CHECKED]


@dataclass(repr=False)
class Outcome:
    """The outcome of a dry run.

    `ignored` holds the findings that a person set aside (`set_aside`): they count for nothing.
    `not_judged` names steps that could not be judged, and models that the program trains or evaluates
    besides: the verdict is never ready then. `not_covered` names what the program trains after the judged
    part, which limits what ready means.
    `subject` says what was judged, `framework` what it is written with, `backend` what computes it, and
    `devices` how many cores take part (None: not known); `versions` holds the versions that took part.
    `topology_is_chosen` says that nobody named the topology: it is the default of the backend.
    `numerics` is there where the steps were also run with a TPU's matmuls.
    """

    subject: str
    topology: str
    cores: int
    stages: list[StageResult] = field(default_factory=list)
    compiled: list[CompiledStep] = field(default_factory=list)
    feed: Feed = field(default_factory=Feed)
    not_checked: list[str] = field(default_factory=list)
    versions: dict[str, str] = field(default_factory=dict)
    ignored: list[Finding] = field(default_factory=list)
    not_judged: list[str] = field(default_factory=list)
    not_covered: list[str] = field(default_factory=list)
    framework: str = ""
    backend: str = ""
    devices: int | None = None
    numerics: Numerics | None = None
    topology_is_chosen: bool = False

    @property
    def ready(self) -> bool:
        """Whether the verdict is "ready": for `assert dry_run(...).ready`."""
        return self.verdict == READY

    @property
    def findings(self) -> list[Finding]:
        """Every finding, in the order of the stages, the gravest first within each."""
        order = list(Severity)
        return [
            finding
            for stage in self.stages
            for finding in sorted(stage.findings, key=lambda item: order.index(item.severity))
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
        """ "findings" where any error or warning stands; else "could not run" where a stage failed,
        none ran or a step or a model was not judged; else "ready". Notes never change it."""
        if any(finding.severity is not Severity.NOTE for finding in self.findings):
            return FINDINGS
        statuses = {stage.status for stage in self.stages}
        ready = Status.DONE in statuses and Status.FAILED not in statuses and not self.not_judged
        return READY if ready else COULD_NOT_RUN

    @property
    def exit_status(self) -> int:
        """0 ready, 1 findings, 2 could not run."""
        return EXIT_STATUS[self.verdict]

    @property
    def verdict_sentence(self) -> str:
        """The verdict in a sentence, with what limits it."""
        count = Counter(finding.severity for finding in self.findings)
        parts = [counted(count[severity], severity) for severity in Severity if count[severity]]
        if self.ignored:
            parts.append(f"{len(self.ignored)} ignored")
        missing = [
            stage.stage for stage in self.stages if stage.status in (Status.SKIPPED, Status.FAILED)
        ]
        limits = f" Not checked: {', '.join(missing)}." if missing else ""
        if self.not_judged:
            limits += f" Not judged: {'; '.join(self.not_judged)}."
        if self.not_covered:
            limits += f" Only the first training was judged, not {', '.join(self.not_covered)}."
        if self.verdict == FINDINGS:
            return f"Not ready for {self.topology}: {', '.join(parts)}.{limits}"
        if self.verdict == COULD_NOT_RUN:
            failed = [result.stage for result in self.stages if result.status is Status.FAILED]
            if failed:
                return f"No verdict: {', '.join(failed)} failed.{limits}"
            if self.not_judged:
                return f"No verdict: nothing was found in what was judged.{limits}"
            return "No verdict: no stage was carried out."
        limit = ", as far as was checked" if missing or self.not_covered else ""
        notes = f" ({', '.join(parts)})" if parts else ""
        return f"Ready for {self.topology}{limit}{notes}.{limits}"

    def set_aside(self, ignore: Sequence[str] = ()) -> None:
        """Moves the findings of rules that `ignore` names from the stages to `ignored`."""
        for stage in self.stages:
            for finding in list(stage.findings):
                if finding.rule.startswith(tuple(ignore)):
                    stage.findings.remove(finding)
                    self.ignored.append(finding)

    @property
    def memory(self) -> Memory:
        """Memory of a core for the first compiled program, the train step: bytes by part."""
        return self.compiled[0].memory if self.compiled else Memory()

    @property
    def cost(self) -> Cost:
        """FLOP, bytes and bounds of the first compiled program, the train step."""
        return self.compiled[0].cost if self.compiled else Cost()

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
        findings = [finding for stage in self.stages for finding in stage.findings] + self.ignored
        entries = [entry for stage in content["stages"] for entry in stage["findings"]]
        for finding, entry in zip(findings, entries + content["ignored"], strict=True):
            entry["where"] = finding.where
        return json.dumps(_plain(content), indent=2, ensure_ascii=False, allow_nan=False)


def _plain(value: object) -> object:
    """`value` without unknown figures, and with every number that JSON lacks (nan, inf) as text."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value
