"""How long the cores of a slice take to exchange arrays over the links between its chips (ICI).

The formulas are those of How to Scale Your Model (jax-ml/scaling-book, sharding.md at 04d8de58b9f6, read
2026-11-27): a ring sends every array through all of its chips, in both directions where its ends are joined.
However small the array, each hop from chip to chip takes a microsecond (there: "typically around 1us"). The
exchange of cores on one chip needs no link, and is left out.
"""

import re

from lab_utils.runtime import chips

# Which axes have their ends joined: 2D slices where an axis is as long as the pod's, 3D slices where it
# is made of whole cubes of 4 (tpus.md there).
_POD_AXIS, _CUBE = 16, 4
HOP_SECONDS = 1e-6
# Bytes over a link for a byte of the whole array, in a ring of n chips with one direction; times (n - 1) / n.
_TIMES = {"all-reduce": 2.0, "all-gather": 1.0, "reduce-scatter": 1.0, "all-to-all": 1.0}


def exchange_seconds(kind: str, size: float, group: int, topology: str) -> float:
    """Seconds of one exchange of a whole array among `group` cores of a slice.

    Args:
        kind: "all-reduce", "all-gather", "reduce-scatter", "all-to-all" or "collective-permute".
        size: bytes of the whole array: of what an all-gather gives, of what a reduce-scatter takes, and of
            one core's part in an all-to-all or a permutation.
        group: cores that take part. All of the slice use each of its axes; fewer are taken to lie along one.

    Raises:
        BadTopology: as `chips.parse`.
    """
    chip, cores = chips.parse(topology)
    ring = group // chip.cores
    if ring <= 1:
        return 0.0
    axes = _axes(topology) if group == cores else [ring]
    return max(_transfer_seconds(kind, size, ring, axes, chip), _least_seconds(kind, axes, chip))


def _transfer_seconds(
    kind: str, size: float, ring: int, axes: list[int], chip: chips.Chip
) -> float:
    """What the bytes take at the speed of the links."""
    bandwidth = sum(chip.link * (2 if _is_joined(length, chip.axes) else 1) for length in axes)
    if kind == "collective-permute":
        return size / chip.link
    # A byte of an all-to-all passes a quarter of a joined ring on average, a half of an open one.
    if kind == "all-to-all":
        return size * max(axes) / 4 / bandwidth
    return _TIMES[kind] * size * (ring - 1) / ring / bandwidth


def _least_seconds(kind: str, axes: list[int], chip: chips.Chip) -> float:
    """What the hops take, however small the array: to the farthest chip, or a permutation's one."""
    if kind == "collective-permute":
        return HOP_SECONDS
    hops = sum(length // 2 if _is_joined(length, chip.axes) else length - 1 for length in axes)
    return _TIMES[kind] * hops * HOP_SECONDS


def _axes(topology: str) -> list[int]:
    """The lengths, in chips, of the axes of a topology that have more than one."""
    sizes = re.findall(r"\d+", topology.partition(":")[2])
    return [length for length in map(int, sizes) if length > 1]


def _is_joined(length: int, axes: int) -> bool:
    return length % _POD_AXIS == 0 if axes == 2 else length % _CUBE == 0
