"""Made from solutions/source/06_feeding_a_tpu.ipynb by `python -m lab_utils.build`: change it there."""

import os

from lab_utils import estimator  # noqa: F401  (from here on there is a tf.estimator)


import contextlib
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import tensorflow as tf

from lab_utils import datasets, runtime
from lab_utils.convert import convert
from lab_utils.flowers.augment import random_views
from lab_utils.flowers.input_pipeline import decode_image

v1 = tf.compat.v1
v1.logging.set_verbosity(v1.logging.ERROR)
tpu = v1.estimator.tpu
AUTOTUNE = tf.data.AUTOTUNE

SIZE = 128  # pixels: what the model sees
KEPT = 160  # pixels: what a view of SIZE is cut from, where the whole picture is kept
BATCH = 32


def parse(record):
    """A record -> (the JPEG's bytes, a scalar string; its class, int32 from 0)."""
    features = {
        "image/encoded": tf.io.FixedLenFeature([], tf.string),
        "image/class/label": tf.io.FixedLenFeature([], tf.int64),
    }
    example = tf.io.parse_single_example(record, features)
    return example["image/encoded"], tf.cast(example["image/class/label"], tf.int32) - 1


def random_window(shape):
    """The shape of an image, int32 [3] -> a random part of it, int32 [4]: top, left, height, width."""
    start, size, _ = tf.image.sample_distorted_bounding_box(
        shape,
        tf.zeros([1, 0, 4]),
        area_range=(0.4, 1.0),
        aspect_ratio_range=(0.8, 1.25),
        use_image_if_no_bounding_boxes=True,
    )
    return tf.concat([start[:2], size[:2]], axis=0)


def naive_example(record):
    """A record -> (float32 [SIZE, SIZE, 3] in [-1, 1], int32)."""
    encoded, label = parse(record)
    image = tf.io.decode_jpeg(encoded, channels=3)
    image = tf.image.crop_to_bounding_box(image, *tf.unstack(random_window(tf.shape(image))))
    image = tf.image.resize(image, [SIZE, SIZE]) / 127.5 - 1.0
    image = tf.image.random_flip_left_right(image)
    image = tf.image.random_brightness(image, 0.25)
    image = tf.image.random_contrast(image, 0.8, 1.25)
    return tf.image.random_saturation(image, 0.8, 1.25), label


def read(files):
    """A list of paths of TFRecord files -> a dataset of their records."""
    # TODO 6a: paths -> interleave, in parallel
    paths = tf.data.Dataset.from_tensor_slices(files)
    return paths.interleave(
        tf.data.TFRecordDataset,
        cycle_length=8,
        num_parallel_calls=AUTOTUNE,
        deterministic=False,
    )


def view(encoded):
    """A JPEG, scalar string -> a random part of it, uint8 [SIZE, SIZE, 3]; the rest is not decoded."""
    # TODO 6b: a random part of the picture, of which nothing else is decoded
    part = random_window(tf.io.extract_jpeg_shape(encoded))
    image = tf.image.decode_and_crop_jpeg(encoded, part, channels=3)
    return tf.cast(tf.image.resize(image, [SIZE, SIZE]), tf.uint8)


def prepare(images, step):
    """uint8 [B, KEPT, KEPT, 3] and the step, a scalar integer -> bfloat16 [B, SIZE, SIZE, 3]."""
    # TODO 6c: views of the images, the same ones at the same step
    images = tf.cast(images, tf.bfloat16) / 127.5 - 1.0
    return random_views(images, SIZE, tf.stack([0, tf.cast(step, tf.int32)]))


def share(files, params):
    """The files, of the list, that this host reads."""
    # TODO 6d: this host's files, or an error where there are too few
    if "context" not in params:
        return files
    _, host, hosts, _ = params["context"].current_input_fn_deployment()
    if len(files) < hosts:
        raise ValueError(f"{len(files)} files for {hosts} hosts: convert into more files")
    return files[host::hosts]


