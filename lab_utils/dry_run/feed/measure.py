"""How fast the input pipeline is on this machine (stage.py: what the step could take).

The pipeline runs as it would on a TPU's host, except that nothing consumes its batches: they are counted
and dropped. The rate is a measurement of one moment.
"""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import psutil

from lab_utils.common.figures import Figure, Kind
from lab_utils.dry_run import elsewhere
from lab_utils.dry_run.records import Feed
from lab_utils.estimator import tf, v1


class NoBatches(Exception):
    """The dataset ended before its first batch."""


def measure(
    source: Callable[[], Any] | tf.data.Dataset,
    *,
    seconds: float = 2.0,
    batch_size: int | None = None,
) -> tuple[Feed, float]:
    """Reads batches for about `seconds` after a warm-up, as fast as they come.

    Where the data end it starts again.

    Returns:
        the figures, and how many cores this machine had left.

    Args:
        source: a dataset; or a function without arguments that returns one, or the tensors of a batch,
            called in a graph of its own as TPUEstimator calls input_fn.
        seconds: how long to measure; longer where a batch takes longer.
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

        began = time.perf_counter()
        examples_of_next()
        while time.perf_counter() - began < seconds / 4:
            examples_of_next()
        processor, idle, start = time.process_time(), _idle_seconds(), time.perf_counter()
        examples = 0
        while not examples or time.perf_counter() - start < seconds:
            examples += examples_of_next()
        passed = time.perf_counter() - start
        used = (time.process_time() - processor) / passed
        cores = usable_cores()
        idle = max(0.0, min((_idle_seconds() - idle) / passed, cores - used))
    rate = examples / passed
    feed = Feed(
        examples_per_second=_measured("examples from the input pipeline", rate, "examples/s"),
        host_cores=_measured("cores of this machine in use", used, "cores"),
        machine_cores=_measured("cores of this machine", cores, "cores"),
    )
    return feed, idle


def _measured(name: str, value: float, unit: str) -> Figure:
    return Figure(name, float(value), unit, Kind.MEASURED)


def _batches(source: Callable[[], Any] | tf.data.Dataset) -> Iterator[int | None]:
    """The examples of each batch, again and again; None at each end of the data."""
    if not isinstance(source, tf.data.Dataset):
        return _graph_batches(source, tf.Graph())
    if not tf.executing_eagerly():
        return _graph_batches(lambda: source, v1.get_default_graph())
    return _eager_batches(source)


def _graph_batches(make: Callable[[], Any], graph: tf.Graph) -> Iterator[int | None]:
    """Reads what an input_fn makes in a session; also where eager execution is disabled."""
    with graph.as_default():
        data = make()
        initialize = []
        if isinstance(data, tf.data.Dataset):
            iterator = v1.data.make_initializable_iterator(data)
            initialize = [iterator.initializer]
            data = iterator.get_next()
        # Composite tensors count as their components; what a batch may hold beside tensors, not at all.
        leaves = [
            leaf for leaf in tf.nest.flatten(data, expand_composites=True) if tf.is_tensor(leaf)
        ]
        first = tf.shape(leaves[0])[0] if leaves[0].shape.rank != 0 else tf.constant(1)
        # The group makes the batch; its size alone may be known without it, and the batch left unread.
        fetches = first, tf.group(*leaves)
        setup = [v1.local_variables_initializer(), v1.tables_initializer()]
    elsewhere.check(graph)
    with v1.Session(graph=graph) as session:
        session.run(setup)
        while True:
            session.run(initialize)
            with suppress(tf.errors.OutOfRangeError):
                while True:
                    yield int(session.run(fetches)[0])
            yield None


def _eager_batches(dataset: tf.data.Dataset) -> Iterator[int | None]:
    """Reads a dataset that was made under eager execution, and can only be read there."""
    while True:
        for batch in dataset:
            leaf = tf.nest.flatten(batch, expand_composites=True)[0]
            yield leaf.shape[0] if leaf.shape.rank else 1
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
