"""Stage 5: how fast the real input pipeline is on this machine, and whether that is fast enough.

What it delivers is measured: it runs as it would on a TPU's host, except that nothing consumes its batches,
which are counted and dropped. The rate is a measurement of one moment. What the TPU takes follows from the
estimated time of the compiled step; where the compiler estimates none, it is an upper limit, from the
roofline bound.
"""

import math
import os
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import psutil

from lab_utils.common.figures import Figure, Kind, rounded, scaled
from lab_utils.common.source import Place, place, without_stacks
from lab_utils.dry_run import elsewhere, rules
from lab_utils.dry_run.records import LEAST_STEP_SECONDS, CompiledStep, Feed, Finding
from lab_utils.dry_run.session import Session, Skip
from lab_utils.dry_run.unavailable import Unavailable
from lab_utils.runtime import chips

# When a measured rate is known: the share that it may be off, the parts that are compared, and Student's
# factor for 95 % with so many; looked at after every so many batches.
_KNOWN, _PARTS, _STUDENT, _EVERY = 0.05, 10, 2.26, 10
MOST_SECONDS = 2.0  # of measuring, where the rate is not known earlier
# One busy core, as measured: the pipeline's threads and the loop that counts add a little.
_ONE_CORE = 1.3


def carry_out(session: Session) -> str:
    """Stage "feed"; returns its detail. Raises Skip where there is no input pipeline."""
    where = session.workload.feed_place
    with session.workload.feed(session.cores) as (pipeline, batch_size):
        if pipeline is None:
            raise Skip(session.workload.no_feed)
        try:
            session.say(f"reading batches, at most {elsewhere.BATCH_SECONDS} s for each")
            feed, idle, duration = measure(pipeline, seconds=MOST_SECONDS, batch_size=batch_size)
        except NoBatches:
            session.add([rules.finding("TPU504", where)])
            return "no batch"
        except Unavailable:
            raise
        except Exception as error:  # whatever the learner's pipeline raises is the result
            if reason := elsewhere.reason(error):
                raise Unavailable(reason) from error
            failed_at, name = place(error) or where, type(error).__name__
            session.add(
                [rules.finding("TPU503", failed_at, message=without_stacks(error), error=name)]
            )
            return "the input pipeline failed"
    session.feed = feed
    try:
        steps = (step for step in session.compiled if step.mode is session.mode)
        demand = required_rate(next(steps, None), session.topology)
        session.add(compare(feed, idle, demand, where))
    except Skip as why:
        session.not_checked.append(f"Whether the input pipeline is fast enough: {why}")
    return f"measured for {scaled(duration, 's')}"


def required_rate(step: CompiledStep | None, topology: str) -> Figure:
    """Examples/s that the cores of one host of `topology` take in a compiled step, as estimated.

    At most, by the roofline bound, where the compiler estimates no time.

    Raises:
        Skip: the step was not compiled, or is shorter than what the host does for any step.
    """
    if step is None or step.cost.step_seconds is None:
        raise Skip("the step was not compiled.")
    cost, name = step.cost, "required rate of one host's cores"
    time, rate = cost.estimated_seconds or cost.step_seconds, cost.estimated_rate
    if time.value < LEAST_STEP_SECONDS:
        of = "estimated time" if cost.estimated_seconds else "roofline bound"
        raise Skip(
            f"the {of} of {scaled(time.value, 's')} is shorter than the time that the host needs "
            "for any step (for dispatch and infeed)."
        )
    cores = min(chips.cores_per_host(topology), step.cores or chips.cores(topology))
    if rate is not None:
        return Figure(f"{name}, estimated", rate.value * cores, "examples/s", Kind.ESTIMATED)
    most = cost.examples_per_second.value * cores
    return Figure(f"{name}, at most", most, "examples/s", Kind.DERIVED)


def compare(feed: Feed, idle_cores: float, demand: Figure, where: Place) -> list[Finding]:
    """Sets the measured rate against `demand`, the examples/s that the cores of one host take.

    `idle_cores` of this machine were left. The figures that follow go into `feed`. A slow pipeline is a
    warning only where it would be slow on any host, as it keeps to one core; else it says what this machine
    is, and is a note.
    """
    rate, used = feed.examples_per_second.value, feed.host_cores.value
    times = demand.value / rate
    cores_needed = used * times
    feed.required = demand
    feed.host_cores_needed = Figure(
        "host cores like these to deliver it", cores_needed, "cores", Kind.DERIVED
    )
    if times <= 1:
        return []
    about = "about" if demand.kind is Kind.ESTIMATED else "at most"
    facts = {"rate": rounded(rate), "demand": f"{about} {rounded(demand.value)}"}
    if used <= _ONE_CORE and idle_cores >= 0.5:
        facts |= {"used": rounded(used), "idle": rounded(idle_cores)}
        facts["machine"] = int(feed.machine_cores.value)
        return [rules.finding("TPU501", where, **facts)]
    facts |= {"times": rounded(times), "cores": f"{cores_needed:,.0f}"}
    return [rules.finding("TPU502", where, **facts)]


