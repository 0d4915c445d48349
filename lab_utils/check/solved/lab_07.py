"""Made from solutions/source/07_flowers.ipynb by `python -m lab_utils.build`: change it there."""

import os

# On a GPU, leave room for the commands that run beside this notebook.
os.environ.setdefault("TF_FORCE_GPU_ALLOW_GROWTH", "true")


from lab_utils import estimator  # noqa: F401  (from here on there is a tf.estimator)


import shutil
import subprocess
import sys
import tempfile
import time

import numpy as np
import tensorflow as tf
import yaml

from lab_utils.flowers.augment import random_views

v1 = tf.compat.v1
v1.logging.set_verbosity(v1.logging.ERROR)
tpu = v1.estimator.tpu
tf.config.experimental.enable_tensor_float_32_execution(False)  # on a GPU, float32 is float32

TRAIN, EVAL, PREDICT = "train", "eval", "infer"  # tf.estimator.ModeKeys


def preprocess(encoded, size):
    """Bytes of one image, a scalar string -> uint8 [size, size, 3]. Training, evaluation and serving."""
    # TODO 7a: any image -> the whole of it, in the square
    image = tf.io.decode_image(encoded, channels=3, expand_animations=False)
    image = tf.image.resize(image, [size, size], method="area")
    return tf.cast(tf.round(image), tf.uint8)


def make_input_fn(pattern, training):
    """Returns input_fn(params) over the TFRecords that `pattern` names: ({"image", "weight"}, label)."""

    def input_fn(params):
        size = params["image_size"]

        def parse(record):
            # TODO 7b: record -> ({"image": ..., "weight": ...}, label from 0)
            kinds = {"image/encoded": tf.string, "image/class/label": tf.int64}
            wanted = {name: tf.io.FixedLenFeature([], kind) for name, kind in kinds.items()}
            example = tf.io.parse_single_example(record, wanted)
            features = {
                "image": preprocess(example["image/encoded"], size),
                "weight": tf.constant(1.0),
            }
            return features, tf.cast(example["image/class/label"], tf.int32) - 1

        files = sorted(tf.io.gfile.glob(pattern))
        images = tf.data.TFRecordDataset(files).map(parse, num_parallel_calls=tf.data.AUTOTUNE)
        if training:
            images = images.cache().shuffle(1024, seed=1).repeat()
        else:
            nothing = {"image": tf.zeros([size, size, 3], tf.uint8), "weight": tf.constant(0.0)}
            padding = tf.data.Dataset.from_tensors((nothing, 0)).repeat()
            images = images.concatenate(padding)
        return images.batch(params["batch_size"], drop_remainder=True).prefetch(2)

    return input_fn


def views(images, mode):
    """uint8 [B, S, S, 3] -> float32 [B, S, S, 3]: from -1 to 1, and in TRAIN a random view of each."""
    # TODO 7c: scale always, random_views in TRAIN alone
    images = tf.cast(images, tf.float32) / 127.5 - 1.0
    if mode == TRAIN:
        step = tf.cast(v1.train.get_global_step(), tf.int32)
        images = random_views(images, images.shape[1], tf.stack([0, step]))
    return images


def inference(images, classes, training, bfloat16):
    """float32 [B, S, S, 3] from -1 to 1 -> logits, float32 [B, classes]; S a multiple of 32."""
    net = tf.nn.space_to_depth(images, 4)
    # TODO 7d: the stack, the head, the logits
    if bfloat16:
        net = tf.cast(net, tf.bfloat16)
    with v1.tpu.bfloat16_scope():
        for index, filters in enumerate((32, 64, 128, 256)):
            if index:
                net = v1.layers.max_pooling2d(net, 2, 2)
            net = v1.layers.conv2d(net, filters, 3, padding="same", use_bias=False)
            net = v1.layers.batch_normalization(net, training=training, momentum=0.97)
            net = tf.nn.relu(net)
        net = tf.reduce_mean(net, [1, 2])
        logits = v1.layers.dense(net, classes)
    return tf.cast(logits, tf.float32)


def metric_fn(labels, logits, cross_entropy, weights):
    """Of all cores' tensors, on the host: int32 [B], float32 [B, classes], float32 [B], float32 [B]."""
    return {
        "accuracy": v1.metrics.accuracy(labels, tf.argmax(logits, axis=1), weights),
        "cross_entropy": v1.metrics.mean(cross_entropy, weights),
    }


def host_call(loss, rate, params):
    """Summaries every tenth step, written by the host; the tensors need a batch axis to get there."""

    def write(step, loss, rate):
        writer = tf.summary.create_file_writer(params["model_dir"], filename_suffix=".host")
        with writer.as_default(), tf.summary.record_if(tf.equal(step[0] % 10, 0)):
            tf.summary.scalar("train/loss", tf.reduce_mean(loss), step=step[0])
            tf.summary.scalar("train/learning_rate", rate[0], step=step[0])
            return v1.summary.all_v2_summary_ops()

    step = v1.train.get_global_step()
    return write, [tf.reshape(tensor, [1]) for tensor in (step, loss, rate)]


