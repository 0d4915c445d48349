"""How fast the input pipeline is on this machine (required.py: what the step could take).

The pipeline runs as it would on a TPU's host, except that nothing consumes its batches: they are counted
and dropped. The rate is a measurement of one moment. It is kept for a day, for this machine and for a
pipeline whose graph, and files that it names, have not changed; the report says when it was taken. A
pipeline that runs Python code is measured each time.
"""

import os
import platform
import statistics
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import psutil

from lab_utils.common.figures import Figure, Kind, rounded
from lab_utils.dry_run import cache, elsewhere, fingerprint
from lab_utils.dry_run.records import Feed
from lab_utils.estimator import tf, v1

_WINDOWS = 3  # the rate is the median of this many equal parts of the time given
_KEPT_SECONDS = 24 * 3600  # a measurement of this machine is repeated after a day


class NoBatches(Exception):
    """The dataset ended before its first batch."""


@dataclass
class FeedRate:
    """What was measured of an input pipeline on this machine.

    `examples_per_second` is the median of the rates of `windows`. `host_cores` is the processor time of
    this process over the time that passed; `idle_cores` what this machine had left beside it.
    `batches_in_pass` is None for a dataset that did not end while it was measured. `memory_rise` is in
    bytes. `earlier` is the date and time of the measurement where an earlier dry run took it, else "".
    """

    windows: list[float]
    bytes_per_second: float
    first_batch_seconds: float
    host_cores: float
    idle_cores: float
    machine_cores: int
    memory_rise: int
    batches_in_pass: int | None
    earlier: str = ""

    @property
    def examples_per_second(self) -> float:
        """Examples (not batches) a second."""
        return statistics.median(self.windows)

    def figures(self) -> Feed:
        """The figures of the report."""
        rows = {
            "examples_per_second": (
                "examples from the input pipeline",
                self.examples_per_second,
                "examples/s",
            ),
            "slowest_window": (
                "the same, slowest third of the time",
                min(self.windows),
                "examples/s",
            ),
            "fastest_window": (
                "the same, fastest third of the time",
                max(self.windows),
                "examples/s",
            ),
            "bytes_per_second": ("data from the input pipeline", self.bytes_per_second, "B/s"),
            "first_batch_seconds": ("time to the first batch", self.first_batch_seconds, "s"),
            "host_cores": ("cores of this machine in use", self.host_cores, "cores"),
            "machine_cores": ("cores of this machine", float(self.machine_cores), "cores"),
            "memory_rise": ("rise of this process's memory", float(self.memory_rise), "bytes"),
        }
        if self.batches_in_pass is not None:
            rows["batches"] = ("batches in the dataset", float(self.batches_in_pass), "batches")
        source = f"on {self.earlier}, the same input pipeline" if self.earlier else ""
        return Feed(**{key: Figure(*row, Kind.MEASURED, source) for key, row in rows.items()})


def measure(
    source: Callable[[], Any] | tf.data.Dataset,
    *,
    seconds: float = 2.0,
    batch_size: int | None = None,
    progress: Callable[[str], None] | None = None,
) -> FeedRate:
    """Reads batches for about `seconds` after a warm-up, as fast as they come.

    Where the data end it starts again.

    Or gives what was measured within a day of the same pipeline, as the module's docstring says.

    Args:
        source: a dataset; or a function without arguments that returns one, or the tensors of a batch,
            called in a graph of its own as TPUEstimator calls input_fn.
        seconds: how long to measure; longer where a batch takes longer.
        batch_size: examples in a batch; None takes the first dimension of its first tensor.
        progress: told what is going on, a few times a second at most.

    Raises:
        NoBatches: the dataset is empty.
        Exception: whatever `source` or the reading of its batches raises.
    """
    # A dataset made under eager execution can only be read there; all else is read in a graph.
    if isinstance(source, tf.data.Dataset) and tf.executing_eagerly():
        reader = _EagerReader(source)
    elif isinstance(source, tf.data.Dataset):
        reader = _GraphReader(lambda: source, v1.get_default_graph())
    else:
        reader = _GraphReader(source, tf.Graph())
    cores = usable_cores()
    content = reader.fingerprint()
    code = cache.code()
    name = cache.key(content, seconds, batch_size, cores, platform.node(), tf.__version__, code)
    process = psutil.Process()
    memory_before = memory_peak = process.memory_info().rss
    with closing(reader):
        kept = cache.read(name) if content else None
        if kept and 0 <= time.time() - kept["time"] < _KEPT_SECONDS:
            return FeedRate(**kept["rate"])
        count = _Counter(reader, batch_size)
        began = time.perf_counter()
        count.next()
        first = time.perf_counter() - began
        while time.perf_counter() - began < seconds / 4:
            count.next()
        windows, bytes_read = [], 0
        processor, idle, start = _processor_seconds(process), _idle_seconds(), time.perf_counter()
        for window in range(_WINDOWS):
            opened, examples = time.perf_counter(), 0
            while not examples or time.perf_counter() - opened < seconds / _WINDOWS:
                batch_examples, batch_bytes = count.next()
                examples += batch_examples
                bytes_read += batch_bytes
            windows.append(examples / (time.perf_counter() - opened))
            memory_peak = max(memory_peak, process.memory_info().rss)
            if progress:
                progress(f"{rounded(windows[-1])} examples/s ({window + 1} of {_WINDOWS})")
        passed = time.perf_counter() - start
        used = (_processor_seconds(process) - processor) / passed
        rate = FeedRate(
            windows=windows,
            bytes_per_second=bytes_read / passed,
            first_batch_seconds=first,
            host_cores=used,
            idle_cores=max(0.0, min((_idle_seconds() - idle) / passed, cores - used)),
            machine_cores=cores,
            memory_rise=memory_peak - memory_before,
            batches_in_pass=count.batches_in_pass,
        )
        if content:
            earlier = {"earlier": time.strftime("%Y-%m-%d at %H:%M")}
            cache.write(name, {"time": time.time(), "rate": asdict(rate) | earlier})
        return rate