class NoBatches(Exception):
    """The dataset ended before its first batch."""


def measure(
    source: Any,
    *,
    seconds: float,
    batch_size: int | None = None,
) -> tuple[Feed, float, float]:
    """Reads batches as fast as they come, until their rate is known to 5 %, or for about `seconds`.

    Where the data end it starts again. The first eighth of `seconds` is a warm-up, and a quarter at least is
    measured: what was read ahead is gone by then.

    Returns:
        the figures, how many cores this machine had left, and for how many seconds it was measured.

    Args:
        source: a dataset; or what reads an epoch and gives the size of each batch; or a function without
            arguments that returns a dataset, or the tensors of a batch, called in a graph of its own as
            TPUEstimator calls input_fn.
        seconds: how long to read at most after the first batch; longer where a batch takes longer.
        batch_size: examples in a batch; None takes the first dimension of its first tensor.

    Raises:
        NoBatches: the dataset is empty.
        Exception: whatever `source` or the reading of its batches raises.
    """
    with closing(_batches(source)) as batches:

        def examples_of_next() -> int:
            examples = next(batches)
            if examples is None:
                examples = next(batches)
            if examples is None:
                raise NoBatches
            return batch_size or examples

        examples_of_next()
        began = time.perf_counter()
        while time.perf_counter() - began < seconds / 8:
            examples_of_next()
        processor, idle, start = time.process_time(), _idle_seconds(), time.perf_counter()
        examples, ends = 0, [start]
        while True:
            examples += examples_of_next()
            ends.append(time.perf_counter())
            if ends[-1] - began > seconds:
                break
            if ends[-1] - start > seconds / 4 and len(ends) % _EVERY == 0 and is_known(ends):
                break
        duration = ends[-1] - start
        used = (time.process_time() - processor) / duration
        cores = usable_cores()
        idle = max(0.0, min((_idle_seconds() - idle) / duration, cores - used))
    rate = examples / duration
    feed = Feed(
        examples_per_second=_figure("examples from the input pipeline", rate, "examples/s"),
        host_cores=_figure("cores of this machine in use", used, "cores"),
        machine_cores=_figure("cores of this machine", cores, "cores"),
    )
    return feed, idle, duration


def is_known(ends: Sequence[float]) -> bool:
    """Whether the rate of batches that came at these times, in seconds, is known to 5 % (95 % confidence).

    Each tenth of the batches counts as one measurement of the time that they take, as neighbours depend on
    each other (batch means: Law, Simulation Modeling and Analysis, chapter 9).
    """
    size = (len(ends) - 1) // _PARTS
    if not size:
        return False
    times = np.diff(np.asarray(ends)[::size][: _PARTS + 1])
    error = _STUDENT * times.std(ddof=1) / math.sqrt(_PARTS)
    return bool(error <= _KNOWN * times.mean())


def _figure(name: str, value: float, unit: str) -> Figure:
    return Figure(name, float(value), unit, Kind.MEASURED)


def _batches(source: Any) -> Iterator[int | None]:
    """The examples of each batch, again and again; None at each end of the data."""
    if callable(source) or hasattr(source, "element_spec"):
        from lab_utils.dry_run.feed.datasets import batches_of  # which imports TensorFlow

        return batches_of(source)
    return _again(source)


def _again(sizes: Iterable[int]) -> Iterator[int | None]:
    """What gives the examples of each batch of an epoch, as it is read."""
    while True:
        yield from sizes
        yield None


def _idle_seconds() -> float:
    times = psutil.cpu_times()
    return times.idle + getattr(times, "iowait", 0.0)


def usable_cores() -> int:
    """Cores that this process may use: those it is bound to, less what a container's quota takes away."""
    cores = psutil.cpu_count() or 1
    if hasattr(os, "sched_getaffinity"):
        cores = len(os.sched_getaffinity(0))
    quota = Path("/sys/fs/cgroup/cpu.max")
    if quota.exists():
        allowed, _, period = quota.read_text().partition(" ")
        if allowed != "max":
            cores = min(cores, max(1, int(allowed) // int(period)))
    return cores
