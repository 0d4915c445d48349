import os

import numpy as np
from ported import FAULTY, arrays, config, model_fn, tf, tpu


def squash(row, label):
    if FAULTY:
        row = tf.py_function(lambda values: np.tanh(values), [row], tf.float32)  # <- TPU228
        return tf.ensure_shape(row, [8]), label
    return tf.tanh(row), label


def input_fn(params):
    data = tf.data.Dataset.from_tensor_slices(arrays()).map(squash)
    return data.shuffle(512).repeat().batch(params["batch_size"], drop_remainder=True)


address = "grpc://" + os.environ["COLAB_TPU_ADDR"]
port = tpu.TPUEstimator(model_fn, config=config(address), use_tpu=True, train_batch_size=64)
port.train(input_fn, max_steps=100)