def model_fn(features, labels, mode, params):
    """The flowers model for a TPUEstimator. params: the settings below, and TPUEstimator's own."""
    images = views(features["image"], mode)
    logits = inference(images, len(params["labels"]), mode == TRAIN, params["bfloat16"])

    if mode == PREDICT:
        answers = {
            "class_id": tf.argmax(logits, axis=1, output_type=tf.int32),
            "probabilities": tf.nn.softmax(logits),
        }
        if not params["use_tpu"]:  # no strings on a TPU
            answers["class"] = tf.gather(tf.constant(params["labels"]), answers["class_id"])
        outputs = {"serving_default": v1.estimator.export.PredictOutput(answers)}
        return tpu.TPUEstimatorSpec(mode, predictions=answers, export_outputs=outputs)

    if mode == EVAL:
        weights = features["weight"]
        each = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
        loss = tf.math.divide_no_nan(tf.reduce_sum(each * weights), tf.reduce_sum(weights))
        metrics = (metric_fn, [labels, logits, each, weights])
        return tpu.TPUEstimatorSpec(mode, loss=loss, eval_metrics=metrics)

    targets = tf.one_hot(labels, len(params["labels"]))
    loss = v1.losses.softmax_cross_entropy(targets, logits, label_smoothing=0.1)
    step = v1.train.get_global_step()
    rate = v1.train.cosine_decay(params["learning_rate"], step, params["train_steps"])
    # TODO 7e: optimizer, one step with all that belongs to it, TPUEstimatorSpec
    optimizer = v1.train.MomentumOptimizer(rate, 0.9, use_nesterov=True)
    if params["use_tpu"]:
        optimizer = v1.tpu.CrossShardOptimizer(optimizer)
    with tf.control_dependencies(v1.get_collection(v1.GraphKeys.UPDATE_OPS)):
        train_op = optimizer.minimize(loss, global_step=step)
    return tpu.TPUEstimatorSpec(
        mode, loss=loss, train_op=train_op, host_call=host_call(loss, rate, params)
    )


SETTINGS = """
use_tpu: false
tpu: local               # on a TPU VM
model_dir: run
image_size: 64
train_steps: 600
train_batch_size: 32     # over all cores; 1024 for the eight of a v2 or v3
eval_batch_size: 32
learning_rate: 0.05      # at its highest, for a batch of 32
checkpoint_steps: 100    # the most steps that a crash can cost
iterations_per_loop: 100
bfloat16: false          # true on a TPU; few CPUs have instructions for it
"""


def make_estimator(model, settings):
    """The TPUEstimator around `model` that the settings describe."""
    # TODO 7f: RunConfig and TPUEstimator
    cluster = None
    if settings["use_tpu"]:
        cluster = tf.distribute.cluster_resolver.TPUClusterResolver(settings["tpu"])
    config = tpu.RunConfig(
        cluster=cluster,
        model_dir=settings["model_dir"],
        save_checkpoints_steps=settings["checkpoint_steps"],
        tpu_config=tpu.TPUConfig(iterations_per_loop=settings["iterations_per_loop"]),
    )
    return tpu.TPUEstimator(
        model,
        config=config,
        use_tpu=settings["use_tpu"],
        train_batch_size=settings["train_batch_size"],
        eval_batch_size=settings["eval_batch_size"],
        predict_batch_size=settings["eval_batch_size"],
        params=settings,
        export_to_tpu=False,
    )


def make_serving_input_fn(size):
    """Returns serving_input_receiver_fn: "image_bytes", string [any] -> what model_fn takes."""

    def serving_input_receiver_fn():
        # TODO 7g: placeholder -> preprocess each -> ServingInputReceiver
        encoded = v1.placeholder(tf.string, [None], "image_bytes")
        images = tf.map_fn(lambda one: preprocess(one, size), encoded, fn_output_signature=tf.uint8)
        return v1.estimator.export.ServingInputReceiver({"image": images}, {"image_bytes": encoded})

    return serving_input_receiver_fn


import base64
import json


def predict_body(pictures):
    """A list of bytes, one JPEG each -> the body of a predict request, JSON text."""
    # TODO 7h: the pictures as instances of a predict request
    instances = [{"b64": base64.b64encode(picture).decode()} for picture in pictures]
    return json.dumps({"instances": instances})


def best_batch(seconds, limit):
    """{batch: seconds a request}, the longest that a caller may wait -> a batch, or None."""
    # TODO 7i: the most pictures a second, of those within the limit
    within = [batch for batch in seconds if seconds[batch] <= limit]
    return max(within, key=lambda batch: batch / seconds[batch], default=None)
