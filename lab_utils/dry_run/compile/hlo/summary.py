"""Reads the text of an optimised HLO module: what the TPU's compiler made of a step."""

import math
import re
from collections import Counter
from dataclasses import dataclass, field

import numpy as np

from lab_utils.common.source import NOWHERE, Place
from lab_utils.dry_run.compile.hlo.frames import Origins
from lab_utils.dry_run.compile.hlo.parse import (
    Instruction,
    Module,
    Shape,
    Visit,
    members,
    numbers,
)
from lab_utils.dry_run.compile.hlo.regather import keeps_own_part
from lab_utils.dry_run.compile.hlo.traffic import traffic

_PRODUCTS = ("convolution", "dot")
_COLLECTIVES = ("all-reduce", "reduce-scatter", "all-gather", "all-to-all", "collective-permute")
_NO_BUFFER = {"tuple", "get-tuple-element", "bitcast", "while", "conditional", "call", "after-all"}
_ON_CHIP = {1, 3}  # memory spaces: VMEM, beside the matrix unit; CMEM, which v4 has
_CYCLES = re.compile(r'"estimated_cycles":"(\d+)"')
_LARGEST = 50  # buffers
_ABSURD = 10**15  # the compiler's word for "not known"
_ALIAS = re.compile(r"\((\d+), \{[^}]*\}, (?:may|must)-alias\)")


@dataclass(frozen=True)
class Buffer:
    """An array that a core holds: the op that made it, or the argument of that number."""

    name: str
    shape: Shape
    parameter: int | None = None

    @property
    def waste(self) -> int:
        """Bytes of padding."""
        return self.shape.padded_bytes - self.shape.bytes


@dataclass(frozen=True)
class Product:
    """A matmul or convolution: its FLOP a step.

    `edges` are the sizes that the matrix unit sees: rows, contracted, columns.
    """

    name: str
    flops: float
    edges: tuple[int, int, int]


@dataclass(frozen=True)
class Exchange:
    """A collective of a step.

    Attributes:
        kind: "all-reduce", "all-gather" ...
        bytes: of whole arrays, in all rounds of the loops around it.
        members: the cores of the first group that takes part; () where the program names no groups, and all
            do.
        overlapped: the program computes meanwhile: it is started before, or is fused into a computation.
        place: the learner's line that it stems from; NOWHERE where the module names none.
        kept_in_part: each core gathers the whole array, and keeps its own part of it.
        rounds: of the loops around it.
    """

    kind: str
    bytes: int
    members: tuple[int, ...]
    overlapped: bool
    place: Place = NOWHERE
    kept_in_part: bool = False
    rounds: int = 1


@dataclass
class Summary:
    """What the optimised HLO says of a core's step.

    Attributes:
        buffers: in HBM; the largest first, as padded.
        exchanges: the collectives; their bytes are those that an all-gather gives, or a reduce-scatter takes.
        costs: estimated cycles, bytes of HBM and FLOP of a step [3], by line and op: NOWHERE, or "", where
            the module names none.
        aliased: the numbers of the arguments whose memory a result takes.
        results: the shapes of what a core's step returns.
        loop_flops: of matmuls, in rounds of loops after the first.
        loop_bytes: read from HBM and written to it, in rounds after the first; `bytes`: in all rounds.
        on_chip: whether arrays lie in the chip's own memory, as from v4 on.
    """

    buffers: list[Buffer] = field(default_factory=list)
    products: list[Product] = field(default_factory=list)
    exchanges: list[Exchange] = field(default_factory=list)
    costs: dict[tuple[Place, str], np.ndarray] = field(default_factory=dict)
    aliased: list[int] = field(default_factory=list)
    results: list[Shape] = field(default_factory=list)
    loop_flops: float = 0.0
    loop_bytes: float = 0.0
    bytes: float = 0.0
    on_chip: bool = False

    @property
    def collectives(self) -> Counter[str]:
        """Bytes a step of each kind of collective."""
        sizes: Counter[str] = Counter()
        for exchange in self.exchanges:
            sizes[exchange.kind] += exchange.bytes
        return sizes

    @property
    def cycles(self) -> float:
        """Cycles of a step that the compiler estimates, collectives left out; 0 where it estimates none."""
        return float(sum(cost[0] for cost in self.costs.values()))

    def cost(self, estimate: dict[str, float]) -> dict[str, float]:
        """FLOP ("flops") and HBM traffic ("bytes") of a step, from what the compiler counted.

        The compiler counts one round of each loop; the rounds after it are added. Its bytes also hold those
        of arrays on the chip, which never reach HBM. Where there are such arrays, the traffic is read from
        the program instead. (Without them both agree: 311.4 and 311.2 MB for the flowers step on a v2. On a
        v5e that step moves 10 MB, and the compiler counts 319. libtpu 0.0.42.1, 2026-11-22.)
        """
        bytes_ = estimate["bytes"] + self.loop_bytes
        return {
            "flops": estimate["flops"] + self.loop_flops,
            "bytes": min(bytes_, self.bytes) if self.on_chip else bytes_,
        }

    @property
    def small_edge_share(self) -> float:
        """The share of matmul FLOP with a dimension below 128."""
        total = sum(product.flops for product in self.products)
        small = sum(product.flops for product in self.products if min(product.edges) < 128)
        return small / total if total else 0.0


