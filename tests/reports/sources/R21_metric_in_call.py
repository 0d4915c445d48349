import os

os.environ["KERAS_BACKEND"] = "jax"

import keras
import numpy as np

FAULTY = bool(os.environ.get("FAULTY"))


class Net(keras.Model):
    def __init__(self):
        super().__init__()
        self.dense = keras.layers.Dense(4)
        self.mean = keras.metrics.Mean(name="output_mean")

    def call(self, x):
        x = self.dense(x)
        if FAULTY:
            self.mean.update_state(keras.ops.mean(x))  # <- TPU343
        return x

    def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
        if not FAULTY:
            self.mean.update_state(keras.ops.mean(y_pred))
        return super().compute_loss(x, y, y_pred, sample_weight, training)


keras.distribution.set_distribution(keras.distribution.DataParallel())
model = Net()
model.compile("sgd", "mse")
rows = np.random.rand(256, 4).astype("float32")
model.fit(rows, rows, batch_size=64, epochs=2)
