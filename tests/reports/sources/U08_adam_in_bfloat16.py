import os

os.environ["KERAS_BACKEND"] = "jax"

import keras
import numpy as np

FAULTY = bool(os.environ.get("FAULTY"))
keras.config.set_dtype_policy("bfloat16" if FAULTY else "mixed_bfloat16")
keras.distribution.set_distribution(keras.distribution.DataParallel())
rows = np.random.RandomState(0).rand(512, 64).astype("float32")
classes = rows[:, :8].argmax(1)
model = keras.Sequential(
    [
        keras.Input((64,)),
        keras.layers.Dense(256, activation="relu"),
        keras.layers.Dense(8),
    ]
)
loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
model.compile(keras.optimizers.Adam(1e-5), loss)
model.fit(rows, classes, batch_size=64, epochs=2)  # <- TPU259
