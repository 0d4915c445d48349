"""Mistakes of programs of Keras on JAX, each with its own main.

They are judged in a process whose Keras is on JAX (keras_jax_worker.py), and so are registered apart.
"""

import numpy as np

from rules import Port, Wrong

PORTS: dict[str, Wrong] = {}
WIDTH = 8


def wrong(rule, place=""):
    """Registers a wrong port."""

    def register(make):
        PORTS[make.__name__] = Wrong(rule, make, place)
        return make

    return register


def rows(count=1024):
    """Examples and labels."""
    numbers = np.random.default_rng(1).normal(size=[count, WIDTH]).astype(np.float32)
    return numbers, numbers.sum(axis=1)


def data_parallel():
    """All devices share each batch."""
    import keras

    keras.distribution.set_distribution(keras.distribution.DataParallel())


def small():
    """A compiled model."""
    import keras

    layers = [
        keras.Input((WIDTH,)),
        keras.layers.Dense(64, activation="relu"),
        keras.layers.Dense(1),
    ]
    model = keras.Sequential(layers)
    model.compile("adam", "mse")
    return model


@wrong("TPU250")
def a_last_batch_that_does_not_divide(wrong):
    def main():
        data_parallel()
        model = small()
        model.fit(*rows(1030 if wrong else 1024), batch_size=64)  # <- TPU250

    return Port(main=main)
