"""Random numbers that belong to an example: many cores and one core with the whole batch draw the same.

Dropout and noise are drawn by each core for its own share of the batch. For a comparison with one core each
number is a hash of the op's name and of the number's index in the whole batch; a core computes its share.
"""

import zlib
from dataclasses import dataclass
from typing import Any

import numpy as np

from lab_utils.dry_run.lower.nodes import Nodes
from lab_utils.estimator import tf

_REPLACED = ("RandomUniform", "RandomUniformInt", "RandomStandardNormal", "TruncatedNormal")
_BEYOND = 0.02275013  # the share of a normal distribution below minus two standard deviations
# Shifts and factors of MurmurHash3's last step.
_MIX = ((16, 0x85EBCA6B), (13, 0xC2B2AE35), (16, None))


@dataclass(frozen=True)
class Draw:
    """What an op draws for the whole batch; the cores take equal shares along `axis` (None: all of it)."""

    shape: tuple[int, ...]
    axis: int | None


def alike(many: Any, one: Any, cores: int, share: int) -> dict[str, Draw]:
    """The draws that a graph of one of `cores` cores and that of one core have in common, by the op's name.

    The axis that is `cores` times as long in the graph of one core is that of the batch. Left out is what is
    drawn for `share` examples, a core's, by one core too: the program names that number itself.
    """
    whole = {op.name: op.outputs[0].shape for op in one.get_operations() if op.type in _REPLACED}
    draws = {}
    for op in many.get_operations():
        # as_list: under version 1's behaviour the sizes of a shape are no ints.
        shape, larger = (op.outputs[0].shape, whole[op.name]) if op.name in whole else (None, None)
        if shape is None or not (shape.is_fully_defined() and larger.is_fully_defined()):
            continue
        if shape.rank != larger.rank:
            continue
        pairs = enumerate(zip(shape.as_list(), larger.as_list(), strict=True))
        grown = [(axis, a, b) for axis, (a, b) in pairs if a != b]
        if not grown and shape.as_list()[:1] != [share]:
            draws[op.name] = Draw(tuple(larger.as_list()), None)
        elif len(grown) == 1 and grown[0][1] * cores == grown[0][2]:
            draws[op.name] = Draw(tuple(larger.as_list()), grown[0][0])
    return draws


def draw_alike(graph_def: Any, draws: dict[str, Draw], cores: int) -> None:
    """Replaces the random ops of a GraphDef that `draws` names, for one of `cores` cores."""
    for node in [node for node in graph_def.node if node.name in draws]:
        dtype = tf.as_dtype(node.attr["Tout" if "Tout" in node.attr else "dtype"].type)
        new = Nodes(graph_def, node.name)
        data = [name for name in node.input if name[0] != "^"]
        uniform = _uniform(new, node.name, draws[node.name], cores)
        values = _distributed(new, node.op, uniform, data[1:], dtype)
        new.replace(node, values, dtype)


def _uniform(new: Nodes, name: str, draw: Draw, cores: int) -> str:
    """float32 numbers in (0, 1) of the share of one core."""
    strides = np.cumprod((1, *draw.shape[:0:-1]))[::-1]
    hashed = new.constant(np.uint32(zlib.crc32(name.encode())))
    for axis, (size, stride) in enumerate(zip(draw.shape, strides, strict=True)):
        shared = axis == draw.axis and cores > 1
        along = [1] * len(draw.shape)
        along[axis] = size // cores if shared else size
        index = np.arange(along[axis], dtype=np.uint32) * np.uint32(stride)
        hashed = new.binary("AddV2", hashed, new.constant(index.reshape(along)), tf.uint32)
        if shared:
            core = new.cast(new.add("XlaReplicaId", []), tf.int32, tf.uint32)
            offset = new.constant(np.uint32(along[axis] * stride))
            offset = new.binary("Mul", core, offset, tf.uint32)
            hashed = new.binary("AddV2", hashed, offset, tf.uint32)
    hashed = new.binary("Mul", hashed, new.constant(np.uint32(0x9E3779B1)), tf.uint32)
    for shift, factor in _MIX:
        shifted = new.binary("RightShift", hashed, new.constant(np.uint32(shift)), tf.uint32)
        hashed = new.binary("BitwiseXor", hashed, shifted, tf.uint32)
        if factor:
            hashed = new.binary("Mul", hashed, new.constant(np.uint32(factor)), tf.uint32)
    high = new.binary("RightShift", hashed, new.constant(np.uint32(9)), tf.uint32)
    half = new.constant(np.float32(0.5))
    middle = new.binary("AddV2", new.cast(high, tf.uint32, tf.float32), half, tf.float32)
    return new.binary("Mul", middle, new.constant(np.float32(2.0**-23)), tf.float32)


def _distributed(new: Nodes, op: str, uniform: str, bounds: list[str], dtype: tf.DType) -> str:
    """The numbers as the random op `op` would distribute them, of type `dtype`."""
    if op == "RandomUniformInt":
        low, high = (new.cast(bound, dtype, tf.float32) for bound in bounds)
        width = new.binary("Sub", high, low, tf.float32)
        scaled = new.binary("Mul", uniform, width, tf.float32)
        return new.binary("AddV2", new.cast(scaled, tf.float32, dtype), bounds[0], dtype)
    if op == "RandomUniform":
        return new.cast(uniform, tf.float32, dtype)
    width = 1 - 2 * _BEYOND if op == "TruncatedNormal" else 1.0
    scaled = new.binary("Mul", uniform, new.constant(np.float32(2 * width)), tf.float32)
    centred = new.binary("Sub", scaled, new.constant(np.float32(width)), tf.float32)
    normal = new.add("Erfinv", [centred], T=tf.float32)
    normal = new.binary("Mul", normal, new.constant(np.float32(np.sqrt(2))), tf.float32)
    return new.cast(normal, tf.float32, dtype)
