"""The rate that the input pipeline delivers here, against the rate that the compiled step requires.

What it delivers is measured (measure.py); what the TPU takes is an upper limit, from the roofline bound.
"""

from lab_utils.common.figures import Figure, Kind, rounded, scaled
from lab_utils.common.source import Place
from lab_utils.dry_run import rules
from lab_utils.dry_run.feed.measure import FeedRate
from lab_utils.dry_run.records import Cost, Feed, Finding
from lab_utils.runtime import chips

# Below this step time the roofline says nothing about the required rate: what a step costs beside its
# FLOPs and HBM traffic (dispatch, infeed) is longer.
LEAST_STEP_SECONDS = 1e-3
# One busy core, as measured: the pipeline's threads and the loop that counts add a little.
_ONE_CORE = 1.3


class Unknown(Exception):
    """The required rate cannot be told; the message says why."""


def of_host(cost: Cost, topology: str) -> float:
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
            "beside its FLOPs and HBM traffic."
        )
    return cost.examples_per_second.value * chips.cores_per_host(topology)


def compare(rate: FeedRate, feed: Feed, required: float, where: Place) -> list[Finding]:
    """Sets the measured rate against `required`, the most examples/s that the cores of one host take.

    The figures that follow go into `feed`. A slow pipeline is a warning only where it would be slow on any
    host, as it keeps to one core; else it says what this machine is, and is a note.
    """
    given = rate.examples_per_second
    times = required / given
    needed = rate.host_cores * times
    feed.required = Figure(
        "required rate of one host's cores, at most", required, "examples/s", Kind.DERIVED
    )
    feed.times_too_slow = Figure(
        "required rate over what is delivered here", times, "times", Kind.DERIVED
    )
    feed.host_cores_needed = Figure(
        "host cores like these to deliver it", needed, "cores", Kind.DERIVED
    )
    if times <= 1:
        return []
    facts = {"rate": rounded(given), "demand": rounded(required)}
    if rate.host_cores <= _ONE_CORE and rate.idle_cores >= 0.5:
        found = rules.finding(
            "TPU501",
            where,
            used=rounded(rate.host_cores),
            machine=rate.machine_cores,
            idle=rounded(rate.idle_cores),
            **facts,
        )
    else:
        found = rules.finding(
            "TPU502", where, times=rounded(times), cores=f"{needed:,.0f}", **facts
        )
    return [found]
