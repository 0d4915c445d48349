"""TPU generations: what is published of each chip, what software calls it, and the roofline that follows.

The only table of chips: a new generation is one more row of CHIPS. No figure here is measured.
Sources, read on 2026-11-21:
  docs: cloud.google.com/tpu/docs/v3, /v4; docs.cloud.google.com/tpu/docs/v5e, /v5p, /v6e, /tpu7x
  jax: jax 0.10.2, jax/_src/pallas/mosaic/tpu_info.py (per core), for v2 and TPU7x
  libtpu: the limit that libtpu's own out-of-memory message names ("exceeds available HBM (7.48G)")
  bus: numbers on the PCI bus, jax 0.10.2, jax/_src/hardware_utils.py; v2 and v3 share one
  links: v2 from Jouppi et al., A Domain-Specific Supercomputer for Training Deep Neural Networks, CACM 63(7),
    2020 (496 Gbit/s each way and link); v3 to v6e from How to Scale Your Model, jax-ml/scaling-book, tpus.md
    at 04d8de58b9f6, read 2026-11-27; TPU7x from docs (1,200 GB/s of a chip, both ways over six links)
  matrix units: edges from How to Scale Your Model and tpu_info.py; their number follows from the clock
  own memory: VMEM of a core, tpu_info.py (v4 and v5p: of the two cores that are driven as one); v4's 128 MiB
    of CMEM from Jouppi et al., TPU v4, ISCA 2023
  v4 as one device: pytorch/xla issue 5258 of 2023-07 (four devices on a v4-8), and
    GoogleCloudPlatform/ml-testing-accelerators pull 550 (four from v4 on, eight before), read 2026-11-27
  hosts: the docs of v5e and v6e (virtual machines of 1, 4 or 8 chips), and ray-project/ray pull 62526 of
    2026-04-11 (a slice of up to 8 chips is one machine's, a larger one has machines of 4; a 2x4 can also
    be had as two machines of 4), read 2026-11-27
Where they differ the docs are taken:
  v3: 123 TFLOP/s and 900 GB/s in the docs, 140 and 825 in jax
  v5e: 819 GB/s in the docs; 800 GiB/s, which are 859 GB/s, in a later copy of that page; 820 in jax
  v5p: 2,765 GB/s in the docs, 2,460 in jax
  v3's links: 82 GB/s in CACM, 100 in the book, which is taken
"""

import math
import re
from dataclasses import dataclass

_DOCS = "cloud.google.com/tpu/docs, read 2026-11-21"
_JAX = "jax 0.10.2 tpu_info.py, read 2026-11-21"
LIBTPU = "libtpu's out-of-memory message, 2026-11-21"
MIB, GIB = 2**20, 2**30


class BadTopology(ValueError):
    """A topology that does not exist; the message says why, and which forms are accepted."""


@dataclass(frozen=True)
class Chip:
    """One generation. Figures with `_per_core` are the chip's divided by `cores`.

    Attributes:
        cores: replicas that run side by side on a chip (devices, in JAX's words). A chip of v4 and v5p has
            two TensorCores, which work as one device (a megacore). The types v4-8 and v5p-8 count
            TensorCores: four chips.
        flops: peak of the chip in bfloat16, FLOP/s.
        bandwidth: of the chip's HBM, bytes/s.
        limit: bytes of HBM that the compiler lets one replica's program use.
        cores_per_host: of the hosts that it is sold with, where a slice has several of them.
        axes: of its topologies: 2 (a torus of AxB chips) or 3 (AxBxC).
        pod: chips of the largest slice.
        example: a small topology that libtpu compiles for.
        jax_kinds: the device kinds under which JAX lists it.
        pci: its device number on the PCI bus.
        pjrt: TensorFlow drives it through PJRT; the older ones through the stream executor.
        tensor_cores: of a core, as the names of types count them.
        config: libtpu's name of the chip's configuration, where it is not its default.
        units, edge: matrix units of a core, and the rows and columns of one.
        link: bytes/s of one link between two chips, one way.
        own_memory: bytes of a core's memory on the chip, beside its HBM: VMEM, and on v4 the CMEM.
        one_host: cores of the largest slice that one host feeds, where these are more than `cores_per_host`.
        source: of `flops` and `bandwidth`.
    """

    name: str
    cores: int
    flops: float
    bandwidth: float
    limit: int
    cores_per_host: int
    axes: int
    pod: int
    example: str
    jax_kinds: tuple[str, ...]
    pci: str
    units: int
    edge: int
    link: float
    own_memory: int
    source: str = _DOCS
    pjrt: bool = True
    tensor_cores: int = 1
    config: str = ""
    one_host: int = 0

    @property
    def flops_per_core(self) -> float:
        """Peak FLOP/s of one core in bfloat16."""
        return self.flops / self.cores

    @property
    def bandwidth_per_core(self) -> float:
        """Bytes/s between one core and its HBM."""
        return self.bandwidth / self.cores

    @property
    def clock(self) -> float:
        """Cycles a second of a core, derived: the peak over the FLOP that its matrix units do in a cycle.

        Published clocks agree: 0.70 and 0.94 GHz for v2 and v3 (CACM 63(7), 2020), 1.05 for v4 (Jouppi et
        al., ISCA 2023), 1.5 for v5e (How to Scale Your Model).
        """
        return self.flops_per_core / (2 * self.units * self.edge**2)

    def roofline(self, flops: float, bytes_: float) -> "Roofline":
        """The bound on a step of `flops` FLOP and `bytes_` bytes of HBM traffic on one core."""
        return Roofline(flops, bytes_, self.flops_per_core, self.bandwidth_per_core)


