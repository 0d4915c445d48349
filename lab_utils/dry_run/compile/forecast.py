"""The estimated time of a step: the cycles of the compiler's own schedule, and the exchanges between chips.

The compiler estimates the cycles of each instruction, and none of a collective. Over the clock these cycles
are the time in which a core computes. A collective takes what its bytes take on the links (runtime/links.py).
One that the program has started before, or has fused into a computation, goes on meanwhile, and counts only
as far as all of these together take longer than the computations; for any other the core waits.
"""

from dataclasses import dataclass

from lab_utils.dry_run.compile.hlo.summary import Summary
from lab_utils.runtime import chips
from lab_utils.runtime.links import exchange_seconds


@dataclass(frozen=True)
class Forecast:
    """The parts of a step's estimated time, in seconds.

    Attributes:
        computing: the schedule's cycles over the clock.
        waiting: exchanges for which the core waits.
        beside: exchanges that go on while the core computes.
    """

    computing: float
    waiting: float
    beside: float

    @property
    def seconds(self) -> float:
        """Of the whole step."""
        return max(self.computing, self.beside) + self.waiting

    @property
    def exchanges(self) -> float:
        """What the exchanges add to the time in which the core computes."""
        return self.seconds - self.computing


def forecast(summary: Summary, topology: str) -> Forecast | None:
    """The estimated time of a step on `topology`; None where the compiler estimates no cycles.

    Raises:
        BadTopology: as `chips.parse`.
    """
    chip, cores = chips.parse(topology)
    if not summary.cycles:
        return None
    waiting = beside = 0.0
    for item in summary.exchanges:
        took = exchange_seconds(item.kind, item.bytes, item.group or cores, topology)
        if item.overlapped:
            beside += took
        else:
            waiting += took
    return Forecast(summary.cycles / chip.clock, waiting, beside)
