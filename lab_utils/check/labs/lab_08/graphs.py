"""A network in a graph of its own, as the checks of lab 08 look at it."""

from collections.abc import Callable

import numpy as np

from lab_utils.check.labs.logits import expect_bare, expect_logits
from lab_utils.check.tools import a, expect
from lab_utils.estimator import tf, v1

SIDE = 152  # pixels


def logits_of(inference: Callable, side: int = SIDE) -> tf.Tensor:
    """The logits of a batch of four in the default graph, after a look at their kind."""
    images = v1.placeholder(tf.float32, [4, side, side, 3], name="images")
    logits = inference(images)
    name = getattr(inference, "__name__", "the function")
    expect(
        isinstance(logits, tf.Tensor), f"{name} should return logits; yours returns {a(logits)}."
    )
    expect(
        logits.shape.as_list() == [4, 5],
        f"Logits of 4 images and 5 kinds of flower have shape [4, 5]; yours {logits.shape}.",
    )
    expect(
        logits.dtype == tf.float32,
        f"The loss wants float32 logits; yours are {logits.dtype.name}: cast them at the end.",
    )
    return logits


def weights() -> int:
    """The number of weights in the default graph."""
    return sum(v.shape.num_elements() for v in v1.trainable_variables())


def looks_everywhere(logits: tf.Tensor) -> bool:
    """Whether the logits change with the pixels of each corner and of the middle.

    Raises:
        Wrong: they are no logits.
    """
    expect_bare(logits)
    random = np.random.default_rng(0)
    images = random.uniform(0, 1, logits.graph.get_tensor_by_name("images:0").shape)
    with v1.Session() as session:
        session.run(v1.global_variables_initializer())
        before = session.run(logits, {"images:0": images})
        expect_logits(before)
        end = images.shape[1] - 40
        for row, column in ((0, 0), (0, end), (end, 0), (end, end), (end // 2, end // 2)):
            changed = images.copy()
            changed[:, row : row + 40, column : column + 40] = random.uniform(0, 1, (4, 40, 40, 3))
            if np.allclose(before, session.run(logits, {"images:0": changed}), atol=1e-7):
                return False
    return True
