"""The estimated time of a step: the cycles of the compiler's own schedule, and the exchanges between chips.

The compiler estimates the cycles of each instruction, and none of a collective. Over the clock these cycles
are the time in which a core computes. A collective takes what its bytes take on the links, and no less than
its hops from chip to chip (runtime/links.py).
One that the program has started before, or has fused into a computation, goes on meanwhile, and counts only
as far as all of these together take longer than the computations; for any other the core waits.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from lab_utils.dry_run.compile.hlo.summary import Exchange, Summary
from lab_utils.dry_run.records import AxisExchanges
from lab_utils.runtime import chips
from lab_utils.runtime.links import exchange_seconds


@dataclass(frozen=True)
class Forecast:
    """The parts of a step's estimated time, in seconds.

    Attributes:
        computing: the schedule's cycles over the clock.
        waiting: exchanges for which the core waits.
        beside: exchanges that go on while the core computes.
        by_axis: the exchanges over each axis of the mesh, those that take longest first.
    """

    computing: float
    waiting: float
    beside: float
    by_axis: list[AxisExchanges] = field(default_factory=list)

    @property
    def seconds(self) -> float:
        """Of the whole step."""
        return max(self.computing, self.beside) + self.waiting

    @property
    def exchanges(self) -> float:
        """What the exchanges add to the time in which the core computes."""
        return self.seconds - self.computing


def forecast(
    summary: Summary, topology: str, mesh: Mapping[str, int] | None = None
) -> Forecast | None:
    """The estimated time of a step on `topology`; None where the compiler estimates no cycles.

    Args:
        mesh: the sizes of the mesh's axes by name, where the cores share the step.

    Raises:
        BadTopology: as `chips.parse`.
    """
    chip, _ = chips.parse(topology)
    if not summary.cycles:
        return None
    waiting = beside = 0.0
    by_axis: dict[str, AxisExchanges] = {}
    for item in summary.exchanges:
        took = seconds_of(item, topology)
        if item.overlapped:
            beside += took
        else:
            waiting += took
        over = axes_of(item.members, mesh or {})
        axis = by_axis.setdefault(over, AxisExchanges(over))
        axis.seconds += took
        axis.bytes[item.kind] = axis.bytes.get(item.kind, 0) + item.bytes
    longest_first = sorted(by_axis.values(), key=lambda axis: axis.seconds, reverse=True)
    return Forecast(summary.cycles / chip.clock, waiting, beside, longest_first)


def seconds_of(exchange: Exchange, topology: str) -> float:
    """Seconds that one exchange of a step takes on the links of `topology`, in all its rounds."""
    cores = len(exchange.members) or chips.cores(topology)
    each = exchange.bytes / exchange.rounds
    return exchange.rounds * exchange_seconds(exchange.kind, each, cores, topology)


def axes_of(members: tuple[int, ...], mesh: Mapping[str, int]) -> str:
    """Over which axes of the mesh a group of cores lies: "data", or "data and model".

    "all cores", or "groups of 4 cores", for a step without a mesh. The cores of a mesh count along its last
    axis first.
    """
    if not mesh:
        return f"groups of {len(members)} cores" if members else "all cores"
    if not members:
        along = [axis for axis, size in mesh.items() if size > 1]
    else:
        places = np.unravel_index(members, tuple(mesh.values()))
        along = [axis for axis, at in zip(mesh, places, strict=True) if len(set(at)) > 1]
    return " and ".join(along) or "one core"
