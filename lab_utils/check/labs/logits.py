"""Whether what a network gives are logits: any numbers, with nothing done to them at the end."""

import numpy as np

from lab_utils.check.tools import expect
from lab_utils.estimator import tf

_PASSED = {"Identity", "Cast", "Reshape", "Squeeze", "IdentityN", "ReadVariableOp"}
_BENT = {"Relu", "Relu6", "LeakyRelu", "Elu", "Selu", "Sigmoid", "Tanh", "Softplus", "Maximum"}


def expect_logits(values: np.ndarray) -> None:
    """Raises `Wrong` where these are probabilities or their logarithms.

    Args:
        values: float [examples, classes], of a network whose weights are drawn at random.
    """
    values = np.asarray(values, np.float64)
    total = values.sum(axis=-1)
    expect(
        not (np.allclose(total, 1.0, atol=1e-2) and (values >= 0).all()),
        "These values sum to 1: leave the softmax out, as the loss applies one itself.",
    )
    logarithm = np.log(np.exp(np.clip(values, -80, 80)).sum(axis=-1))
    expect(
        not np.allclose(logarithm, 0.0, atol=1e-2),
        "These are log-probabilities, but the loss expects logits: leave log_softmax out.",
    )


def expect_bare(logits: tf.Tensor) -> None:
    """Raises `Wrong` where a graph's last op is an activation: with it, some logits could not be reached."""
    op = logits.op
    while op.type in _PASSED and op.inputs:
        op = op.inputs[0].op
    expect(
        op.type not in _BENT,
        f"There is an activation ({op.type}) on the last layer, but logits may be any number: leave it out.",
    )
