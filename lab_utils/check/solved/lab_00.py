"""Made from solutions/source/00_orientation.ipynb by `python -m lab_utils.build`: change it there."""

def matmul_flop(m, k, n):
    """FLOP of [m, k] times [k, n]."""
    # TODO 0a: m, k, n -> FLOP
    return 2 * m * k * n


def peak_flops(rows, columns, hertz):
    """The most FLOP/s that a matrix unit of that size reaches."""
    # TODO 0b: rows, columns, cycles a second -> FLOP/s
    return 2 * rows * columns * hertz


from lab_utils import estimator  # noqa: F401  (TensorFlow, without its start-up notices)


import time

import tensorflow as tf


weights = tf.Variable(tf.zeros([1024, 1000]), name="weights")


def step(features, labels):
    """float32 [B, 1024], int32 [B] -> the mean loss, a scalar."""
    # TODO 0c: features and labels -> the mean loss
    logits = features @ weights
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)
    return tf.reduce_mean(losses)