def input_calls(mode, batch, hosts, cores):
    """("PER_HOST_V1", ...) -> (calls of input_fn, params["batch_size"])."""
    # TODO 6e: calls, and the batch of a call
    return {
        "PER_HOST_V1": (hosts, batch // hosts),
        "PER_HOST_V2": (hosts, batch // cores),
        "PER_SHARD_V1": (cores, batch // cores),
        "BROADCAST": (1, batch),
    }[mode]


def decoded(record):
    """A record -> (uint8 [SIZE, SIZE, 3], int32)."""
    encoded, label = parse(record)
    return view(encoded), label


def make_input_fn(files):
    """Returns input_fn(params), whose batches are (uint8 [B, SIZE, SIZE, 3], int32 [B]), without end."""

    def input_fn(params):
        # TODO 6f: what does the buffer hold, and what is lost at the end of an epoch?
        records = read(share(files, params)).shuffle(1024).repeat()
        images = records.map(decoded, num_parallel_calls=AUTOTUNE)
        return images.batch(params["batch_size"], drop_remainder=True).prefetch(AUTOTUNE)

    return input_fn


def whole(record):
    """A record -> (the whole picture, squeezed to uint8 [KEPT, KEPT, 3], int32)."""
    encoded, label = parse(record)
    return decode_image(encoded, KEPT), label


def make_cached_input_fn(files):
    """Returns input_fn(params), whose batches are (uint8 [B, KEPT, KEPT, 3], int32 [B]), without end."""

    def input_fn(params):
        # TODO 6g: what is kept, and what has to be new in each epoch?
        images = read(share(files, params)).map(whole, num_parallel_calls=AUTOTUNE).cache()
        images = images.shuffle(1024).repeat()
        return images.batch(params["batch_size"], drop_remainder=True).prefetch(AUTOTUNE)

    return input_fn


def host_cores(images_per_second, cpu_ms):
    """Host cores, a float, to prepare so many images a second, each of `cpu_ms` milliseconds of CPU."""
    # TODO 6h: images/s, CPU ms an image -> cores
    return images_per_second * cpu_ms / 1000


def model_fn(features, labels, mode, params):
    """One convolution. With params["transposed"] the images come with the batch last."""
    if params["transposed"]:
        features = tf.transpose(features, [3, 0, 1, 2])
    images = tf.cast(features, tf.bfloat16) / 127.5 - 1.0
    with v1.tpu.bfloat16_scope():
        net = tf.nn.space_to_depth(images, 4)
        net = v1.layers.conv2d(net, 128, 3, padding="same", activation=tf.nn.relu)
    net = tf.cast(tf.reduce_mean(net, [1, 2]), tf.float32)
    loss = v1.losses.sparse_softmax_cross_entropy(labels, v1.layers.dense(net, 5))
    optimizer = v1.train.MomentumOptimizer(0.1, 0.9)
    if params["use_tpu"]:
        optimizer = v1.tpu.CrossShardOptimizer(optimizer)
    train_op = optimizer.minimize(loss, v1.train.get_global_step())
    return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)


def make_estimator(transposed=False):
    """PER_HOST_V2 feeds each core batches of its own: none is cut along its first axis (see below)."""
    loop = tpu.TPUConfig(
        iterations_per_loop=100,
        per_host_input_for_training=tpu.InputPipelineConfig.PER_HOST_V2,
    )
    config = tpu.RunConfig(model_dir=tempfile.mkdtemp(prefix="feed-"), tpu_config=loop)
    params = {"transposed": transposed}
    return tpu.TPUEstimator(
        model_fn, config=config, use_tpu=False, train_batch_size=1024, params=params
    )


def waiting_share(events):
    """The events of a profile -> the share of the steps' time that is waiting for input, 0 to 1."""
    # TODO 6i: how long do the steps last, and how long do they wait?

    def spent(name):
        return sum(each.end - each.start for each in events if each.name == name)

    return spent("IteratorGetNextOp::DoCompute") / spent("SessionRun")
