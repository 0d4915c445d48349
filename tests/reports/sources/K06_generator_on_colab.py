import os

import numpy as np
from ported import FAULTY, arrays, strategy, tf


def rows():
    while True:
        yield np.random.rand(64, 8).astype(np.float32), np.zeros([64], np.int32)


with strategy("grpc://" + os.environ["COLAB_TPU_ADDR"]).scope():
    model = tf.keras.Sequential([tf.keras.layers.Dense(8, input_shape=[8])])
    model.compile("sgd", tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))
if FAULTY:
    model.fit(rows(), steps_per_epoch=10, epochs=2)  # <- TPU228
else:
    x, y = arrays()
    model.fit(x, y, batch_size=64, epochs=2)
