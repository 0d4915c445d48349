import os

os.environ["KERAS_BACKEND"] = "jax"

import keras
import numpy as np


class Noise(keras.layers.Layer):
    def __init__(self, rate):
        super().__init__()
        self.rate = rate
        self.seed = keras.random.SeedGenerator(1)

    def noise(self, inputs):
        return keras.random.uniform(keras.ops.shape(inputs), seed=self.seed)  # <- TPU343

    def call(self, inputs):
        noisy = keras.random.uniform([], seed=self.seed) < self.rate
        if os.environ.get("FAULTY"):
            return keras.ops.cond(
                noisy,
                lambda: inputs + self.noise(inputs),
                lambda: inputs,
            )
        noise = self.noise(inputs)
        return keras.ops.where(noisy, inputs + noise, inputs)


keras.distribution.set_distribution(keras.distribution.DataParallel())
model = keras.Sequential([keras.Input((16,)), Noise(0.5), keras.layers.Dense(1)])
model.compile("sgd", "mse")
rows = np.random.rand(256, 16).astype("float32")
model.fit(rows, rows[:, 0], batch_size=64, epochs=2)