def summarise(text: str) -> Summary:
    """Reads an optimised module; of its buffers only the largest are listed."""
    module = Module(text)
    origins = Origins(module)
    summary = Summary(aliased=[int(n) for n in _ALIAS.findall(text.split("\n", 1)[0])])
    buffers: dict[tuple[str, Shape], Buffer] = {}
    exchanges: dict[str, Exchange] = {}
    for visit in module.visits():
        op, times = visit.instruction, visit.times
        if op.opcode in _PRODUCTS:
            product = _product(op, module, times)
            summary.products.append(product)
            summary.loop_flops += product.flops * (times - 1) / times
        if op.opcode.removesuffix("-start") in _COLLECTIVES:
            # One that is spread over several instructions bears the same channel in all.
            match = re.search(r"channel_id=(\d+)", op.text)
            name = match[0] if match else op.name
            exchanges.setdefault(name, _exchange(visit, module, origins))
        if visit.fused or op.opcode in _NO_BUFFER:
            continue
        traffic_bytes = traffic(op, module)
        summary.bytes += times * traffic_bytes
        summary.loop_bytes += (times - 1) * traffic_bytes
        summary.on_chip |= any(shape.memory_space in _ON_CHIP for shape in op.shapes)
        in_entry = visit.body == module.entry
        parameter = in_entry and re.search(r" parameter\((\d+)\)", op.text)
        number = int(parameter[1]) if parameter else None
        for shape in op.shapes:
            if not shape.memory_space:
                buffers[op.op_name, shape] = Buffer(op.op_name, shape, number)
        if visit.aside:
            continue
        estimate = _CYCLES.search(op.text)
        cycles = int(estimate[1]) if estimate and int(estimate[1]) < _ABSURD else 0
        flops = _flops(op, module)
        if cycles or traffic_bytes or flops:
            origin = origins.of(op)
            cost = times * np.array([cycles, traffic_bytes, flops], float)
            summary.costs[origin] = summary.costs.get(origin, 0.0) + cost
    summary.exchanges = list(exchanges.values())
    summary.results = module.results
    by_size = sorted(buffers.values(), key=lambda buffer: buffer.shape.padded_bytes, reverse=True)
    summary.buffers = by_size[:_LARGEST]
    return summary


def _exchange(visit: Visit, module: Module, origins: Origins) -> Exchange:
    op = visit.instruction
    kind, starts = op.opcode.removesuffix("-start"), op.opcode.endswith("-start")
    result = op.shapes[: len(op.operands)] if starts else op.shapes
    if kind == "all-gather" and starts:
        result = op.shapes[len(op.operands) :][: len(op.operands)]
    operands = sum(shape.bytes for operand in module.operands(op) for shape in operand.shapes)
    size = max(operands, sum(shape.bytes for shape in result))
    # The compiler's fusion of an all-reduce and a slice.
    scatters = "all-reduce-scatter" in visit.body
    if scatters:
        kind = "reduce-scatter"
    overlapped = starts or (visit.fused and not scatters)
    place, _ = origins.of(op)
    kept_in_part = kind == "all-gather" and keeps_own_part(op, module)
    size_in_all, group, rounds = visit.times * size, members(op.text), visit.times
    return Exchange(kind, size_in_all, group, overlapped, place, kept_in_part, rounds)


