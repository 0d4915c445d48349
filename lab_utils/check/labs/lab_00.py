"""The checks of lab 00, orientation: counting FLOP, and a first step function."""

from collections.abc import Callable
from numbers import Real

import numpy as np

from lab_utils.check.todos import todo
from lab_utils.check.tools import a, expect


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
        "Three parts, and the text names them all: a matmul, a loss for each example, "
        "and their mean.",
        "The loss takes integer labels and logits as they are. What makes a scalar of [B]?",
    ),
    why="The op does the softmax itself, and a mean keeps the size of the loss whatever the batch "
    "size is.",
)
def first_step(step: Callable) -> str:
    """The mean cross-entropy of features @ weights, as TensorFlow ops."""
    from lab_utils import estimator  # noqa: F401  (TensorFlow, without its start-up notices)

    # isort: split
    import tensorflow as tf

    rng = np.random.default_rng(4)
    features = tf.constant(rng.normal(size=(24, 1024)), tf.float32)
    labels = tf.constant(np.arange(24), tf.int32)
    used = tf.function(step).get_concrete_function(features[:8], labels[:8])
    loss = step(features[:8], labels[:8])
    expect(
        isinstance(loss, tf.Tensor),
        f"step should return one tensor, the loss; yours returns {a(loss)}.",
    )
    expect(loss.shape.rank == 0, f"The loss should be a scalar, the mean; yours is {loss.shape}.")
    expect(bool(used.variables), "The loss does not depend on weights: features @ weights.")

    (weights,) = used.variables
    before = weights.numpy()
    try:
        weights.assign(tf.constant(rng.normal(size=before.shape), tf.float32))
        for count in (8, 24):
            logits = features[:count] @ weights
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels[:count], logits)
            _compare(float(step(features[:count], labels[:count])), losses.numpy(), logits.numpy())
    finally:
        weights.assign(before)
    return "A scalar, made by TensorFlow ops alone: this can be compiled."


def _compare(found: float, losses: np.ndarray, logits: np.ndarray) -> None:
    """The loss that a learner's step gives, beside the losses of the single examples."""
    count, right = len(losses), losses.mean()
    near = 1e-3 * right
    expect(
        abs(found - losses.sum()) > near,
        "That is the sum over the batch: take the mean, else the learning rate depends on its size.",
    )
    expect(
        count == 8 or abs(found - losses.sum() / 8) > near,
        f"A batch of 8 is right, and one of {count} is not: divide by the size of the batch at hand.",
    )
    expect(
        abs(found + right) > near,
        "The sign is wrong: the cross-entropy is the negative logarithm of the label's probability.",
    )
    shares = np.exp(logits - logits.max(axis=1, keepdims=True))
    shares /= shares.sum(axis=1, keepdims=True)
    twice = np.log(np.exp(shares).sum(axis=1)) - shares[np.arange(count), np.arange(count)]
    expect(
        abs(found - twice.mean()) > near,
        "That is the cross-entropy of the softmax: it takes logits, and does the softmax itself.",
    )
    expect(
        abs(found - right) < near,
        f"With other weights the mean cross-entropy of the logits, features @ weights, is {right:.4g}; "
        f"yours is {found:.4g}. It takes logits, without a softmax of yours.",
    )
