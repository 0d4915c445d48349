"""How much of a step this machine can run on virtual cores: seconds and a few gigabytes, not minutes.

The estimate is made of the program itself, so that it holds also where the TPU compiler gave no figures.
"""

import math
from dataclasses import dataclass
from typing import Any

import psutil

from lab_utils.dry_run.private import tensorflow as _tensorflow
from lab_utils.dry_run.program import Program, Role

# A pod's program is compiled for all its cores; so many of them are run here.
MOST_VIRTUAL_CORES = 8
# Of all steps on all cores and of one core with the whole batch: some 10 s on two cores.
MOST_FLOP = 4e11
MOST_BYTES = 2.5e9
_FEWEST_STEPS = 2  # the second shows what the first did to the variables
# Of the bytes that all instructions write, the share that a CPU holds at a time.
_HELD_SHARE = 0.5
_WRITE_NOTHING = {
    "parameter",
    "constant",
    "tuple",
    "get-tuple-element",
    "broadcast",
    "iota",
    "bitcast",
}


@dataclass(frozen=True)
class Plan:
    """What to run: `cores` virtual cores with `batch` examples each, for `steps` steps."""

    cores: int
    batch: int
    steps: int


def affordable(program: Program, steps: int) -> Plan | None:
    """The port's own cores, batch, steps, or as much of them as fits; None if not even two cores do."""
    flops, written = cost(program.hlo)
    variables = sum(array.bytes for array in program.inputs if array.role == Role.VARIABLE)
    room = min(MOST_BYTES, psutil.virtual_memory().available / 3)
    most = min(program.cores, MOST_VIRTUAL_CORES)
    for cores in dict.fromkeys(number for number in (most, 4, 2) if number <= most):
        for count in dict.fromkeys((steps, min(steps, _FEWEST_STEPS))):
            batch = program.per_core_batch
            while batch:
                share = batch / program.per_core_batch * cores
                activations = written * _HELD_SHARE * share
                held = 2 * variables * cores + activations
                if 2 * flops * share * count <= MOST_FLOP and held <= room:
                    return Plan(cores, batch, count)
                batch = 0 if batch % 2 else batch // 2
    return None


def cost(hlo: bytes) -> tuple[float, float]:
    """FLOP of the matmuls and convolutions of a serialized HloModuleProto, and bytes that it writes."""
    module = _tensorflow.hlo_module(hlo)
    computations = {computation.id: computation for computation in module.computations}
    return _computation(computations[module.entry_computation_id], computations)


def _computation(computation: Any, computations: dict[int, Any]) -> tuple[float, float]:
    shapes = {op.id: op.shape for op in computation.instructions}
    flops, written = 0.0, 0.0
    for op in computation.instructions:
        if op.opcode in ("while", "call", "conditional"):
            inner = [
                _computation(computations[id], computations) for id in op.called_computation_ids
            ]
            times = _trips(op, computations) if op.opcode == "while" else 1
            flops += times * sum(part[0] for part in inner)
            written += times * sum(part[1] for part in inner)
        elif op.opcode not in _WRITE_NOTHING:
            written += 4 * math.prod(op.shape.dimensions)
        if op.opcode == "dot":
            left = shapes[op.operand_ids[0]].dimensions
            summed = op.dot_dimension_numbers.lhs_contracting_dimensions
            flops += 2 * math.prod(op.shape.dimensions) * math.prod(left[axis] for axis in summed)
        elif op.opcode == "convolution":
            kernel = shapes[op.operand_ids[1]].dimensions
            filters = kernel[op.convolution_dimension_numbers.kernel_output_feature_dimension]
            flops += 2 * math.prod(op.shape.dimensions) * math.prod(kernel) / max(filters, 1)
    return flops, written


def _trips(loop: Any, computations: dict[int, Any]) -> int:
    """How often a loop runs, by the largest whole number that its condition or body compares with."""
    numbers = [1]
    for id in loop.called_computation_ids:
        for op in computations[id].instructions:
            if op.opcode == "constant" and not op.shape.dimensions:
                numbers += [*op.literal.s32s, *op.literal.s64s]
    return min(max(numbers), 10_000)
