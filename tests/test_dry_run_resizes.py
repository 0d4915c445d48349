"""The gradient of nearest-neighbour resizing, which this machine's bridge lacks, by other ops."""

import numpy as np
import pytest

from lab_utils.dry_run.graphs import all_nodes
from lab_utils.dry_run.lower.graph_def import pruned, rename_functions
from lab_utils.dry_run.lower.resizes import sum_resizes
from lab_utils.estimator import tf, v1


def _nested(function):
    return tf.function(lambda grads: 2.0 * tf.function(function)(grads / 2.0))


@pytest.mark.parametrize("within", [lambda f: f, tf.function, _nested], ids=["", "in", "in two"])
@pytest.mark.parametrize(
    "how", [{}, {"align_corners": True}, {"half_pixel_centers": True}], ids=str
)
@pytest.mark.parametrize("large", [(8, 6), (7, 5), (4, 3), (3, 1), (9, 30)], ids=str)
def test_it_is_what_tensorflow_computes(large, how, within):
    given = np.random.default_rng(0).integers(-9, 9, [2, *large, 3]).astype(np.float32)

    def resized(grads):
        return tf.raw_ops.ResizeNearestNeighborGrad(grads=grads, size=[4, 3], **how)

    with tf.Graph().as_default() as graph, v1.Session() as session:
        gradient = within(resized)(tf.constant(given))
        expected = session.run(gradient)
    graph_def = pruned(graph, [gradient.op])
    sum_resizes(graph_def, graph)
    rename_functions(graph_def)
    assert "ResizeNearestNeighborGrad" not in {node.op for node in all_nodes(graph_def)}
    with tf.Graph().as_default(), v1.Session() as session:
        (found,) = tf.graph_util.import_graph_def(graph_def, return_elements=[gradient.name])
        np.testing.assert_array_equal(session.run(found), expected)


def test_sizes_are_numbers_where_the_program_has_version_1_shapes():
    v1.disable_v2_tensorshape()
    try:
        with tf.Graph().as_default() as graph:
            gradient = tf.raw_ops.ResizeNearestNeighborGrad(
                grads=tf.zeros([1, 7, 4, 3]), size=[4, 3]
            )
        sum_resizes(graph_def := pruned(graph, [gradient.op]), graph)
    finally:
        v1.enable_v2_tensorshape()
    assert "ResizeNearestNeighborGrad" not in {node.op for node in graph_def.node}
