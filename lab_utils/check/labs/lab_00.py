"""The checks of lab 00, orientation: counting FLOP, and a first step function."""

from collections.abc import Callable

import numpy as np

from lab_utils.check.todos import todo
from lab_utils.check.tools import a, expect


@todo(
    "0a",
    hints=(
        "The result has m * n entries, each the sum of k products.",
        "k multiplications and k additions for each of m * n entries.",
    ),
)
def product(matmul_flop: Callable) -> str:
    """Two FLOP for each of m * k * n multiply-adds."""
    found = matmul_flop(3, 5, 7)
    expect(found is not None, f"matmul_flop returns {a(found)}.")
    expect(found != 105, "That is half of it: an addition goes with each multiplication.")
    expect(
        found == 210,
        f"[3, 5] times [5, 7] has 21 entries, each the sum of k products, k = 5; yours gives {found} FLOP.",
    )
    return "Two FLOP for each of m * k * n multiply-adds."


@todo(
    "0b",
    hints=(
        "How many FLOP does the whole grid do in one cycle?",
        "rows * columns cells, two FLOP each, hertz times a second.",
    ),
)
def peak(peak_flops: Callable) -> str:
    """The peak of a matrix unit."""
    found = peak_flops(4, 8, 10.0)
    expect(found is not None, f"peak_flops returns {a(found)}.")
    expect(found != 320, "That is half of it: each cell multiplies and adds.")
    expect(
        found not in (64, 6.4),
        "Those are not FLOP a second: hertz is the number of cycles a second.",
    )
    expect(
        found == 640,
        f"A grid of 4 by 8 has 32 cells; at 10 cycles a second they do 640 FLOP/s, not {found}.",
    )
    return "Every cell multiplies and adds once a cycle."


@todo(
    "0c",
    hints=(
        "features @ weights is a matrix product of TensorFlow.",
        "tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits) -> [B]; tf.reduce_mean -> [].",
    ),
)
def first_step(step: Callable) -> str:
    """The mean cross-entropy of features @ weights, as TensorFlow ops."""
    from lab_utils import estimator  # noqa: F401  (TensorFlow, without its start-up notices)

    # isort: split
    import tensorflow as tf

    rng = np.random.default_rng(4)
    features = tf.constant(rng.normal(size=(8, 1024)), tf.float32)
    labels = tf.constant(np.arange(8), tf.int32)
    used = tf.function(step).get_concrete_function(features, labels)
    loss = step(features, labels)
    expect(isinstance(loss, tf.Tensor), f"step should return a tensor; yours returns {a(loss)}.")
    expect(loss.shape.rank == 0, f"The loss should be a scalar, the mean; yours is {loss.shape}.")
    expect(bool(used.variables), "The loss does not depend on weights: features @ weights.")

    (weights,) = used.variables
    before = weights.numpy()
    try:
        weights.assign(tf.constant(rng.normal(size=before.shape), tf.float32))
        logits = features @ weights
        right = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits))
        found = float(step(features, labels))
    finally:
        weights.assign(before)
    expect(
        abs(found - 8 * float(right)) > 1e-3 * float(right),
        "That is the sum over the batch: take the mean, else the learning rate depends on its size.",
    )
    expect(
        abs(found - float(right)) < 1e-3 * float(right),
        f"With other weights the loss should be {float(right):.4g}; yours is {found:.4g}. The cross-entropy "
        "takes logits, without a softmax of yours.",
    )
    return "A scalar, made by TensorFlow ops alone: this can be compiled."
