"""Stage 1: the genuine TPUEstimator graphs, and the rules on what TPUEstimator says of them."""

from lab_utils.dry_run.elsewhere import reason
from lab_utils.dry_run.records import Status
from lab_utils.dry_run.session import Session, Skip
from lab_utils.dry_run.unavailable import Unavailable
from lab_utils.dry_run.wording import at


def carry_out(session: Session) -> str:
    """Stage "trace"; returns its detail.

    Raises:
        Skip: the subject is not a TPUEstimator, which alone has graphs of several modes.
        Unavailable: this machine lacks what building the first graph takes.
    """
    traces = session.traces()
    if not traces:
        why = "the step of this program is traced when it is compiled"
        raise Skip(why, Status.UNNEEDED)
    session.apply_rules()
    for trace in traces:
        if trace.borrowed_input:
            session.not_checked.append(
                f"Mode {trace.mode} with an input_fn of its own: the dry run used the input_fn of "
                "training instead."
            )
        if trace.mode is session.mode and trace.error is not None and (why := reason(trace.error)):
            raise Unavailable(why + at(trace.error))
    modes = [trace.mode for trace in traces if trace.error is None]
    return f"graphs built for {', '.join(modes)}" if modes else "no graph could be built"
