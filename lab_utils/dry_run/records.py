"""What a dry run says: findings, figures, and what became of each stage. Plain data, no TensorFlow."""

from dataclasses import dataclass, field
from enum import StrEnum

from lab_utils.figures import Figure


class Stage(StrEnum):
    """The stages of a dry run, in their order."""

    TRACE = "trace"
    READ = "read"
    COMPILE = "compile"
    RUN = "run"
    FEED = "feed"


class Severity(StrEnum):
    """How much a finding matters: an error stops the port on a TPU or makes its results wrong."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


@dataclass(frozen=True)
class Finding:
    """One thing to mend in a port.

    `rule` is a stable id (`TPU101`) with a page of its own. `where` names the learner's own place:
    a file or notebook cell with its line, and the op, tensor or variable. `message` is the text
    that TensorFlow or the compiler gave, or would have given on a TPU ("" where there is none: the
    silent faults).
    """

    rule: str
    stage: Stage
    severity: Severity
    where: str
    why: str
    fix: str
    lab: str
    message: str = ""


@dataclass
class StageResult:
    """What one stage did: `status` is "done", "failed" or "skipped"; `detail` says why, or sums up."""

    stage: Stage
    status: str
    detail: str = ""
    seconds: float = 0.0
    findings: list[Finding] = field(default_factory=list)
    figures: list[Figure] = field(default_factory=list)