# fmt: off
CHIPS = {
    chip.name: chip
    for chip in (
        Chip("v2", 2, 46e12, 716e9, int(7.48 * GIB), 8, axes=2, pod=256, example="v2:2x2",
             jax_kinds=("TPU v2",), pci="0x0027", units=1, edge=128, link=62e9,
             own_memory=16 * MIB, source=_JAX, pjrt=False),
        Chip("v3", 2, 123e12, 900e9, int(15.48 * GIB), 8, axes=2, pod=1024, example="v3:2x2",
             jax_kinds=("TPU v3",), pci="0x0027", units=2, edge=128, link=100e9,
             own_memory=16 * MIB, pjrt=False),
        Chip("v4", 1, 275e12, 1200e9, int(30.75 * GIB), 4, axes=3, pod=4096, example="v4:2x2x1",
             jax_kinds=("TPU v4",), pci="0x005e", units=8, edge=128, link=45e9,
             own_memory=160 * MIB, pjrt=False, tensor_cores=2, config="megacore"),
        Chip("v5e", 1, 197e12, 819e9, int(15.75 * GIB), 4, axes=2, pod=256, example="v5e:1x1",
             jax_kinds=("TPU v5 lite", "TPU v5e"), pci="0x0063", units=4, edge=128, link=50e9,
             own_memory=128 * MIB, one_host=8),
        Chip("v5p", 1, 459e12, 2765e9, int(95.74 * GIB), 4, axes=3, pod=8960, example="v5p:2x2x1",
             jax_kinds=("TPU v5", "TPU v5p"), pci="0x0062", units=8, edge=128, link=100e9,
             own_memory=128 * MIB, tensor_cores=2),
        Chip("v6e", 1, 918e12, 1638e9, int(31.25 * GIB), 4, axes=2, pod=256, example="v6e:1x1",
             jax_kinds=("TPU v6 lite", "TPU v6e"), pci="0x006f", units=4, edge=256, link=100e9,
             own_memory=128 * MIB, one_host=8),
        Chip("tpu7x", 2, 2307e12, 7400e9, int(94.75 * GIB), 8, axes=3, pod=9216,
             example="tpu7x:2x2x1", jax_kinds=("TPU7x",), pci="0x0076", units=4, edge=256, link=100e9,
             own_memory=64 * MIB, source=f"{_DOCS}; bandwidth from {_JAX}"),
    )
}
# fmt: on
_ALIASES = {"v5": "v5p"}
# What people can get: one chip, or one machine's, of each kind that is sold; and v2, for TPUEstimator.
POPULAR = ("v5e:1x1", "v5e:2x4", "v6e:1x1", "v6e:2x4", "v5p:2x2x1", "tpu7x:2x2x1", "v2:2x2")
# What a port is judged for where nobody names a topology, by what computes it: v2 is where TPUEstimator and
# TPUStrategy are known to run; JAX's users get a v5e-8 (Kaggle's, or a machine of eight chips).
DEFAULTS = {"TensorFlow": "v2:2x2", "JAX": "v5e:2x4"}
DEFAULT_CORES = 8  # of each of them: a program is run before it is known what computes it

ACCEPTED = (
    "v2:2x2, v3:2x2, v4:2x2x1, v5e:2x2, v5p:2x2x1, v6e:2x2, tpu7x:2x2x1; the numbers count chips, up "
    "to a whole pod such as v2:16x16 or v5e:16x16; v5e:1x1 and v6e:1x1 are one chip"
)


