"""Made from solutions/source/02_four_changes.ipynb by `python -m lab_utils.build`: change it there."""

from lab_utils import estimator  # noqa: F401  (from here on there is a tf.estimator)


import tempfile

import numpy as np
import tensorflow as tf
import yaml
from sklearn.datasets import load_digits

v1 = tf.compat.v1
v1.logging.set_verbosity(v1.logging.ERROR)
tpu = v1.estimator.tpu  # TPUEstimator and its relatives

TRAIN, EVAL, PREDICT = "train", "eval", "infer"  # tf.estimator.ModeKeys


digits = load_digits()
order = np.random.default_rng(0).permutation(len(digits.images))
held_out, kept = order[:360], order[360:]
pixels = {"train": digits.images[kept], "eval": digits.images[held_out]}
classes = {"train": digits.target[kept].astype(np.int32)}
classes["eval"] = digits.target[held_out].astype(np.int32)


def scaled(pixels):
    """Counts from 0 to 16, of any type -> float32 from 0 to 1."""
    return tf.cast(pixels, tf.float32) / 16.0


def inference(images):
    """float32 [B, 8, 8] from 0 to 1 -> logits, float32 [B, 10]."""
    net = images[:, :, :, None]
    net = v1.layers.conv2d(net, 32, 3, padding="same", activation=tf.nn.relu)
    net = v1.layers.max_pooling2d(net, 2, 2)
    net = v1.layers.flatten(net)
    net = v1.layers.dense(net, 64, activation=tf.nn.relu)
    return v1.layers.dense(net, 10)


def make_optimizer(params):
    """The optimizer of a core: Adam, its gradients all-reduced where there are several cores."""
    # TODO 2a: Adam, wrapped on a TPU
    optimizer = v1.train.AdamOptimizer(params["learning_rate"])
    if params["use_tpu"]:
        optimizer = v1.tpu.CrossShardOptimizer(optimizer)
    return optimizer


def metric_fn(labels, logits):
    """int32 [B], float32 [B, 10], from all cores -> metrics. Runs on the host."""
    # TODO 2b: {"accuracy": ...} of labels and logits
    return {"accuracy": v1.metrics.accuracy(labels, tf.argmax(logits, axis=1))}


def model_fn(features, labels, mode, params):
    """The model of lab 01 for a TPUEstimator."""
    logits = inference(features)

    if mode == PREDICT:
        answers = {"class_id": tf.argmax(logits, axis=1), "probabilities": tf.nn.softmax(logits)}
        return tpu.TPUEstimatorSpec(mode, predictions=answers)

    loss = v1.losses.sparse_softmax_cross_entropy(labels, logits)
    if mode == EVAL:
        # TODO 2c: a TPUEstimatorSpec with loss and eval_metrics
        metrics = (metric_fn, [labels, logits])
        return tpu.TPUEstimatorSpec(mode, loss=loss, eval_metrics=metrics)

    train_op = make_optimizer(params).minimize(loss, v1.train.get_global_step())
    return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)


def make_input_fn(split):
    """Returns input_fn(params) for "train" or "eval": (float32 [B, 8, 8], int32 [B]), B fixed."""

    def input_fn(params):
        dataset = tf.data.Dataset.from_tensor_slices((pixels[split], classes[split]))
        if split == "train":
            dataset = dataset.shuffle(2048, seed=1).repeat()
        dataset = dataset.map(lambda image, label: (scaled(image), label))
        # TODO 2d: full batches of the size that params names
        return dataset.batch(params["batch_size"], drop_remainder=True).prefetch(1)

    return input_fn


def make_config(settings):
    """The RunConfig for a TPU, or for none."""
    # TODO 2e: where the TPU is, its loop, the checkpoints
    cluster = None
    if settings["use_tpu"]:
        cluster = tf.distribute.cluster_resolver.TPUClusterResolver(settings["tpu"])
    loop = settings["iterations_per_loop"]
    return tpu.RunConfig(
        cluster=cluster,
        model_dir=settings["model_dir"],
        save_checkpoints_steps=10 * loop,
        tpu_config=tpu.TPUConfig(iterations_per_loop=loop),
    )


SETTINGS = """
use_tpu: false            # a flag wins over this, see below
tpu: local                # the name of a TPU; "local" on a TPU VM
train_batch_size: 1024    # over all cores: 128 for each of eight
eval_batch_size: 360
learning_rate: 0.003
iterations_per_loop: 50
"""
settings = yaml.safe_load(SETTINGS)


def make_estimator(model, config, settings):
    """The TPUEstimator; batch sizes are global, over all cores."""
    # TODO 2f: TPUEstimator with batch sizes and params
    return tpu.TPUEstimator(
        model,
        config=config,
        use_tpu=settings["use_tpu"],
        train_batch_size=settings["train_batch_size"],
        eval_batch_size=settings["eval_batch_size"],
        predict_batch_size=settings["eval_batch_size"],
        params={"learning_rate": settings["learning_rate"]},
    )