class _GraphReader:
    """Reads the batches of an input_fn in a session; also where eager execution is disabled."""

    def __init__(self, make: Callable[[], Any], graph: tf.Graph) -> None:
        with graph.as_default():
            data = make()
            self._initialize = []
            if isinstance(data, tf.data.Dataset):
                iterator = v1.data.make_initializable_iterator(data)
                self._initialize = [iterator.initializer]
                data = iterator.get_next()
            # Composite tensors count as their components; what a batch may hold beside tensors, not at all.
            leaves = [
                leaf for leaf in tf.nest.flatten(data, expand_composites=True) if tf.is_tensor(leaf)
            ]
            sizes = [_size(leaf) for leaf in leaves]
            shape = tf.shape(leaves[0], tf.int64)
            first = shape[0] if leaves[0].shape.rank != 0 else tf.constant(1, tf.int64)
            # The group makes the batch; sizes alone may be known without it, and the batch left unread.
            self._fetches = (tf.group(*leaves), first, tf.add_n(sizes))
            setup = [v1.local_variables_initializer(), v1.tables_initializer()]
        elsewhere.check(graph)
        self._graph = graph
        self._session = v1.Session(graph=graph)
        self._session.run(setup)
        self.restart()

    def fingerprint(self) -> str | None:
        """As fingerprint.of_pipeline has it."""
        try:
            graph_def = self._graph.as_graph_def()
        except ValueError:  # a graph of 2 GiB or more cannot be written down
            return None
        return fingerprint.of_pipeline(graph_def)

    def restart(self) -> None:
        self._session.run(self._initialize)

    def next(self) -> tuple[int, int]:
        _, examples, size = self._session.run(self._fetches)
        return int(examples), int(size)

    def close(self) -> None:
        self._session.close()


class _EagerReader:
    """Reads the batches of a dataset under eager execution."""

    def __init__(self, dataset: tf.data.Dataset) -> None:
        self._dataset = dataset
        self.restart()

    def fingerprint(self) -> str | None:
        """As fingerprint.of_pipeline has it."""
        variant = tf.data.experimental.to_variant(self._dataset)
        try:  # state outside the graph, such as a lookup table, cannot be written down
            graph = tf.raw_ops.DatasetToGraphV2(input_dataset=variant, external_state_policy=2)
        except tf.errors.OpError:
            return None
        return fingerprint.of_pipeline(v1.GraphDef.FromString(graph.numpy()))

    def restart(self) -> None:
        self._batches = iter(self._dataset)

    def next(self) -> tuple[int, int]:
        batch = self._batches.get_next()
        leaves = tf.nest.flatten(batch, expand_composites=True)
        examples = leaves[0].shape[0] if leaves[0].shape.rank else 1
        return examples, sum(int(_size(leaf)) for leaf in leaves)

    def close(self) -> None:
        del self._batches


class _Counter:
    """Counts the batches of a reader, and restarts it when the data ends."""

    def __init__(self, reader: _GraphReader | _EagerReader, batch_size: int | None) -> None:
        self._reader, self._batch_size, self._batches = reader, batch_size, 0
        self.batches_in_pass: int | None = None

    def next(self) -> tuple[int, int]:
        """Examples and bytes of the next batch."""
        while True:
            try:
                examples, size = self._reader.next()
                self._batches += 1
                return self._batch_size or examples, size
            except tf.errors.OutOfRangeError:
                if not self._batches:
                    raise NoBatches from None
                self.batches_in_pass = self._batches
                self._batches = 0
                self._reader.restart()


def _size(leaf: tf.Tensor) -> tf.Tensor:
    """Bytes of a tensor, int64; of a string tensor, those of its strings."""
    if leaf.dtype == tf.string:
        return tf.reduce_sum(tf.cast(tf.strings.length(leaf), tf.int64))
    return tf.size(leaf, tf.int64) * leaf.dtype.size


def _processor_seconds(process: psutil.Process) -> float:
    times = process.cpu_times()
    return times.user + times.system


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
