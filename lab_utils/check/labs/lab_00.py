"""The checks of lab 00, orientation: counting FLOP, and a first step function."""

from collections.abc import Callable
from numbers import Real

import numpy as np

from lab_utils.check.todos import Cases, todo
from lab_utils.check.tools import a, expect, returns

_LOSSES = "tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)"


@todo(
    "0a",
    hints=(
        "How many entries has the result, and what is each of them a sum of?",
        "m * n entries, each the sum of k products. By custom that is k multiplications and k "
        "additions.",
    ),
    why="Each of the m * n entries takes k multiplications and k additions.",
)
def product(matmul_flop: Callable) -> str:
    """Two FLOP for each of m * k * n multiply-adds."""
    for m, k, n in ((3, 5, 7), (11, 2, 6)):
        found = matmul_flop(m, k, n)
        expect(
            isinstance(found, Real),
            f"matmul_flop should return one number; yours returns {a(found)}.",
        )
        right = 2 * m * k * n
        case = f"[{m}, {k}] times [{k}, {n}]:"
        expect(
            2 * found != right,
            f"{case} that is half of it: an addition goes with each multiplication.",
        )
        expect(
            found != right - m * n,
            f"{case} {found:,} counts k - 1 additions for each entry. By custom it is k additions: a "
            "multiplication and an addition for each of the k products.",
        )
        expect(
            not any(found * unit == right for unit in (1e3, 1e6, 1e9, 1e12)),
            f"{case} yours gives {found:.3g}: return FLOP, rather than GFLOP or the like.",
        )
        expect(
            found == right,
            f"{case} {m * n} entries, each the sum of k products, k = {k}; yours gives {found:,} FLOP.",
        )
    return "Two FLOP for each of m * k * n multiply-adds."


@todo(
    "0b",
    hints=(
        "How many cells has the grid, and what does one of them do in a cycle?",
        "All cells together do so much in a cycle; hertz is the number of cycles in a second.",
    ),
    why="Every cell does two FLOP in each cycle, and there are hertz cycles in a second.",
)
def peak(peak_flops: Callable) -> str:
    """The peak of a matrix unit."""
    for rows, columns, hertz in ((3, 5, 7.0), (8, 2, 100.0)):
        found = peak_flops(rows, columns, hertz)
        expect(
            isinstance(found, Real),
            f"peak_flops should return one number; yours returns {a(found)}.",
        )
        cells = rows * columns
        right = 2 * cells * hertz
        case = f"{rows} rows of {columns} columns at {hertz:.0f} hertz:"
        expect(found != right / 2, f"{case} that is half of it: each cell multiplies and adds.")
        expect(
            found != 2 * right,
            f"{case} that is twice as much: one multiplication and one addition make two.",
        )
        expect(
            found not in (2 * cells, 2 * cells / hertz),
            f"{case} {found:.3g} are not FLOP a second: multiply what all cells do in a cycle by hertz, the number of cycles a second.",
        )
        expect(
            not any(found * unit == right for unit in (1e3, 1e6, 1e9, 1e12)),
            f"{case} yours gives {found:.3g}: return FLOP/s, rather than TFLOP/s or the like.",
        )
        expect(
            found == right,
            f"{case} a grid of {cells} cells (rows times columns), each doing two FLOP in a cycle, makes "
            f"{right:,.0f} FLOP/s; yours gives {found:,.0f}.",
        )
    return "Every cell multiplies and adds once a cycle."


@todo(
    "0c",
    hints=(
        "Three parts, and the text names them all: a matmul, a loss for each example, and their mean.",
        "The loss takes integer labels and logits as they are. What makes a scalar of [B]?",
    ),
    why="The op does the softmax itself, and a mean keeps the size of the loss whatever the batch size is.",
    slips={
        (
            "reduce_mean(losses)",
            "reduce_sum(losses)",
        ): "That is the sum over the batch: take the mean, else "
        "the learning rate depends on its size.",
        (
            "tf.reduce_mean(losses)",
            "tf.reduce_sum(losses) / 8",
        ): "A batch of 8 is right, and others are not: divide by the size of the batch at hand.",
        (
            "tf.reduce_mean(losses)",
            "-tf.reduce_mean(losses)",
        ): "The sign is wrong: the cross-entropy is the "
        "negative logarithm of the label's probability.",
        (
            _LOSSES,
            _LOSSES.replace("logits)", "tf.nn.softmax(logits))"),
        ): "That is the cross-entropy of the "
        "softmax: it takes logits, and does the softmax itself.",
    },
)
def first_step(step: Callable) -> Cases:
    """The mean cross-entropy of features @ weights, as TensorFlow ops."""
    from lab_utils import estimator  # noqa: F401  (TensorFlow, without its start-up notices)

    # isort: split
    import tensorflow as tf

    rng = np.random.default_rng(4)
    features = tf.constant(rng.normal(size=(24, 1024)), tf.float32)
    labels = tf.constant(np.arange(24), tf.int32)
    used = tf.function(step, autograph=False).get_concrete_function(features[:8], labels[:8])
    loss = step(features[:8], labels[:8])
    returns(loss, tf.Tensor, "step", "one tensor, the loss")
    yield "The loss is a scalar, the mean, of shape", loss.shape
    expect(bool(used.variables), "The loss does not depend on weights: features @ weights.")
    (weights,) = used.variables
    before = weights.numpy()
    try:
        weights.assign(tf.constant(rng.normal(size=before.shape), tf.float32))
        losses = [float(step(features[:count], labels[:count])) for count in (8, 24)]
    finally:
        weights.assign(before)
    for count, loss in zip((8, 24), losses, strict=True):
        label = f"The mean cross-entropy of {count} examples with other weights"
        yield f"{label}, of the logits without a softmax of yours", loss, 1e-3
    return "A scalar, made by TensorFlow ops alone: this can be compiled."
