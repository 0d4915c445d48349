"""What happened on virtual cores."""

from dataclasses import dataclass, field

from lab_utils.dry_run.records import Finding


@dataclass
class VirtualRun:
    """What happened.

    Attributes:
        steps: how many ran.
        losses: of each step, one for each core; empty where the step returns none.
        one_core_losses: of each step, of one core fed the whole global batch; empty where that was
            not run. Of the first alone, where cores take statistics of their own examples.
        drifted: trained variables (and their optimizer slots) that differ between cores.
        notes: what was seen and is not a fault.
        not_compared: what was not run or not compared, and why.
        cached: an earlier dry run ran the same program from the same values on the same batches.
    """

    steps: int = 0
    losses: list[list[float]] = field(default_factory=list)
    one_core_losses: list[float] = field(default_factory=list)
    drifted: list[str] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    not_compared: list[str] = field(default_factory=list)
    cached: bool = False
