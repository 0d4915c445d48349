"""What the input pipeline gives on this machine, against what the compiled step could take.

What it gives is measured (feed/stage.py); what the TPU takes is an upper limit, from the roofline bound.
"""

from lab_utils.dry_run import chips, rules
from lab_utils.dry_run.feed.stage import FeedRate
from lab_utils.dry_run.records import Finding
from lab_utils.figures import Figure, Kind, rounded, scaled

# Below this step time the roofline says nothing about demand: what a step costs beside its arithmetic
# and memory traffic (dispatch, infeed) is longer.
LEAST_STEP_SECONDS = 1e-3
# One busy core, as measured: the pipeline's threads and the loop that counts add a little.
_ONE_CORE = 1.3


class Unknown(Exception):
    """The demand cannot be told; the message says why."""


def of_host(cost: dict[str, Figure], topology: str) -> float:
    """Examples/s that the cores of one host of `topology` take at most, by `cost` of the compiled step.

    Raises:
        Unknown: the step was not compiled, or its bound is shorter than any step.
    """
    if "step_seconds" not in cost:
        raise Unknown("the step was not compiled.")
    least = cost["step_seconds"].value
    if least < LEAST_STEP_SECONDS:
        raise Unknown(
            f"the roofline bound of {scaled(least, 's')} is less than what any step costs "
            "beside its arithmetic and memory traffic."
        )
    return cost["examples_per_second"].value * chips.cores_per_host(topology)


def compare(rate: FeedRate, demand: float, where: str) -> tuple[list[Finding], dict[str, Figure]]:
    """Sets the measured rate against `demand`, the most examples/s that the cores of one host take.

    A slow pipeline is a warning only where it would be slow on any host, as it
    keeps to one core; else it says what this machine is, and is a note.
    """
    given = rate.examples_per_second
    times = demand / given
    needed = rate.host_cores * times
    figures = {
        "demand": Figure("demand of one host's cores, at most", demand, "examples/s", Kind.DERIVED),
        "times_too_slow": Figure("demand over what is given here", times, "times", Kind.DERIVED),
        "host_cores_needed": Figure(
            "host cores like these to meet it", needed, "cores", Kind.DERIVED
        ),
    }
    if times <= 1:
        return [], figures
    facts = {"rate": rounded(given), "demand": rounded(demand)}
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
    return [found], figures
