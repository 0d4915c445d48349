"""TPU generations: what Google publishes of each chip, and the roofline that follows from it.

No figure here is measured. Sources, read on 2026-11-21:
  docs: cloud.google.com/tpu/docs/v3, /v4; docs.cloud.google.com/tpu/docs/v5e, /v5p, /v6e, /tpu7x
  jax: jax 0.10.2, jax/_src/pallas/mosaic/tpu_info.py (per core), for v2 and TPU7x
  libtpu: the limit that libtpu's own out-of-memory message names ("exceeds available HBM (7.48G)")
Where they differ (v3's peak: 123 TFLOP/s in the docs, 140 in jax) the docs are taken.
"""

import math
import re
from dataclasses import dataclass

_DOCS = "cloud.google.com/tpu/docs, read 2026-11-21"
_JAX = "jax 0.10.2 tpu_info.py, read 2026-11-21"
LIBTPU = "libtpu's out-of-memory message, 2026-11-21"
GIB = 2**30

ACCEPTED = (
    "v2:2x2, v3:2x2, v4:2x2x1, v5e:2x2, v5p:2x2x1, v6e:2x2, tpu7x:2x2x1; the numbers count chips, up "
    "to a whole pod such as v2:16x16 or v5e:16x16; v5e:1x1 and v6e:1x1 are one chip"
)


class BadTopology(ValueError):
    """A topology that libtpu does not know; the message lists accepted forms."""


@dataclass(frozen=True)
class Chip:
    """One generation. Figures with `_per_core` are the chip's divided by `cores`.

    Attributes:
        cores: programs that run side by side on a chip (devices, in JAX's words).
        flops: peak of the chip in bfloat16, FLOP/s.
        bandwidth: of the chip's HBM, bytes/s.
        limit: bytes of HBM that the compiler lets one core's program use.
        cores_per_host: of the hosts that it is sold with.
    """

    name: str
    cores: int
    flops: float
    bandwidth: float
    limit: int
    cores_per_host: int
    source: str

    @property
    def flops_per_core(self) -> float:
        """Peak FLOP/s of one core in bfloat16."""
        return self.flops / self.cores

    @property
    def bandwidth_per_core(self) -> float:
        """Bytes/s between one core and its HBM."""
        return self.bandwidth / self.cores


def _chip(
    name: str, cores: int, tflops: float, gigabytes: float, limit: float, host: int, source: str
) -> Chip:
    return Chip(name, cores, tflops * 1e12, gigabytes * 1e9, int(limit * GIB), host, source)


CHIPS = {
    chip.name: chip
    for chip in (
        _chip("v2", 2, 46, 716, 7.48, 8, _JAX),
        _chip("v3", 2, 123, 900, 15.48, 8, _DOCS),
        _chip("v4", 2, 275, 1200, 15.25, 8, _DOCS),
        _chip("v5e", 1, 197, 819, 15.75, 4, _DOCS),
        _chip("v5p", 1, 459, 2765, 95.74, 4, _DOCS),
        _chip("v6e", 1, 918, 1638, 31.25, 4, _DOCS),
        _chip("tpu7x", 2, 2307, 7400, 94.75, 8, f"{_DOCS}; bandwidth from {_JAX}"),
    )
}
_ALIASES = {"v5": "v5p"}


def parse(topology: str) -> tuple[Chip, int]:
    """The chip of a topology such as "v2:2x2", and the number of its cores.

    Raises:
        BadTopology: the name is not of that form, or its generation or shape is unknown.
    """
    found = re.fullmatch(r"(\w+)[:=_]([1-9]\d*(?:x[1-9]\d*){1,2})(_twisted|_untwisted)?", topology)
    name = found[1].lower() if found else ""
    chip = CHIPS.get(_ALIASES.get(name, name))
    if chip is None:
        raise BadTopology(f"{topology!r} is no TPU topology. Accepted: {ACCEPTED}")
    sizes = [int(size) for size in found[2].split("x")]
    return chip, math.prod(sizes) * chip.cores


def cores(topology: str) -> int:
    """The number of cores of a topology: of programs side by side. Raises BadTopology."""
    return parse(topology)[1]


def cores_per_host(topology: str) -> int:
    """Cores that one host of the topology feeds. Raises BadTopology."""
    chip, total = parse(topology)
    return min(chip.cores_per_host, total)


@dataclass(frozen=True)
class Roofline:
    """The least time that a step can take on a core, from published peaks. Seconds."""

    compute_seconds: float
    memory_seconds: float
    cores: int
    per_core_batch: int

    @property
    def seconds(self) -> float:
        """The larger of the two: no step is faster."""
        return max(self.compute_seconds, self.memory_seconds)

    @property
    def bound(self) -> str:
        """What bounds the step: "memory bandwidth" or "arithmetic"."""
        return "arithmetic" if self.compute_seconds >= self.memory_seconds else "memory bandwidth"

    @property
    def examples_per_second(self) -> float:
        """Of all cores together, at most. Infinite for a step without work."""
        examples = self.cores * self.per_core_batch
        return examples / self.seconds if self.seconds else math.inf


def roofline(
    flops: float, bytes_: float, chip: Chip, *, cores: int, per_core_batch: int
) -> Roofline:
    """The bound on a step of `flops` FLOP and `bytes_` bytes a core.

    (Williams, Waterman, Patterson: Roofline, CACM 52(4), 2009.)
    """
    return Roofline(
        flops / chip.flops_per_core, bytes_ / chip.bandwidth_per_core, cores, per_core_batch
    )
