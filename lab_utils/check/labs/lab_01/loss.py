"""The loss of a batch beside what its logits make it."""

import numpy as np

from lab_utils.check.tools import expect


def compare(loss: float, logits: np.ndarray, truths: np.ndarray) -> None:
    """The loss of a batch beside the cross-entropy of its logits."""
    right, twice = _cross_entropy(logits, truths), _cross_entropy(_softmax(logits), truths)
    expect(
        abs(loss - twice) > 1e-4,
        "Softmax is applied twice: the loss takes logits, and does the softmax itself.",
    )
    expect(
        abs(loss - right) < 1e-3,
        f"The loss should be the mean cross-entropy of the logits, {right:.4f} after one step; yours is "
        f"{loss:.4f}.",
    )


def _softmax(logits: np.ndarray) -> np.ndarray:
    shares = np.exp(logits - logits.max(axis=1, keepdims=True))
    return shares / shares.sum(axis=1, keepdims=True)


def _cross_entropy(logits: np.ndarray, truths: np.ndarray) -> float:
    return float(-np.log(_softmax(logits)[np.arange(len(truths)), truths]).mean())
