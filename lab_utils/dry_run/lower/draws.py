"""Random numbers that belong to an example: many cores and one core with the whole batch draw the same.

Dropout and noise are drawn by each core for its own share of the batch. For a comparison with one core each
draws for the whole batch, from a seed that is the op's name, and takes its share.
"""

import zlib
from dataclasses import dataclass
from typing import Any

import numpy as np

from lab_utils.dry_run.lower.graph_def import Nodes
from lab_utils.estimator import tf

_STATELESS = {
    "RandomUniform": "StatelessRandomUniform",
    "RandomUniformInt": "StatelessRandomUniformInt",
    "RandomStandardNormal": "StatelessRandomNormal",
    "TruncatedNormal": "StatelessTruncatedNormal",
}


@dataclass(frozen=True)
class Draw:
    """What an op draws for the whole batch; the cores take equal shares along `axis` (None: all of it)."""

    shape: tuple[int, ...]
    axis: int | None


Draws = dict[str, Draw]  # by the op's name


def alike(many: Any, one: Any, cores: int, share: int) -> Draws:
    """The draws that a graph of one of `cores` cores and that of one core have in common, by the op's name.

    The axis that is `cores` times as long in the graph of one core is that of the batch. Left out is what is
    drawn for `share` examples, a core's, by one core too: the program names that number itself.
    """
    draws = {}
    whole = _shapes(one)
    for name, shape in _shapes(many).items():
        larger = whole.get(name)
        if larger is None or len(shape) != len(larger):
            continue
        axes = [axis for axis, size in enumerate(shape) if size != larger[axis]]
        if not axes and shape[:1] != [share]:
            draws[name] = Draw(tuple(larger), None)
        elif len(axes) == 1 and shape[axes[0]] * cores == larger[axes[0]]:
            draws[name] = Draw(tuple(larger), axes[0])
    return draws


def _shapes(graph: Any) -> dict[str, list[int]]:
    """The shapes that a graph's random ops draw, where they are known, by the op's name."""
    random = [op for op in graph.get_operations() if op.type in _STATELESS]
    fixed = [op for op in random if op.outputs[0].shape.is_fully_defined()]
    # Lists: under version 1's behaviour the sizes of a shape are no ints.
    return {op.name: op.outputs[0].shape.as_list() for op in fixed}


def draw_alike(graph_def: Any, draws: Draws, cores: int) -> None:
    """Replaces the random ops of a GraphDef that `draws` names, for one of `cores` cores."""
    for node in [node for node in graph_def.node if node.name in draws]:
        draw, new = draws[node.name], Nodes(graph_def, node.name)
        dtype = tf.as_dtype(node.attr["Tout" if "Tout" in node.attr else "dtype"].type)
        bounds = [name for name in node.input if name[0] != "^"][1:]
        # Of a seed that is a constant TensorFlow may draw the numbers itself, others than XLA's.
        core = new.add("XlaReplicaId", [])
        zero = new.add("BitwiseAnd", [core, new.numbers(0)], T=tf.int32)
        name = new.numbers([zlib.crc32(node.name.encode()) >> 1, 0])
        seed = new.add("AddV2", [zero, name], T=tf.int32)
        inputs = [new.numbers(draw.shape), seed, *bounds]
        values = new.add(_STATELESS[node.op], inputs, dtype=dtype, T=tf.int32, Tseed=tf.int32)
        if draw.axis is not None and cores > 1:
            share = np.array(draw.shape, np.int32)
            share[draw.axis] //= cores
            step = np.where(np.arange(len(share)) == draw.axis, share, 0)
            begin = new.add("Mul", [core, new.numbers(step)], T=tf.int32)
            inputs = [values, begin, new.numbers(share)]
            values = new.add("Slice", inputs, T=dtype, Index=tf.int32)
        new.replace(node, values, dtype)
