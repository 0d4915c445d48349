"""Whether a Keras model of the digits computes what lab 01's network does with the same weights."""

from collections.abc import Callable

import keras
import numpy as np

from lab_utils.check.tools import expect
from lab_utils.estimator import tf


def expect_digits_model(made: keras.Model, given: np.ndarray, scaled: np.ndarray) -> None:
    """Raises `Wrong` unless it is a convolution, relu, max pooling, flatten, dense, relu and dense.

    Args:
        made: the model, in float32.
        given: its input for some images, [B, 8, 8] or [B, 8, 8, 1] of any type.
        scaled: what the convolution should get of them, float32 [B, 8, 8, 1].
    """
    outputs = np.asarray(made(given, training=False))
    weights = [np.asarray(each) for each in made.weights]
    shapes = ", ".join(str(list(each.shape)) for each in weights)
    found = {each.shape: each for each in weights}
    for shape, told in (
        ((3, 3, 1, 32), "The convolution should be 3 by 3 with 32 filters"),
        (
            (512, 64),
            "A hidden layer of 64 should get the 512 numbers that 'same' padding, 2 by 2 pooling and flatten "
            "leave of a picture",
        ),
        ((64, 10), "The last layer should make ten logits of the 64"),
    ):
        expect(shape in found, f"{told}; the weights have the shapes {shapes}.")

    def gives(pool: Callable, bend: Callable, bend_hidden: Callable, bend_last: Callable) -> bool:
        net = bend(tf.nn.conv2d(scaled, found[3, 3, 1, 32], 1, "SAME"))
        net = tf.reshape(pool(net, 2, 2, "VALID"), [len(scaled), -1])
        wanted = bend_last(bend_hidden(net @ found[512, 64]) @ found[64, 10])
        return np.allclose(outputs, wanted, atol=1e-3)

    largest, relu, none = tf.nn.max_pool2d, tf.nn.relu, tf.identity
    for layers, told in (
        ((tf.nn.avg_pool2d, relu, relu, none), "The pooling takes means; take the maximum."),
        ((largest, none, relu, none), "The convolution has no ReLU."),
        (
            (largest, relu, none, none),
            "The hidden layer has no ReLU: two layers without one are one layer.",
        ),
        ((largest, none, none, none), "Convolution and hidden layer have no ReLU."),
        ((largest, relu, relu, relu), "The last layer has a ReLU: logits may be negative."),
        (
            (largest, relu, relu, tf.nn.softmax),
            "The outputs add up to 1: that is a softmax. The loss is of logits, so leave it out.",
        ),
    ):
        expect(not gives(*layers), told)
    expect(
        gives(largest, relu, relu, none),
        "With these weights lab 01's model gives other logits: convolution, ReLU, 2 by 2 max pooling, "
        "flatten, dense, ReLU, dense.",
    )
    expect(
        np.allclose(outputs, np.asarray(made(given, training=True)), atol=1e-3),
        "In training the model does something more (dropout?); lab 01's does not.",
    )
