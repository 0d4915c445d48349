"""The gradient of nearest-neighbour resizing, for which the bridge of a CPU build has no kernel, as sums."""

from typing import Any

import numpy as np

from lab_utils.dry_run.lower.nodes import Nodes, nodes_of
from lab_utils.estimator import tf

_OP = "ResizeNearestNeighborGrad"
_HEIGHT, _WIDTH = 1, 2


def sum_resizes(graph_def: Any, graph: Any) -> None:
    """Turns each such gradient of a pruned `graph` into sums; those whose shapes are not fixed stay."""
    for node, op, new in nodes_of(graph_def, graph, {_OP}):
        shapes = op.inputs[0].shape, op.outputs[0].shape
        if not all(shape.is_fully_defined() for shape in shapes):
            continue
        dims, small = (shape.as_list() for shape in shapes)  # not Dimension, which version 1 has
        dtype, value = op.inputs[0].dtype, node.input[0]
        for axis in (_HEIGHT, _WIDTH):
            sources = _sources(op, small[axis], dims[axis])
            value = _summed(new, value, dims, axis, sources, small[axis], dtype)
            dims[axis] = small[axis]
        new.replace(node, value, dtype)


def _sources(op: tf.Operation, small: int, large: int) -> np.ndarray:
    """For each of `large` rows the one of `small` rows that it was copied from, int32 [large].

    As in TensorFlow's tensorflow/core/kernels/image/resize_nearest_neighbor_op.cc, in float32.
    """
    rows = np.arange(large, dtype=np.float32)
    if op.get_attr("align_corners") and large > 1:
        nearest = np.floor(rows * np.float32((small - 1) / (large - 1)) + np.float32(0.5))
    else:
        half = np.float32(0.5 * op.get_attr("half_pixel_centers"))
        nearest = np.floor((rows + half) * np.float32(small / large))
    return np.minimum(nearest, small - 1).astype(np.int32)


def _summed(
    new: Nodes,
    value: str,
    dims: list[int],
    axis: int,
    sources: np.ndarray,
    small: int,
    dtype: tf.DType,
) -> str:
    """Sums the rows along an axis of `value`, of shape `dims`, that were copied from the same row."""
    times, rest = divmod(dims[axis], small)
    if not rest and np.array_equal(sources, np.arange(dims[axis]) // times):
        blocks = [*dims[:axis], small, times, *dims[axis + 1 :]]
        value = new.add("Reshape", [value, new.numbers(blocks)], T=dtype, Tshape=tf.int32)
        return new.add("Sum", [value, new.numbers([axis + 1])], T=dtype, Tidx=tf.int32)
    order = [axis, *(each for each in range(len(dims)) if each != axis)]
    value = new.add("Transpose", [value, new.numbers(order)], T=dtype, Tperm=tf.int32)
    kinds = {"T": dtype, "Tindices": tf.int32, "Tnumsegments": tf.int32}
    count = new.constant(np.array(small, np.int32))
    value = new.add("UnsortedSegmentSum", [value, new.constant(sources), count], **kinds)
    back = [order.index(each) for each in range(len(dims))]
    return new.add("Transpose", [value, new.numbers(back)], T=dtype, Tperm=tf.int32)
