"""Stage 5: how fast the real input pipeline is on this machine, and whether that is fast enough."""

from lab_utils.common.figures import counted
from lab_utils.common.source import place
from lab_utils.dry_run import rules
from lab_utils.dry_run.elsewhere import Elsewhere
from lab_utils.dry_run.feed import required
from lab_utils.dry_run.feed.measure import NoBatches, measure
from lab_utils.dry_run.records import Cost
from lab_utils.dry_run.session import Session, Skip


def carry_out(session: Session) -> str:
    """Stage "feed"; returns its detail. Raises Skip where there is no input pipeline."""
    where = session.workload.feed_place
    with session.workload.feed(session.cores) as (pipeline, batch_size):
        if pipeline is None:
            raise Skip("an example batch was given, and no input pipeline")
        try:
            session.say("reading batches")
            rate = measure(pipeline, seconds=session.feed_seconds, batch_size=batch_size)
        except NoBatches:
            session.found([rules.finding("TPU504", where)])
            return "no batch"
        except Elsewhere:
            raise
        except Exception as error:  # whatever the learner's pipeline raises is the result
            found = rules.finding(
                "TPU503", place(error) or where, message=str(error), error=type(error).__name__
            )
            session.found([found])
            return "the input pipeline failed"
    session.feed = rate.figures()
    try:
        cost = session.train_step.cost if session.train_step else Cost()
        wanted = required.of_host(cost, session.topology)
        session.found(required.compare(rate, session.feed, wanted, where))
    except required.Unknown as why:
        session.not_checked.append(f"Whether the input pipeline is fast enough: {why}")
    batches = rate.batches_in_pass
    return (
        "the data did not end" if batches is None else f"{counted(batches, 'batch')} in the dataset"
    )
