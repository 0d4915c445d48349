"""The instructions of a lowered program (an HloModuleProto), with how often each runs in a step."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from lab_utils.dry_run.private.hlo import element_type
from lab_utils.dry_run.program import Matmul

_NO_WRITES = {"parameter", "constant", "tuple", "get-tuple-element", "broadcast", "iota", "bitcast"}
_INTO = ("while", "call", "conditional")
_SAME = ("reshape", "convert", "copy", "bitcast")
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
    walk = _Walk(module)
    return walk.of(module.entry_computation_id, 1)


class _Walk:
    """A walk through a module, in which the id of an instruction is given once.

    Attributes:
        ops: its instructions, by id.
        known: by the id of a loop how often it runs.
    """

    def __init__(self, module: Any) -> None:
        self.computations = {each.id: each.instructions for each in module.computations}
        self.ops = {op.id: op for part in self.computations.values() for op in part}
        self.known: dict[int, int] = {}

    def of(self, computation: int, times: int) -> Iterator[Instruction]:
        """The instructions of a computation that runs so often."""
        for op in self.computations[computation]:
            if op.opcode in _INTO:
                rounds = self.rounds(op) if op.opcode == "while" else 1
                for id in op.called_computation_ids:
                    yield from self.of(id, times * rounds)
            else:
                yield Instruction(op, [self.ops[id].shape for id in op.operand_ids], times)

    def rounds(self, loop: Any) -> int:
        """How often a loop runs, by the largest whole number its condition compares; 1 if none is seen."""
        if loop.id not in self.known:
            _, condition = loop.called_computation_ids
            numbers = self._compared(condition, loop.operand_ids, {})
            self.known[loop.id] = max([1, *(each for each in numbers if each < _NO_LIMIT)])
        return self.known[loop.id]

    def _compared(self, part: int, operands: Sequence[int], given: dict[int, int]) -> Iterator[int]:
        """The numbers that a part of a condition compares; `given`: what stands for its parameters."""
        ops = self.computations[part]
        parameters = [op for op in ops if op.opcode == "parameter"]
        operands = [given.get(id, id) for id in operands]
        given = given | {op.id: operands[op.parameter_number] for op in parameters}
        for op in ops:
            if op.opcode == "call":
                yield from self._compared(op.called_computation_ids[0], op.operand_ids, given)
            elif op.opcode == "compare":
                for operand in op.operand_ids:
                    yield from self._numbers(operand, given)

    def _numbers(self, id: int, given: dict[int, int]) -> list[int]:
        """The whole number that a scalar is, if that can be seen.

        What a loop leaves is taken for its counter: the loop of a gradient goes back as often.
        """
        op = self.ops[given.get(id, id)]
        if op.opcode == "constant" and not op.shape.dimensions:
            return [*op.literal.s32s, *op.literal.s64s]
        if op.opcode in _SAME:
            return self._numbers(op.operand_ids[0], given)
        if op.opcode == "get-tuple-element":
            source = op.operand_ids[0]
            source = self.ops[given.get(source, source)]
            if source.opcode == "tuple":
                return self._numbers(source.operand_ids[op.tuple_index], given)
            if source.opcode == "while":
                return [self.rounds(source)]
        return []


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
