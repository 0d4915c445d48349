"""Where the code of the pages of the rules for Keras on JAX belongs: in a main around it."""

import numpy as np

from rules import Port
from rules.snippets import Snippet


def _model(width=64):
    import keras

    layers = [keras.Input((8,)), keras.layers.Dense(width, name="wide"), keras.layers.Dense(1)]
    model = keras.Sequential(layers)
    model.compile("adam", "mse")
    return model


def _fitted(snippet: Snippet) -> Port:
    """The block fits a model under DataParallel."""

    def main():
        import keras

        keras.distribution.set_distribution(keras.distribution.DataParallel())
        given = {
            "model": _model,
            "rows": lambda: np.zeros([1030, 8], np.float32),
            "labels": lambda: np.zeros([1030], np.float32),
        }
        snippet.run(given)

    return Port(main=main)


FRAMES = {"TPU250": _fitted}
