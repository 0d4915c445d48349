"""Where the code of the pages of the rules for Keras on JAX belongs: in a main around it."""

import numpy as np

from rules import Port
from rules.snippets import Snippet


def _model(width=64):
    import keras

    layers = [keras.Input((8,)), keras.layers.Dense(width, name="wide")]
    layers.append(keras.layers.Dense(1, name="score"))
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


def _compiled(snippet: Snippet) -> Port:
    """The block changes or makes a model, and may fit it."""

    def main():
        import keras

        given = {
            "model": _model,
            "make_model": lambda: _model,
            "keras": lambda: keras,
            "rows": lambda: np.zeros([1024, 8], np.float32),
            "labels": lambda: np.zeros([1024], np.float32),
        }
        snippet.run(given)

    return Port(main=main)


def _laid_out(snippet: Snippet) -> Port:
    """The block gives a model's variables a layout."""

    def main():
        import keras

        mesh = keras.distribution.DeviceMesh((2, 4), ["batch", "model"])
        layout = keras.distribution.LayoutMap(mesh)
        snippet.run({"layout": lambda: layout})
        parallel = keras.distribution.ModelParallel(layout_map=layout, batch_dim_name="batch")
        keras.distribution.set_distribution(parallel)
        _model().fit(np.zeros([1024, 8]), np.zeros([1024]), batch_size=64)

    return Port(main=main)


def _distributed(snippet: Snippet) -> Port:
    """The block makes a distribution."""

    def main():
        import jax
        import keras

        made = snippet.run({"jax": lambda: jax, "keras": lambda: keras})
        keras.distribution.set_distribution(made.get("distribution"))
        _model().fit(np.zeros([1024, 8]), np.zeros([1024]), batch_size=64)

    return Port(main=main)


def _called(snippet: Snippet) -> Port:
    """The block is the call of a model."""

    def main():
        import keras

        class Noisy(keras.Model):
            def __init__(self):
                super().__init__()
                self.dense, self.seed = keras.layers.Dense(1), keras.random.SeedGenerator(1)

            call = snippet.run({"keras": lambda: keras}).get("call")

        model = Noisy()
        model.compile("adam", "mse")
        model.fit(np.zeros([1024, 8]), np.zeros([1024]), batch_size=64)

    return Port(main=main)


FRAMES = {
    "TPU250": _fitted,
    "TPU251": _laid_out,
    "TPU252": _distributed,
    "TPU253": _called,
    "TPU254": _compiled,
    "TPU255": _compiled,
    "TPU256": _compiled,
    "TPU257": _compiled,
    "TPU259": _compiled,
}
