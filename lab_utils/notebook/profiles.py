"""What TensorFlow's profiler recorded, as plain events. TensorBoard's trace viewer draws the same rows."""

from collections import Counter
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Event:
    """Something that a thread did; times in milliseconds from the first event of all."""

    row: str  # the thread, as the trace viewer names it; several of one name are numbered
    name: str
    start: float
    end: float


def recorded(folder: str | Path) -> list[Event]:
    """The events of the newest profile below a folder that `tf.profiler.experimental.start` was given.

    Raises:
        FileNotFoundError: there is no profile.
        RuntimeError: jax, whose `ProfileData` reads the file, is not installed.
    """
    files = sorted(Path(folder).glob("plugins/profile/*/*.xplane.pb"))
    if not files:
        raise FileNotFoundError(f"no profile below {folder}: call tf.profiler.experimental.stop()")
    try:
        from jax.profiler import ProfileData
    except ImportError:
        raise RuntimeError("reading a profile needs jax: pip install jax") from None
    found, seen = [], Counter()
    for plane in ProfileData.from_file(str(files[-1])).planes:
        for line in plane.lines:
            thread = line.name.partition("/")[0]
            seen[thread] += 1
            row = thread if seen[thread] == 1 else f"{thread} {seen[thread]}"
            found += [(row, each.name, each.start_ns, each.duration_ns) for each in line.events]
    first = min((start for _, _, start, _ in found), default=0)
    return [
        Event(row, name, (start - first) / 1e6, (start - first + length) / 1e6)
        for row, name, start, length in found
    ]
