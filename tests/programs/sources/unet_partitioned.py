"""Segmentation with the picture divided between two cores of a replica (spatial partitioning)."""

import numpy as np
import tensorflow.compat.v1 as tf

SIDE, CLASSES = 16, 3


class Params(dict):
    __getattr__ = dict.__getitem__


def unet(features, params, is_training):
    def block(x, filters):
        x = tf.layers.conv2d(x, filters, 3, padding="same", use_bias=False)
        x = tf.layers.batch_normalization(x, training=is_training)
        return tf.nn.relu(x)

    down = block(features, 4)
    middle = block(tf.layers.max_pooling2d(down, 2, 2), 8)
    up = tf.layers.conv2d_transpose(middle, 4, 2, 2, padding="same")
    return tf.layers.conv2d(tf.concat([down, up], -1), CLASSES, 1)


def adaptive_dice_loss(labels, logits):
    probabilities = tf.nn.softmax(logits)
    numerator = 2.0 * tf.reduce_sum(labels * probabilities, axis=[1, 2])
    denominator = tf.reduce_sum(labels + probabilities, axis=[1, 2])
    return 1.0 - tf.reduce_mean(numerator / (denominator + 1e-6))


def unet_model_fn(features, labels, mode, params):
    params = Params(**params)
    is_training = mode == tf.estimator.ModeKeys.TRAIN
    logits = unet(features, params, is_training)
    if mode == tf.estimator.ModeKeys.PREDICT:
        return tf.estimator.tpu.TPUEstimatorSpec(mode, predictions={"mask": tf.argmax(logits, -1)})
    loss = adaptive_dice_loss(labels, logits)
    if mode == tf.estimator.ModeKeys.EVAL:

        def metric_fn(labels, predictions):
            return {"accuracy": tf.metrics.accuracy(tf.argmax(labels, -1), predictions)}

        metrics = (metric_fn, [labels, tf.argmax(logits, -1)])
        return tf.estimator.tpu.TPUEstimatorSpec(mode, loss=loss, eval_metrics=metrics)  # <- TPU111
    step = tf.train.get_or_create_global_step()
    optimizer = tf.train.AdamOptimizer(tf.train.exponential_decay(params.init_learning_rate, step, 100, 0.99))
    if params.use_tpu:
        optimizer = tf.tpu.CrossShardOptimizer(optimizer)
    with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
        train_op = optimizer.minimize(loss, step)  # <- TPU201 TPU215
    return tf.estimator.tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)


class LiverInput(object):
    def __init__(self, is_training):
        self._is_training = is_training

    def _example(self, n):
        image = tf.random.stateless_normal([SIDE, SIDE, 1], tf.stack([n, n]))
        label = tf.random.stateless_uniform([SIDE, SIDE], tf.stack([n, n]), 0, CLASSES, tf.int32)
        return image, tf.one_hot(label, CLASSES)

    def __call__(self, params):
        dataset = tf.data.Dataset.range(64)
        if self._is_training:
            dataset = dataset.shuffle(64).repeat()
        dataset = dataset.map(self._example)
        return dataset.batch(params["batch_size"], drop_remainder=True).prefetch(2)


def main(data_dir):
    params = Params(
        init_learning_rate=0.001,
        num_cores_per_replica=2,
        input_partition_dims=[[1, 2, 1, 1], [1, 2, 1, 1]],
    )
    tpu_config = tf.estimator.tpu.TPUConfig(
        iterations_per_loop=50,
        num_shards=4,
        num_cores_per_replica=params.num_cores_per_replica,
        input_partition_dims=params.input_partition_dims,
        per_host_input_for_training=tf.estimator.tpu.InputPipelineConfig.PER_HOST_V2,
    )
    config = tf.estimator.tpu.RunConfig(model_dir="/tmp/unet", tpu_config=tpu_config)
    estimator = tf.estimator.tpu.TPUEstimator(
        model_fn=unet_model_fn,
        config=config,
        use_tpu=True,
        train_batch_size=16,
        eval_batch_size=16,
        params=dict(params),
    )
    return estimator, LiverInput(True), {"eval_input_fn": LiverInput(False)}


FAULTS = [
    ("TPU201", "    if params.use_tpu:\n        optimizer = tf.tpu.CrossShardOptimizer(optimizer)\n", ""),
    ("TPU101", "dataset.batch(params[\"batch_size\"], drop_remainder=True)", "dataset.batch(params[\"batch_size\"])"),
    ("TPU215", "optimizer.minimize(loss, step)", "optimizer.minimize(loss)"),
    ("TPU111", "[labels, tf.argmax(logits, -1)]", "[labels, loss]"),
    ("TPU120", "return image, tf.one_hot(label, CLASSES)", "return image, tf.one_hot(label, CLASSES, dtype=tf.float64)"),
]
