"""Stage 2: the facts that can be known before a compilation, and the rules that need them."""

from lab_utils.dry_run.session import Session, Skip


def carry_out(session: Session) -> str:
    """Stage "read"; returns its detail.

    Raises:
        Skip: no graph was built.
        CannotLower: the step of the first mode cannot be built.
    """
    session.apply_rules()
    for facts in session.facts():
        session.not_checked += facts.not_read()
    refusals = [facts.refused for facts in session.facts() if facts.refused]
    if refusals:
        raise refusals[0]
    traces = session.traces()
    if not traces:
        return "program of train, its ops and types"
    modes = [trace.mode for trace in traces if trace.error is None]
    if not modes and session.result.findings:
        return "the graph as far as it was built"
    if not modes:
        raise Skip("no program to read")
    return f"programs of {', '.join(modes)}"
