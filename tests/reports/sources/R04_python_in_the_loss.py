import numpy as np
from ported import FAULTY, arrays, strategy, tf


def cost(labels, logits):
    value = tf.nn.sparse_softmax_cross_entropy_with_logits(tf.cast(labels, tf.int32)[:, 0], logits)
    if FAULTY:
        value *= tf.py_function(lambda v: np.float32(1.0), [value], tf.float32)  # <- TPU205
    return value


with strategy().scope():
    model = tf.keras.Sequential([tf.keras.layers.Dense(8, input_shape=[8])])
    model.compile("sgd", cost)
rows, labels = arrays()
data = tf.data.Dataset.from_tensor_slices((rows, labels[:, None])).batch(64, drop_remainder=True)
model.fit(data, epochs=2)