def _flops(op: Instruction, module: Module) -> float:
    """FLOPs of one round of an instruction: its own, or those of the fusion that it calls."""
    if op.opcode in _PRODUCTS:
        return _product(op, module, 1).flops
    callees = (name for key, name in op.calls() if key == "calls")
    parts = (part for name in callees for part in module.computations.get(name, ()))
    return sum(_flops(part, module) for part in parts)


def _product(op: Instruction, module: Module, times: int) -> Product:
    lhs, rhs = (operand.shapes[0] for operand in module.operands(op)[:2])
    macs, edges = _convolution(op, lhs, rhs) if op.opcode == "convolution" else _dot(op, lhs)
    return Product(op.op_name, 2.0 * macs * times, edges)


def _dot(op: Instruction, lhs: Shape) -> tuple[int, tuple[int, int, int]]:
    def size(kind: str) -> int:
        axes = re.search(rf"lhs_{kind}_dims=\{{([\d,]*)\}}", op.text)
        return math.prod(lhs.dims[axis] for axis in numbers(axes[1])) if axes else 1

    contraction, batch = size("contracting"), size("batch")
    rows = math.prod(lhs.dims) // max(1, contraction * batch)
    macs = math.prod(op.shapes[0].dims) * contraction
    columns = macs // max(1, contraction * batch * rows)
    return macs, (rows, contraction, columns)


def _convolution(op: Instruction, lhs: Shape, rhs: Shape) -> tuple[int, tuple[int, int, int]]:
    """Multiply-adds of a convolution, without those that fall on padding or on holes of dilation."""
    labels = re.search(r"dim_labels=(\w+)_(\w+)->(\w+)", op.text)
    lhs_labels, rhs_labels, out_labels = labels[1], labels[2], labels[3]
    out = op.shapes[0].dims
    window = _window(op.text)
    spatial = sorted(label for label in out_labels if label.isdigit())
    positions = math.prod(
        _positions(
            lhs.dims[lhs_labels.index(label)],
            rhs.dims[rhs_labels.index(label)],
            out[out_labels.index(label)],
            {key: values[number] for key, values in window.items()},
        )
        for number, label in enumerate(spatial)
    )
    inputs = rhs.dims[rhs_labels.index("i")]
    batch, features = out[out_labels.index("b")], out[out_labels.index("f")]
    groups = re.search(r"batch_group_count=(\d+)", op.text)
    macs = positions * batch * features * inputs // (int(groups[1]) if groups else 1)
    area = math.prod(out[out_labels.index(label)] for label in spatial)
    kernel = math.prod(rhs.dims[rhs_labels.index(label)] for label in spatial)
    return macs, (batch * area, inputs * kernel, features)


def _window(text: str) -> dict[str, list[str]]:
    window = re.search(r"window=\{([^}]*)\}", text)
    parts = dict(part.split("=") for part in window[1].split()) if window else {}
    return {key: value.split("x") for key, value in parts.items()}


def _positions(size: int, kernel: int, out: int, window: dict[str, str]) -> int:
    """How many pairs of an output place and a kernel place meet a real input place, on one axis."""
    low = int(window.get("pad", "0_0").split("_")[0])
    stride, holes = int(window.get("stride", 1)), int(window.get("lhs_dilate", 1))
    step = int(window.get("rhs_dilate", 1))
    # For each output place, every `period`-th kernel place between two ends. A table of all pairs would take
    # gigabytes: XLA writes a product of many matrices as a convolution over their number.
    starts = np.arange(out) * stride - low
    shared = math.gcd(step, holes)
    period = holes // shared
    first = -starts // shared * pow(step // shared, -1, period) % period
    lowest = np.maximum(0, -(starts // step))
    highest = np.minimum(kernel - 1, ((size - 1) * holes - starts) // step)
    met = (highest - first) // period - (lowest - 1 - first) // period
    return int(np.sum(np.maximum(0, met)[starts % shared == 0]))
