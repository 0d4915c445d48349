"""Stage 2: the facts that can be known before a compilation, and the rules that need them."""

from lab_utils.dry_run.ops import of_gradient
from lab_utils.dry_run.records import Finding
from lab_utils.dry_run.session import Session, Skip

# Whose rules are registered by their import, for a program that has facts. They import TensorFlow.
MODULES = ("settings", "unsupported", "training", "randomness", "inputs")


def carry_out(session: Session) -> str:
    """Stage "read"; returns its detail. Raises Skip where no graph was built."""
    traces = session.traces()
    findings, not_checked = session.workload.read(traces, session.cores)
    session.not_checked += [sentence for trace in traces for sentence in trace.not_checked]
    session.not_checked += not_checked
    session.add(_once(findings + session.apply_rules("lab_utils.dry_run.read", MODULES)))
    if not traces:
        return "program of train, its ops and types"
    modes = [trace.mode for trace in traces if trace.error is None]
    if not modes and session.result.findings:
        return "the graph as far as it was built"
    if not modes:
        raise Skip("no program to read")
    return f"programs of {', '.join(modes)}"


# What goes on from the line that begins it: all that is computed with the result.
_GOES_ON = ("TPU205", "TPU208")


def _once(findings: list[Finding]) -> list[Finding]:
    """The findings, each line and rule once, without what only goes on from another line."""
    causes = [item for item in findings if item.place.op and not _goes_on(item)]
    unique: dict[tuple, Finding] = {}
    for item in findings:
        if not _goes_on(item) or not any(_leads_to(first, item) for first in causes):
            if not item.place.file and item.rule in _GOES_ON:
                causes.append(item)  # no line is known of any
            line = (item.place.file, item.place.line) if item.place.file else item.place
            unique.setdefault((item.rule, line), item)
    return list(unique.values())


def _goes_on(item: Finding) -> bool:
    return bool(of_gradient(item.place.op)) or not item.place.file


def _leads_to(first: Finding, item: Finding) -> bool:
    """Whether a finding of an op only follows from another's: its gradient, or its type further on."""
    if first.rule != item.rule:
        return False
    return item.rule in _GOES_ON or of_gradient(item.place.op).startswith(first.place.op)
