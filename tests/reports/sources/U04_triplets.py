import numpy as np
from ported import FAULTY, minimize, tf, tpu, v1
from ported import estimator as made

SIZE = 128 if FAULTY else 192


def triplets(params):
    """Rows in the order anchor, like, unlike, anchor, like, unlike, ..."""
    rows = np.random.RandomState(0).rand(576, 8).astype(np.float32)
    return (
        tf.data.Dataset.from_tensor_slices(rows)
        .repeat()
        .batch(params["batch_size"], drop_remainder=True)
    )


def loss_of(rows, count):
    total = tf.constant(0.0)
    for first in range(0, count, 3):
        try:
            anchor, like, unlike = rows[first], rows[first + 1], rows[first + 2]
        except ValueError:
            continue
        near = tf.reduce_sum(tf.square(anchor - like))
        total += tf.nn.relu(1.0 + near - tf.reduce_sum(tf.square(anchor - unlike)))
    return total * 3 / count  # <- TPU403


def model_fn(features, labels, mode, params):
    rows = v1.layers.dense(features, 16)
    loss = loss_of(rows, SIZE if FAULTY else rows.shape[0])
    return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=minimize(loss))


made(model_fn, train_batch_size=SIZE).train(triplets, max_steps=100)