def parse(topology: str) -> tuple[Chip, int]:
    """The chip of a topology such as "v2:2x2", and the number of its cores.

    Raises:
        BadTopology: the name is not of that form, or its generation, its axes or its size is unknown.
    """
    match = re.fullmatch(r"(\w+)[:=_]([1-9]\d*(?:x[1-9]\d*){1,2})(_twisted|_untwisted)?", topology)
    name = match[1].lower() if match else ""
    chip = CHIPS.get(_ALIASES.get(name, name))
    if chip is None:
        slice_name = _of_type(topology)
        hint = f"; as a type of slice it is {slice_name}" if slice_name else ""
        raise BadTopology(f"{topology!r} is not a TPU topology{hint}. Accepted: {ACCEPTED}")
    sizes = [int(size) for size in match[2].split("x")]
    count = math.prod(sizes)
    why = ""
    if len(sizes) != chip.axes:
        why = f"the chips of a {chip.name} form {'AxB' if chip.axes == 2 else 'AxBxC'}"
    elif count > chip.pod:
        why = f"the largest slice of {chip.name} has {chip.pod:,} chips"
    elif any(size % 2 and size > 1 for size in sizes[:2]):
        why = "the first two numbers of a slice are 1 or even"
    if why:
        raise BadTopology(f"{topology} does not exist: {why}. Accepted: {ACCEPTED}")
    return chip, count * chip.cores


def _of_type(name: str) -> str:
    """The topology that clouds sell as a type, such as "v2-8" or "v5litepod-8"; "" for other names."""
    match = re.fullmatch(r"(v5litepod|\w+)-([1-9]\d*)", name.lower())
    chip = CHIPS.get(match[1].replace("v5litepod", "v5e")) if match else None
    if chip is None:
        return ""
    count = int(match[2]) // (chip.cores * chip.tensor_cores)
    exists = count & (count - 1) == 0 and 0 < count <= chip.pod
    return f"{chip.name}:{even_shape(count, chip.axes)}" if exists else ""


def even_shape(count: int, axes: int) -> str:
    """`count` chips, a power of 2, on `axes` axes as even as may be: 8 on 2 axes are "2x4"."""
    sizes = [1] * axes
    while count > 1:
        sizes[sizes.index(min(sizes))] *= 2
        count //= 2
    return "x".join(str(size) for size in sorted(sizes, reverse=axes == 3))


def roomiest() -> Chip:
    """The chip whose cores have the most memory."""
    return max(CHIPS.values(), key=lambda chip: chip.limit)


def of_jax_kind(kind: str) -> Chip | None:
    """The chip that JAX lists as `kind`, such as "TPU v5 lite"; None for one that is not in the table."""
    return next((chip for chip in CHIPS.values() if kind in chip.jax_kinds), None)


def generations_on_the_bus() -> dict[str, str]:
    """PCI device number -> generation in words: "v5e", and "v2 or v3" where two share a number."""
    names: dict[str, list[str]] = {}
    for chip in CHIPS.values():
        names.setdefault(chip.pci, []).append(chip.name)
    return {pci: " or ".join(shared) for pci, shared in names.items()}


def needs_pjrt(generation: str) -> bool:
    """Whether TensorFlow drives that generation ("v5e", "v2 or v3", "" for unknown) through PJRT."""
    return not any(
        chip.name in generation.split(" or ") and not chip.pjrt for chip in CHIPS.values()
    )


def cores(topology: str) -> int:
    """The number of cores of a topology: of replicas side by side. Raises BadTopology."""
    return parse(topology)[1]


def cores_per_host(topology: str) -> int:
    """Cores that one host of the topology feeds; the most, where it is sold in two ways.

    Raises:
        BadTopology: as `parse`.
    """
    chip, total = parse(topology)
    return total if total <= chip.one_host else min(chip.cores_per_host, total)


@dataclass(frozen=True)
class Roofline:
    """The bound on a step of one core, from published peaks.

    (Williams, Waterman, Patterson: Roofline, CACM 52(4), 2009.)

    Attributes:
        flops, bytes: of the step.
        peak_flops, peak_bandwidth: of the core, FLOP/s and bytes/s.
    """

    flops: float
    bytes: float
    peak_flops: float
    peak_bandwidth: float

    @property
    def compute_seconds(self) -> float:
        """Seconds that the step's FLOPs take at the peak."""
        return self.flops / self.peak_flops

    @property
    def memory_seconds(self) -> float:
        """Seconds that the step's HBM traffic takes at the peak."""
        return self.bytes / self.peak_bandwidth

    @property
    def seconds(self) -> float:
        """The larger of the two: no step that does so much is faster."""
        return max(self.compute_seconds, self.memory_seconds)

    @property
    def bound_by(self) -> str:
        """ "HBM traffic" where that takes longer than the FLOPs, else "FLOPs"."""
        return "HBM traffic" if self.memory_seconds > self.compute_seconds else "FLOPs"

    def examples_per_second(self, batch: int) -> float:
        """At most, for `batch` examples a step. Infinite for a step without work."""
        return batch / self.seconds if self.seconds else math.inf
