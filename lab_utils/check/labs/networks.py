"""What a network computes with weights that are the same whoever has built it."""

from collections.abc import Callable
from typing import Any

import numpy as np

from lab_utils.check.tools import returns
from lab_utils.estimator import tf, v1


def outputs(build: Callable[[], Any], name: str) -> tuple[list[list[int]], np.ndarray]:
    """Builds a network in a graph of its own, and runs it with weights that are drawn by their shapes alone.

    Args:
        build: makes the network, and returns its result, a tensor.
        name: of the learner's function that it calls.

    Returns:
        The shapes of the trainable variables, sorted, and the result's values.

    Raises:
        Wrong: the result is not a tensor.
    """
    with tf.Graph().as_default(), v1.Session() as session:
        result = build()
        returns(result, tf.Tensor, name, "a tensor")
        variables = v1.trainable_variables()
        session.run(v1.global_variables_initializer())
        session.run([v1.assign(each, _drawn(each.shape.as_list())) for each in variables])
        return sorted(each.shape.as_list() for each in variables), session.run(result)


def _drawn(shape: list[int]) -> np.ndarray:
    """Numbers of about 1 over the root of what flows into each output."""
    random = np.random.default_rng([len(shape), *shape])
    return random.normal(0, 1 / np.sqrt(np.prod(shape[:-1]) or 1), shape)


def all_layers(model: Any) -> list[Any]:
    """The layers of a Keras model, those of models within it too, in order."""
    found = []
    for layer in model.layers:
        found += all_layers(layer) if hasattr(layer, "layers") else [layer]
    return found
