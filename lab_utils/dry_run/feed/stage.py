"""Stage 5: how fast the real input pipeline is on this machine, and whether that is fast enough.

What it delivers is measured (measure.py); what the TPU takes is an upper limit, from the roofline bound.
"""

from lab_utils.common.figures import Figure, Kind, rounded, scaled
from lab_utils.common.source import Place, place
from lab_utils.dry_run import rules
from lab_utils.dry_run.elsewhere import Elsewhere
from lab_utils.dry_run.feed.measure import NoBatches, measure
from lab_utils.dry_run.records import Cost, Feed, Finding
from lab_utils.dry_run.session import Session, Skip
from lab_utils.runtime import chips

# Below this step time the roofline says nothing about the required rate: what a step costs in addition to its
# FLOPs and HBM traffic (dispatch, infeed) is longer.
LEAST_STEP_SECONDS = 1e-3
# One busy core, as measured: the pipeline's threads and the loop that counts add a little.
_ONE_CORE = 1.3


class Unknown(Exception):
    """The required rate cannot be told; the message says why."""


def carry_out(session: Session) -> str:
    """Stage "feed"; returns its detail. Raises Skip where there is no input pipeline."""
    where = session.workload.feed_place
    with session.workload.feed(session.cores) as (pipeline, batch_size):
        if pipeline is None:
            raise Skip("an example batch was given, and no input pipeline")
        try:
            session.say("reading batches")
            feed, idle = measure(pipeline, seconds=session.feed_seconds, batch_size=batch_size)
        except NoBatches:
            session.found([rules.finding("TPU504", where)])
            return "no batch"
        except Elsewhere:
            raise
        except Exception as error:  # whatever the learner's pipeline raises is the result
            failed_at, name = place(error) or where, type(error).__name__
            session.found([rules.finding("TPU503", failed_at, message=str(error), error=name)])
            return "the input pipeline failed"
    session.feed = feed
    try:
        cost = session.train_step.cost if session.train_step else Cost()
        required = required_rate(cost, session.topology)
        session.found(compare(feed, idle, required, where))
    except Unknown as why:
        session.not_checked.append(f"Whether the input pipeline is fast enough: {why}")
    return f"measured for {scaled(session.feed_seconds, 's')}"


def required_rate(cost: Cost, topology: str) -> float:
    """Examples/s that the cores of one host of `topology` take at most, by `cost` of the compiled step.

    Raises:
        Unknown: the step was not compiled, or its bound is shorter than any step.
    """
    if cost.step_seconds is None:
        raise Unknown("the step was not compiled.")
    least = cost.step_seconds.value
    if least < LEAST_STEP_SECONDS:
        raise Unknown(
            f"the roofline bound of {scaled(least, 's')} is less than what any step costs "
            "in addition to its FLOPs and HBM traffic."
        )
    return cost.examples_per_second.value * chips.cores_per_host(topology)


def compare(feed: Feed, idle_cores: float, required: float, where: Place) -> list[Finding]:
    """Sets the measured rate against `required`, the most examples/s that the cores of one host take.

    `idle_cores` of this machine were left. The figures that follow go into `feed`. A slow pipeline is a
    warning only where it would be slow on any host, as it keeps to one core; else it says what this machine
    is, and is a note.
    """
    rate, used = feed.examples_per_second.value, feed.host_cores.value
    times = required / rate
    needed = used * times
    feed.required = Figure(
        "required rate of one host's cores, at most", required, "examples/s", Kind.DERIVED
    )
    feed.host_cores_needed = Figure(
        "host cores like these to deliver it", needed, "cores", Kind.DERIVED
    )
    if times <= 1:
        return []
    facts = {"rate": rounded(rate), "demand": rounded(required)}
    if used <= _ONE_CORE and idle_cores >= 0.5:
        facts |= {"used": rounded(used), "idle": rounded(idle_cores)}
        facts["machine"] = int(feed.machine_cores.value)
        return [rules.finding("TPU501", where, **facts)]
    facts |= {"times": rounded(times), "cores": f"{needed:,.0f}"}
    return [rules.finding("TPU502", where, **facts)]
