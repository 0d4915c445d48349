"""Made from solutions/source/01_estimator_baseline.ipynb by `python -m lab_utils.build`: change it there."""

from lab_utils import estimator  # noqa: F401  (from here on there is a tf.estimator)


import tempfile

import numpy as np
import tensorflow as tf
from sklearn.datasets import load_digits

v1 = tf.compat.v1
v1.logging.set_verbosity(v1.logging.WARN)

EVAL, PREDICT = tf.estimator.ModeKeys.EVAL, tf.estimator.ModeKeys.PREDICT


digits = load_digits()
order = np.random.default_rng(0).permutation(len(digits.images))
held_out, kept = order[:360], order[360:]

train_pixels, train_labels = digits.images[kept], digits.target[kept]
eval_pixels, eval_labels = digits.images[held_out], digits.target[held_out]


def scaled(pixels):
    """Counts from 0 to 16, of any type -> float32 from 0 to 1. Training and serving both use it."""
    return tf.cast(pixels, tf.float32) / 16.0


def make_input_fn(pixels, labels, batch_size, training):
    """Returns an input_fn: () -> dataset of (float32 [B, 8, 8] from 0 to 1, int32 [B])."""

    def input_fn():
        # TODO 1a: arrays -> batches of pairs
        dataset = tf.data.Dataset.from_tensor_slices((pixels, labels.astype(np.int32)))
        if training:
            dataset = dataset.shuffle(len(labels), seed=1).repeat()
        dataset = dataset.map(lambda image, label: (scaled(image), label))
        return dataset.batch(batch_size).prefetch(1)

    return input_fn


def inference(images):
    """float32 [B, 8, 8] from 0 to 1 -> logits, float32 [B, 10]."""
    # TODO 1b: a hidden layer or more, then ten logits
    net = images[:, :, :, None]
    net = v1.layers.conv2d(net, 32, 3, padding="same", activation=tf.nn.relu)
    net = v1.layers.max_pooling2d(net, 2, 2)
    net = v1.layers.flatten(net)
    net = v1.layers.dense(net, 64, activation=tf.nn.relu)
    return v1.layers.dense(net, 10)


def model_fn(features, labels, mode, params):
    """The model for an Estimator. features: as input_fn gives them; params: "learning_rate"."""
    logits = inference(features)

    if mode == PREDICT:
        # TODO 1c: predictions "class_id" and "probabilities"
        predictions = {
            "class_id": tf.argmax(logits, axis=1),
            "probabilities": tf.nn.softmax(logits),
        }
        return tf.estimator.EstimatorSpec(mode, predictions=predictions)

    if mode == EVAL:
        # TODO 1d: loss and eval_metric_ops "accuracy"
        loss = v1.losses.sparse_softmax_cross_entropy(labels, logits)
        metrics = {"accuracy": v1.metrics.accuracy(labels, tf.argmax(logits, axis=1))}
        return tf.estimator.EstimatorSpec(mode, loss=loss, eval_metric_ops=metrics)

    # TODO 1e: loss and train_op (mode is TRAIN)
    loss = v1.losses.sparse_softmax_cross_entropy(labels, logits)
    optimizer = v1.train.AdamOptimizer(params["learning_rate"])
    train_op = optimizer.minimize(loss, global_step=v1.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


def serving_input_fn():
    """Raw pixels, float32 [any, 8, 8] from 0 to 16, named "pixels" -> what the model takes."""
    # TODO 1f: what is sent, and what the model gets
    pixels = v1.placeholder(tf.float32, [None, 8, 8], name="pixels")
    return tf.estimator.export.TensorServingInputReceiver(scaled(pixels), {"pixels": pixels})
