"""The transformer beside the LSTM: TODO 12g, attention to what was read so far."""

from collections.abc import Callable

import numpy as np

from lab_utils.check.todos import todo
from lab_utils.check.tools import a, expect
from lab_utils.estimator import tf


def _reference(query: np.ndarray, key: np.ndarray, value: np.ndarray, mask: bool = True) -> np.ndarray:
    scores = query @ key.swapaxes(1, 2) / np.sqrt(query.shape[-1])
    if mask:
        scores = np.where(np.tri(scores.shape[1], dtype=bool), scores, -np.inf)
    shares = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return (shares / shares.sum(axis=-1, keepdims=True)) @ value


@todo(
    "12g",
    hints=(
        "Which shape do the scores have? Row i of them belongs to place i, and column j to the place that it looks at.",
        "Hide the later places before the softmax: what score gives a share of 0?",
        "tf.linalg.band_part keeps the part of a matrix on and below its diagonal; keras.ops.tri makes one.",
    ),
    why="All places are computed in one matmul, and the mask keeps each from looking ahead.",
)
def causal_attention(attend: Callable) -> str:
    """Softmax-weighted values of the places so far, for several shapes."""
    draw = np.random.default_rng(4).standard_normal
    for shape in ((3, 5, 4), (2, 9, 16)):
        query, key, value = (draw(shape).astype(np.float32) for _ in range(3))
        found = attend(*map(tf.constant, (query, key, value)))
        expect(
            hasattr(found, "shape"), f"attend should return a tensor; yours returns {a(found)}."
        )
        expect(
            tuple(found.shape) == shape,
            f"From {list(shape)} should come {list(shape)}; yours gives {list(found.shape)}.",
        )
        found, right = np.asarray(found), _reference(query, key, value)
        expect(np.all(np.isfinite(found)), "Some outputs are nan or infinite.")
        if np.allclose(found, right, atol=1e-3):
            continue
        expect(
            not np.allclose(found, _reference(query, key, value, mask=False), atol=1e-3),
            "Each place looks at all places, also at those that come later. There it would read the answer.",
        )
        later = value.copy()
        later[:, -1] += 1.0
        other = np.asarray(attend(*map(tf.constant, (query, key, later))))
        expect(
            np.allclose(found[:, :-1], other[:, :-1], atol=1e-5),
            "The outputs of earlier places change with the last value: the mask lets them look ahead.",
        )
        expect(
            np.allclose(found[:, 0], value[:, 0], atol=1e-3),
            "The first place can look only at itself, so its output is its own value. In yours the shares of "
            "a row do not add up to 1, or it looks elsewhere: is the mask set before the softmax, and is the "
            "softmax over the last axis?",
        )
        root = np.sqrt(shape[-1])
        expect(
            not np.allclose(found, _reference(root * query, key, value), atol=1e-3),
            f"The scores are not divided by the square root of the width, here {root:g}.",
        )
        expect(
            False,
            f"The outputs differ from softmax(query key^T / sqrt(width)) value by {np.abs(found - right).max():.2g}.",
        )
    return "Each place sees itself and those before it, in one matmul for all."
