"""The gradient of nearest-neighbour resizing, for which the bridge of a CPU build has no kernel, as sums."""

from typing import Any

from lab_utils.dry_run.lower.nodes import nodes_of
from lab_utils.estimator import tf


def sum_resizes(graph_def: Any, graph: Any) -> None:
    """Turns each such gradient of a pruned `graph` into a sum over the copies of each pixel.

    One whose sizes are not fixed, or no whole multiples, stays.
    """
    for node, op, new in nodes_of(graph_def, graph, {"ResizeNearestNeighborGrad"}):
        shapes = op.inputs[0].shape, op.outputs[0].shape
        if op.get_attr("align_corners") or not all(each.is_fully_defined() for each in shapes):
            continue
        # Lists, as version 1's shapes hold no ints: [batch, height, width, channels].
        (count, *large, channels), (_, *small, _) = (each.as_list() for each in shapes)
        if any(a % b for a, b in zip(large, small, strict=True)):
            continue
        (height, width), dtype = small, op.inputs[0].dtype
        blocks = [count, height, large[0] // height, width, large[1] // width, channels]
        inputs = [node.input[0], new.numbers(blocks)]
        value = new.add("Reshape", inputs, T=dtype, Tshape=tf.int32)
        value = new.add("Sum", [value, new.numbers([2, 4])], T=dtype, Tidx=tf.int32)
        new.replace(node, value, dtype)
