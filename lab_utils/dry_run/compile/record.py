"""What the TPU compiler made of one program, with what it follows from."""

from dataclasses import dataclass, field

from lab_utils.common.figures import Figure
from lab_utils.dry_run.compile.hlo.summary import Summary
from lab_utils.dry_run.program import Program
from lab_utils.dry_run.records import CompiledStep, Finding, Span
from lab_utils.runtime.chips import Chip


@dataclass
class Compiled:
    """A program and what the TPU compiler says of it.

    Attributes:
        step: memory and cost, as the report shows them.
        summary: what the optimised program holds; None where there is none.
        figures: what else it tells, such as the bytes of each kind of collective.
        spans: the instructions that cost anything, with the learner's lines.
        cached: taken from an earlier dry run.
    """

    topology: str
    chip: Chip
    program: Program
    step: CompiledStep
    summary: Summary | None = None
    findings: list[Finding] = field(default_factory=list)
    figures: list[Figure] = field(default_factory=list)
    spans: list[Span] = field(default_factory=list)
    cached: bool = False

    @property
    def outcome(self) -> str:
        """What became of it, in a word or two."""
        if self.step.fits:
            outcome = "compiled"
        else:
            outcome = "does not fit" if self.step.memory.needed is not None else "refused"
        return f"{outcome} (from the cache)" if self.cached else outcome
