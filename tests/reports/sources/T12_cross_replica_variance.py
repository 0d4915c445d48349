import os

import numpy as np
import tensorflow as tf
from tensorflow.python.tpu import tpu_function

FAULTY = bool(os.environ.get("FAULTY"))


def over_cores(value):
    cores = tpu_function.get_tpu_context().number_of_shards or 1
    return value if cores == 1 else tf.contrib.tpu.cross_replica_sum(value) / cores


def normalised(x):
    axes = [0, 1, 2]
    if FAULTY:
        mean, variance = tf.nn.moments(x, axes)  # <- TPU403
        mean, variance = over_cores(mean), over_cores(variance)
    else:
        mean = over_cores(tf.reduce_mean(x, axes))
        variance = over_cores(tf.reduce_mean(tf.square(x), axes)) - tf.square(mean)
    return (x - mean) * tf.rsqrt(variance + 1e-3)


def model_fn(features, labels, mode, params):
    x = normalised(tf.layers.conv2d(features, 8, 3, use_bias=False))
    logits = tf.layers.dense(tf.reduce_mean(tf.nn.relu(x), [1, 2]), 4)
    loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
    optimizer = tf.contrib.tpu.CrossShardOptimizer(tf.train.GradientDescentOptimizer(0.1))
    train_op = optimizer.minimize(loss, tf.train.get_global_step())
    return tf.contrib.tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)


def input_fn(params):
    pictures = np.random.RandomState(0).randn(640, 8, 8, 3).astype(np.float32)
    pictures *= np.linspace(0.1, 4, 640).astype(np.float32)[:, None, None, None]
    pictures += np.random.RandomState(1).randn(640, 1, 1, 3).astype(np.float32) * 3
    data = tf.data.Dataset.from_tensor_slices(
        (pictures, np.arange(640, dtype=np.int32) % 4)
    ).shuffle(640)
    return data.repeat().batch(params["batch_size"], drop_remainder=True)


config = tf.contrib.tpu.RunConfig(tpu_config=tf.contrib.tpu.TPUConfig(iterations_per_loop=10))
port = tf.contrib.tpu.TPUEstimator(model_fn, config=config, use_tpu=True, train_batch_size=64)
port.train(input_fn, max_steps=100)
