"""Actions in videos: three-dimensional convolutions, frames as uint8 and transposed for the core, a moving learning rate.

A class of flags makes the estimator; evaluation is weighted by a padding mask; host_call through a closure.
"""

import numpy as np
import tensorflow.compat.v1 as tf

FRAMES, SIDE, CLASSES = 6, 16, 4
PER_HOST = tf.estimator.tpu.InputPipelineConfig.PER_HOST_V2
MEAN_RGB = [0.485 * 255, 0.456 * 255, 0.406 * 255]


class Unit3D(object):
    def __init__(self, channels, kernel=(1, 1, 1), stride=(1, 1, 1), name="unit_3d"):
        self.channels, self.kernel, self.stride, self.name = channels, kernel, stride, name

    def __call__(self, net, is_training):
        with tf.variable_scope(self.name):
            net = tf.layers.conv3d(net, self.channels, self.kernel, self.stride, "SAME", use_bias=False)
            net = tf.layers.batch_normalization(net, momentum=0.9, training=is_training)
            return tf.nn.relu(net)


class Mixed(object):
    def __init__(self, sizes, name):
        self.sizes, self.name = sizes, name

    def __call__(self, net, is_training):
        a, b, c = self.sizes
        with tf.variable_scope(self.name):
            zero = Unit3D(a, name="b0")(net, is_training)
            one = Unit3D(b, (3, 3, 3), name="b1")(Unit3D(b // 2, name="b1_in")(net, is_training), is_training)
            two = tf.nn.max_pool3d(net, [1, 3, 3, 3, 1], [1, 1, 1, 1, 1], "SAME")
            return tf.concat([zero, one, Unit3D(c, name="b2")(two, is_training)], 4)


def network(frames, is_training):
    net = Unit3D(8, (3, 3, 3), (1, 2, 2), name="conv_1")(frames, is_training)
    net = Mixed((4, 8, 4), "mixed_1")(net, is_training)
    net = tf.nn.max_pool3d(net, [1, 2, 2, 2, 1], [1, 2, 2, 2, 1], "SAME")
    net = Mixed((4, 8, 4), "mixed_2")(net, is_training)
    net = tf.reduce_mean(net, [2, 3])
    if is_training:
        net = tf.nn.dropout(net, keep_prob=0.5)
    return tf.reduce_mean(tf.layers.conv1d(net, CLASSES, 1, name="logits"), 1)


def model_fn(features, labels, mode, params):
    if isinstance(features, dict):
        features = features["frames"]
    if params["transpose_input"] and mode == tf.estimator.ModeKeys.TRAIN:
        features = tf.transpose(features, [4, 0, 1, 2, 3])
    frames = tf.cast(features, tf.float32)
    frames -= tf.constant(MEAN_RGB, shape=[1, 1, 1, 1, 3])
    frames /= 58.0
    is_training = mode == tf.estimator.ModeKeys.TRAIN
    logits = network(frames, is_training)
    if mode == tf.estimator.ModeKeys.PREDICT:
        return tf.estimator.tpu.TPUEstimatorSpec(mode=mode, predictions={"probs": tf.nn.softmax(logits), "classes": tf.argmax(logits, 1)})
    weights = 1.0
    if isinstance(labels, dict):
        labels, weights = labels["label"], labels["weight"]
    cross_entropy = tf.losses.softmax_cross_entropy(tf.one_hot(labels, CLASSES), logits, weights=weights, label_smoothing=0.1)
    loss = cross_entropy + 1e-4 * tf.add_n([tf.nn.l2_loss(v) for v in tf.trainable_variables() if "batch_normalization" not in v.name])
    host_call, train_op, eval_metrics = None, None, None
    if is_training:
        global_step = tf.train.get_global_step()
        epoch = tf.cast(global_step, tf.float32) / params["steps_per_epoch"]
        rate = 0.1 * params["train_batch_size"] / 256.0 * tf.case(
            [(epoch < 5, lambda: epoch / 5.0), (epoch < 30, lambda: tf.constant(1.0))], default=lambda: tf.constant(0.1)
        )
        optimizer = tf.train.MomentumOptimizer(rate, momentum=0.9, use_nesterov=True)
        optimizer = tf.tpu.CrossShardOptimizer(optimizer)
        with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
            train_op = optimizer.minimize(loss, global_step)
        model_dir = params["model_dir"]

        def host_call_fn(gs, loss, lr, ce):
            gs = gs[0]
            writer = tf.compat.v2.summary.create_file_writer(model_dir)
            with writer.as_default():
                with tf.compat.v2.summary.record_if(True):
                    tf.compat.v2.summary.scalar("loss", loss[0], step=gs)
                    tf.compat.v2.summary.scalar("learning_rate", lr[0], step=gs)
                    tf.compat.v2.summary.scalar("cross_entropy", ce[0], step=gs)
            return tf.summary.all_v2_summary_ops()

        host_call = (host_call_fn, [tf.reshape(x, [1]) for x in (global_step, loss, rate, cross_entropy)])
    else:

        def metric_fn(labels, logits, weights):
            top_1 = tf.argmax(logits, axis=1)
            in_2 = tf.cast(tf.nn.in_top_k(logits, labels, 2), tf.float32)
            return {"top_1": tf.metrics.accuracy(labels, top_1, weights), "top_2": tf.metrics.mean(in_2, weights)}

        eval_metrics = (metric_fn, [labels, logits, weights])
    return tf.estimator.tpu.TPUEstimatorSpec(mode=mode, loss=loss, train_op=train_op, host_call=host_call, eval_metrics=eval_metrics)  # <- TPU111


class VideoInput(object):
    def __init__(self, is_training, transpose_input):
        self.is_training, self.transpose_input = is_training, transpose_input

    def parse(self, number):
        video = tf.random.stateless_uniform([2 * FRAMES, SIDE + 4, SIDE + 4, 3], [1, 1], 0, 256, tf.int32)
        if self.is_training:
            start = tf.random_uniform([], 0, FRAMES, tf.int32)
            video = tf.image.random_flip_left_right(tf.random_crop(video[start : start + FRAMES], [FRAMES, SIDE, SIDE, 3])[0])[None] + tf.zeros([FRAMES, 1, 1, 1], tf.int32)
        else:
            video = video[:FRAMES, 2:-2, 2:-2]
        video = tf.cast(tf.reshape(video, [FRAMES, SIDE, SIDE, 3]), tf.uint8)
        return video, tf.cast(number % CLASSES, tf.int32)

    def input_fn(self, params):
        batch_size = params["batch_size"]
        dataset = tf.data.Dataset.range(90)
        if self.is_training:
            dataset = dataset.shuffle(90).repeat()
            dataset = dataset.map(self.parse, num_parallel_calls=8).batch(batch_size, drop_remainder=True)
        else:
            real = dataset.map(self.parse).map(lambda v, l: (v, {"label": l, "weight": 1.0}))
            padding = real.take(1).map(lambda v, l: (v, {"label": l["label"], "weight": 0.0})).repeat()
            dataset = real.concatenate(padding).take(96).batch(batch_size, drop_remainder=True)
        if self.transpose_input and self.is_training:
            dataset = dataset.map(lambda v, l: (tf.transpose(v, [1, 2, 3, 4, 0]), l), num_parallel_calls=8)  # <- TPU131
        return dataset.prefetch(tf.data.experimental.AUTOTUNE)


def main(data_dir):
    params = dict(transpose_input=True, steps_per_epoch=2.8, train_batch_size=32, model_dir="/tmp/videos")
    config = tf.estimator.tpu.RunConfig(
        model_dir=params["model_dir"], save_checkpoints_steps=200,
        tpu_config=tf.estimator.tpu.TPUConfig(iterations_per_loop=100, num_shards=8, per_host_input_for_training=PER_HOST),
    )  # fmt: skip
    estimator = tf.estimator.tpu.TPUEstimator(
        use_tpu=True, model_fn=model_fn, config=config, params=params, train_batch_size=32, eval_batch_size=32, predict_batch_size=32
    )
    return estimator, VideoInput(True, True).input_fn, {"eval_input_fn": VideoInput(False, True).input_fn}


FAULTS = [
    ("TPU201", "        optimizer = tf.tpu.CrossShardOptimizer(optimizer)\n        with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):\n            train_op", "        with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):\n            train_op"),
    ("TPU111", "[tf.reshape(x, [1]) for x in (global_step, loss, rate, cross_entropy)]", "[global_step, loss, rate, cross_entropy]"),
    ("TPU220", "        with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):\n            train_op = optimizer.minimize(loss, global_step)\n", "        train_op = optimizer.minimize(loss, global_step)\n"),
    ("TPU223", "    if is_training:\n        net = tf.nn.dropout(net, keep_prob=0.5)\n", "    net = tf.nn.dropout(net, keep_prob=0.5)\n"),
    ("TPU118", "tf.metrics.accuracy(labels, top_1, weights), \"top_2\"", "tf.metrics.accuracy(labels, tf.argmax(frames[:, 0, 0, 0], 1), weights), \"top_2\""),
    ("TPU131", "PER_HOST = tf.estimator.tpu.InputPipelineConfig.PER_HOST_V2", "PER_HOST = True"),
    ("TPU101", "take(96).batch(batch_size, drop_remainder=True)", "take(96).batch(batch_size)"),
]
