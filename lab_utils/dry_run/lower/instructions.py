"""The instructions of a lowered program (an HloModuleProto), with how often each runs in a step."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from lab_utils.dry_run.private.hlo import element_type
from lab_utils.dry_run.program import Matmul

_NO_WRITES = {"parameter", "constant", "tuple", "get-tuple-element", "broadcast", "iota", "bitcast"}
_INTO = ("while", "call", "conditional")
_NO_LIMIT = 2**31 - 1  # what TensorFlow compares with where a loop has no limit
_BF16_BF16_F32 = 6  # in XLA's PrecisionConfig.Algorithm; the numbers behind it round less


@dataclass(frozen=True)
class Instruction:
    """An instruction, the shapes of its operands, and how often it runs in a step."""

    op: Any
    operands: list[Any]
    times: int


def instructions(module: Any) -> Iterator[Instruction]:
    """The instructions of a module; of those that call others, the others."""
    computations = {computation.id: computation for computation in module.computations}
    return _of(computations[module.entry_computation_id], computations, 1)


def _of(computation: Any, computations: dict[int, Any], times: int) -> Iterator[Instruction]:
    shapes = {op.id: op.shape for op in computation.instructions}
    for op in computation.instructions:
        if op.opcode in _INTO:
            rounds = _rounds(op, computations) if op.opcode == "while" else 1
            for id in op.called_computation_ids:
                yield from _of(computations[id], computations, times * rounds)
        else:
            yield Instruction(op, [shapes[id] for id in op.operand_ids], times)


def _rounds(loop: Any, computations: dict[int, Any]) -> int:
    """How often a loop runs, by the largest whole number in its condition; 1 if it has none."""
    _, condition = loop.called_computation_ids
    constants = [op for op in computations[condition].instructions if op.opcode == "constant"]
    scalars = [op.literal for op in constants if not op.shape.dimensions]
    numbers = [number for each in scalars for number in (*each.s32s, *each.s64s)]
    return max([1, *(number for number in numbers if number < _NO_LIMIT)])


def matmuls(module: Any) -> list[Matmul]:
    """The matmuls and convolutions of a module."""
    return [_matmul(it) for it in instructions(module) if it.op.opcode in ("dot", "convolution")]


def _matmul(it: Instruction) -> Matmul:
    macs = math.prod(it.op.shape.dimensions)
    if it.op.opcode == "dot":
        axes = it.op.dot_dimension_numbers.lhs_contracting_dimensions
        macs *= math.prod(it.operands[0].dimensions[axis] for axis in axes)
    else:
        kernel = it.operands[1].dimensions
        features = kernel[it.op.convolution_dimension_numbers.kernel_output_feature_dimension]
        macs *= math.prod(kernel) / max(features, 1)
    types = tuple(map(element_type, it.operands[:2]))
    config = it.op.precision_config
    precise = any(config.operand_precision) or config.algorithm > _BF16_BF16_F32
    return Matmul(2.0 * macs * it.times, types, precise)


def bytes_written(module: Any) -> float:
    """The bytes that all instructions of a module write, if each element has four."""
    return sum(
        4.0 * it.times * math.prod(it.op.shape.dimensions)
        for it in instructions(module)
        if it.op.opcode not in _NO_WRITES
    )
