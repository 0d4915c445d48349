import os

os.environ["KERAS_BACKEND"] = "jax"

import keras
import numpy as np

FAULTY = bool(os.environ.get("FAULTY"))


class Spread(keras.layers.Layer):
    """Lets high values spread to their neighbours, but not above a mask."""

    def __init__(self):
        super().__init__()
        self.pool = keras.layers.MaxPooling1D(3, strides=1, padding="same")

    def call(self, mask):
        marker = 0.5 * mask
        if FAULTY:

            def changes(last, new):
                return keras.ops.any(keras.ops.not_equal(last, new))

            def spread(last, new):
                return new, keras.ops.minimum(self.pool(new), mask)

            loop = keras.ops.while_loop
            return loop(changes, spread, (mask, marker))[1]  # <- TPU343
        for _ in range(8):
            marker = keras.ops.minimum(self.pool(marker), mask)
        return marker


keras.distribution.set_distribution(keras.distribution.DataParallel())
inputs = keras.Input((32, 1))
values = Spread()(keras.layers.Conv1D(4, 3, padding="same")(inputs))
model = keras.Model(inputs, keras.layers.Dense(1)(keras.layers.Flatten()(values)))
model.compile("sgd", "mse")
rows = np.random.rand(256, 32, 1).astype("float32")
model.fit(rows, rows[:, 0, 0], batch_size=64, epochs=2)
