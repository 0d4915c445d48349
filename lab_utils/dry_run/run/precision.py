"""A lowered step with each matmul and convolution as a TPU's matrix unit computes it, for a CPU to execute.

The matrix unit multiplies bfloat16 numbers and adds their products in float32. It rounds float32 operands
to bfloat16 once (precision DEFAULT), or takes each as the sum of two or three bfloat16 numbers, whose
products need three passes (HIGH) or six (HIGHEST): see jax.lax.Precision, and "Controlling Floating Point
Precision" of PyTorch/XLA. bfloat16 operands are taken as they are. A product with a vector is none of the
matrix unit's: libtpu makes a multiplication and a sum of it, in float32 (seen in what 0.0.42.1 compiles for
v2 and v5e). tests/benchmarks/numerics.py compares with what people published from real TPUs.
"""

import itertools
import math
from collections.abc import Iterator
from traceback import FrameSummary
from typing import Any

from lab_utils.common.source import Place, place_of_stack
from lab_utils.dry_run.private import hlo as _hlo

_EXPONENT_BITS, _MANTISSA_BITS = 8, 7  # of a bfloat16
_FLOAT32 = 11  # in XLA's PrimitiveType
_UNSEEDED = ("rng", "rng-get-and-update-state")
# bfloat16 numbers for each operand, by precision (DEFAULT, HIGH, HIGHEST), and by what JAX calls an algorithm
# (BF16_BF16_F32 and its X3 and X6).
_PARTS, _PARTS_OF_ALGORITHM = (1, 2, 3), {6: 1, 7: 2, 8: 3}


def as_on_tpu(hlo: bytes, exact: frozenset[str] = frozenset()) -> bytes:
    """A serialized HloModuleProto whose products of float32 matrices are computed in the TPU's passes.

    Those of `exact`, names as `products` gives them, stay in float32.
    """
    module = _hlo.module(hlo)
    for computation in module.computations:
        rounded = {op.id for op in _rounded(computation) if op.name not in exact}
        last = max((op.id for op in computation.instructions), default=0)
        numbers = itertools.count(last + 1)
        shapes = {op.id: op.shape for op in computation.instructions}
        written = []
        for op in computation.instructions:
            written += _in_passes(op, shapes, numbers) if op.id in rounded else [_copy(op)]
        del computation.instructions[:]
        computation.instructions.extend(written)
    return module.SerializeToString(deterministic=True)


def products(hlo: bytes) -> dict[str, str]:
    """The matmuls and convolutions whose operands a TPU rounds, by name, with the framework's op of each."""
    module = _hlo.module(hlo)
    found = (op for computation in module.computations for op in _rounded(computation))
    return {op.name: op.metadata.op_name for op in found}


def lines(hlo: bytes) -> dict[str, Place]:
    """The learner's line of each of `products`; NOWHERE where the module has no stacks, as of TensorFlow."""
    module = _hlo.module(hlo)
    found = (op for computation in module.computations for op in _rounded(computation))
    index = module.stack_frame_index
    return {op.name: place_of_stack(_stack(index, op.metadata.stack_frame_id)) for op in found}


def _stack(index: Any, number: int) -> list[FrameSummary]:
    """The frames of a stack, outermost first. In the tables of a module numbers count from 1; 0 is none."""
    frames = []
    while number:
        frame = index.stack_frames[number - 1]
        where = index.file_locations[frame.file_location_id - 1]
        file = index.file_names[where.file_name_id - 1]
        function = index.function_names[where.function_name_id - 1].rpartition(".")[2]
        frames.append(FrameSummary(file, where.line, function, lookup_line=False))
        number = frame.parent_frame_id
    return frames[::-1]


def without_a_seed(hlo: bytes) -> str:
    """An op that draws other random numbers in another program, "" where all have a seed."""
    module = _hlo.module(hlo)
    ops = (op for computation in module.computations for op in computation.instructions)
    return next((op.metadata.op_name or op.name for op in ops if op.opcode in _UNSEEDED), "")


def _rounded(computation: Any) -> Iterator[Any]:
    """The instructions of a computation that the matrix unit carries out, with a float32 operand."""
    shapes = {op.id: op.shape for op in computation.instructions}
    for op in computation.instructions:
        operands = [shapes[id] for id in op.operand_ids]
        multiplies = op.opcode == "convolution" or (
            op.opcode == "dot" and not _of_vectors(op, operands)
        )
        if multiplies and any(shape.element_type == _FLOAT32 for shape in operands):
            yield op


def _of_vectors(op: Any, operands: list[Any]) -> bool:
    """Whether the compiler makes no product of matrices of a dot: then it computes in float32."""
    axes = op.dot_dimension_numbers
    batch = math.prod(operands[0].dimensions[axis] for axis in axes.lhs_batch_dimensions)
    summed = math.prod(operands[0].dimensions[axis] for axis in axes.lhs_contracting_dimensions)
    rows, columns = (math.prod(shape.dimensions) // max(batch * summed, 1) for shape in operands)
    return rows == columns == 1 or (batch == 1 and 1 in (rows, columns, summed))


def _in_passes(op: Any, shapes: dict[int, Any], numbers: Iterator[int]) -> list[Any]:
    """The instructions that stand for `op`; the last has its name."""
    written: list[Any] = []

    def write(opcode: str, shape: Any, operands: list[int], **fields: int) -> int:
        new = type(op)(opcode=opcode, operand_ids=operands, id=next(numbers), **fields)
        new.name = f"{opcode}.{new.id}"
        new.shape.CopyFrom(shape)
        new.metadata.CopyFrom(op.metadata)
        written.append(new)
        return new.id

    def parts(number: int, count: int) -> list[int]:
        """bfloat16 numbers whose sum the operand is, the largest first."""
        shape, left, result = shapes[number], number, []
        if shape.element_type != _FLOAT32:
            return [number]
        bits = {"exponent_bits": _EXPONENT_BITS, "mantissa_bits": _MANTISSA_BITS}
        for part in range(count):
            if part:
                left = write("subtract", shape, [left, result[-1]])
            result.append(write("reduce-precision", shape, [left], **bits))
        return result

    def product(left: int, right: int) -> int:
        new = _copy(op)
        new.operand_ids[:], new.id = (left, right), next(numbers)
        new.name = f"{op.opcode}.{new.id}"
        new.ClearField("precision_config")
        written.append(new)
        return new.id

    count = _passes(op)
    sides = [list(enumerate(parts(number, count))) for number in op.operand_ids]
    pairs = sorted(itertools.product(*sides), key=lambda pair: -pair[0][0] - pair[1][0])
    terms = [product(left, right) for (i, left), (j, right) in pairs if i + j < count]
    total = terms[0]
    for term in terms[1:]:  # the smallest first
        total = write("add", op.shape, [total, term])
    written[-1].id, written[-1].name = op.id, op.name
    return written


def _passes(op: Any) -> int:
    """bfloat16 numbers that each operand is taken for."""
    config = op.precision_config
    precision = max(config.operand_precision, default=0)
    return _PARTS_OF_ALGORITHM.get(config.algorithm, _PARTS[precision])


def _copy(op: Any) -> Any:
    return type(op).FromString(op.SerializeToString())
