"""Stage 2: the facts that can be known before a compilation, and the rules that need them."""

from lab_utils.dry_run.session import Session, Skip, unique

# Whose rules are registered by their import, for a program that has facts. They import TensorFlow.
MODULES = ("settings", "unsupported", "training", "randomness", "inputs")


def carry_out(session: Session) -> str:
    """Stage "read"; returns its detail. Raises Skip where no graph was built."""
    traces = session.traces()
    findings, not_checked = session.workload.read(traces, session.cores)
    session.not_checked += [sentence for trace in traces for sentence in trace.not_checked]
    session.not_checked += not_checked
    session.add(unique(findings + session.apply_rules("lab_utils.dry_run.read", MODULES)))
    if not traces:
        return "program of train, its ops and types"
    modes = [trace.mode for trace in traces if trace.error is None]
    if not modes and session.result.findings:
        return "the graph as far as it was built"
    if not modes:
        raise Skip("no program to read")
    return f"programs of {', '.join(modes)}"
