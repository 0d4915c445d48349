import os

import numpy as np
import tensorflow as tf

FAULTY = bool(os.environ.get("FAULTY"))


def turn(picture, label):
    if FAULTY:
        return tf.contrib.image.rotate(picture, 0.3), label
    return tf.image.rot90(picture), label


def input_fn(params):
    pictures = np.zeros([64, 8, 8, 3], np.float32)
    data = tf.data.Dataset.from_tensor_slices((pictures, np.zeros([64], np.int32))).map(turn)
    return data.shuffle(64).repeat().batch(params["batch_size"], drop_remainder=True)


def model_fn(features, labels, mode, params):
    logits = tf.layers.dense(tf.layers.flatten(features), 8)
    loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
    optimizer = tf.contrib.tpu.CrossShardOptimizer(tf.train.GradientDescentOptimizer(0.1))
    train_op = optimizer.minimize(loss, tf.train.get_global_step())
    return tf.contrib.tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)


config = tf.contrib.tpu.RunConfig(tpu_config=tf.contrib.tpu.TPUConfig(iterations_per_loop=10))
port = tf.contrib.tpu.TPUEstimator(model_fn, config=config, use_tpu=True, train_batch_size=64)
port.train(input_fn, max_steps=100)
