import os

os.environ["KERAS_BACKEND"] = "jax"

import keras
import numpy as np

keras.distribution.set_distribution(keras.distribution.DataParallel())
images = np.random.rand(320, 28, 28, 1).astype("float32")
labels = np.random.randint(0, 10, 320)
model = keras.Sequential(
    [
        keras.Input((28, 28, 1)),
        keras.layers.Conv2D(16, 3, activation="relu"),
        keras.layers.Flatten(),
        keras.layers.Dense(10, activation="softmax"),
    ]
)
model.compile("adam", "sparse_categorical_crossentropy")
size = 20 if os.environ.get("FAULTY") else 32
model.fit(images, labels, batch_size=size, epochs=2)  # <- TPU106
