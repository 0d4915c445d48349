"""Made from solutions/source/04_metrics_and_the_host.ipynb by `python -m lab_utils.build`: change it there."""

from lab_utils import estimator  # noqa: F401  (from here on there is a tf.estimator)


import tempfile

import numpy as np
import tensorflow as tf
from sklearn.datasets import load_digits

v1 = tf.compat.v1
v1.logging.set_verbosity(v1.logging.ERROR)
tpu = v1.estimator.tpu

EVAL, PREDICT = "eval", "infer"  # tf.estimator.ModeKeys


digits = load_digits()
order = np.random.default_rng(0).permutation(len(digits.images))
held_out, kept = order[:360], order[360:]
BATCH = 128  # in evaluation: 16 for each of eight cores


def examples(rows):
    """Dataset of ({"image": float32 [8, 8] from 0 to 1, "weight": 1.0}, int32)."""
    images = (digits.images[rows] / 16.0).astype(np.float32)
    dataset = tf.data.Dataset.from_tensor_slices((images, digits.target[rows].astype(np.int32)))
    return dataset.map(lambda image, label: ({"image": image, "weight": 1.0}, label))


def train_input(params):
    """Shuffled and endless."""
    dataset = examples(kept).shuffle(2048, seed=1).repeat()
    return dataset.batch(params["batch_size"], drop_remainder=True)


def eval_input(params):
    """Every held-out example once, with weight 1, then padding of weight 0."""
    padding = tf.data.Dataset.from_tensors(({"image": tf.zeros([8, 8]), "weight": 0.0}, 0))
    return examples(held_out).concatenate(padding.repeat()).batch(params["batch_size"], True)


EVAL_STEPS = -(-len(held_out) // BATCH)


def inference(images):
    """float32 [B, 8, 8] from 0 to 1 -> logits, float32 [B, 10]."""
    net = images[:, :, :, None]
    net = v1.layers.conv2d(net, 32, 3, padding="same", activation=tf.nn.relu)
    net = v1.layers.max_pooling2d(net, 2, 2)
    net = v1.layers.flatten(net)
    net = v1.layers.dense(net, 64, activation=tf.nn.relu)
    return v1.layers.dense(net, 10)


def metric_fn(labels, logits, losses, weight):
    """int32 [B], float32 [B, 10], float32 [B], float32 [B], of all cores -> metrics. On the host."""
    # TODO 4a: "accuracy", "top_3" and "mean_loss", weighted
    in_top_3 = tf.cast(tf.math.in_top_k(labels, logits, 3), tf.float32)
    return {
        "accuracy": v1.metrics.accuracy(labels, tf.argmax(logits, axis=1), weights=weight),
        "top_3": v1.metrics.mean(in_top_3, weights=weight),
        "mean_loss": v1.metrics.mean(losses, weights=weight),
    }


def eval_spec(mode, labels, logits, weight):
    """int32 [B], float32 [B, 10], float32 [B] -> the TPUEstimatorSpec of an evaluation."""
    # TODO 4b: loss, and eval_metrics with what metric_fn takes
    loss = v1.losses.sparse_softmax_cross_entropy(labels, logits, weight)
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)
    metrics = (metric_fn, [labels, logits, losses, weight])
    return tpu.TPUEstimatorSpec(mode, loss=loss, eval_metrics=metrics)


def make_host_fn(directory, every):
    """Returns host_fn, which writes to `directory` at every `every`-th step."""

    def host_fn(step, loss, rate):
        """int64 [N], float32 [N], float32 [N], one entry for each of N cores -> ops. On the host."""
        # TODO 4c: two summaries, at the steps that every divides
        now = step[0]
        writer = tf.summary.create_file_writer(directory)
        with writer.as_default(), tf.summary.record_if(tf.equal(now % every, 0)):
            tf.summary.scalar("loss", tf.reduce_mean(loss), step=now)
            tf.summary.scalar("learning_rate", rate[0], step=now)
        return v1.summary.all_v2_summary_ops()

    return host_fn


def train_spec(mode, loss, params, scaffold_fn=None):
    """The TPUEstimatorSpec of training, with a learning rate that is halved every 100 steps."""
    step = v1.train.get_global_step()
    rate = v1.train.exponential_decay(params["learning_rate"], step, 100, 0.5)
    optimizer = v1.train.AdamOptimizer(rate)
    if params["use_tpu"]:
        optimizer = v1.tpu.CrossShardOptimizer(optimizer)
    train_op = optimizer.minimize(loss, step)
    # TODO 4d: host_call = (function, tensors)
    host_fn = make_host_fn(params["summary_dir"], params["summary_steps"])
    host_call = (host_fn, [tf.reshape(each, [1]) for each in (step, loss, rate)])
    return tpu.TPUEstimatorSpec(
        mode, loss=loss, train_op=train_op, host_call=host_call, scaffold_fn=scaffold_fn
    )


class Every(v1.train.SessionRunHook):
    """Calls action(step) once `steps` steps or more have been taken since the last call."""

    def __init__(self, steps, action):
        self.steps, self.action = steps, action
        self.last = 0  # the step of the last call

    def begin(self):
        self.global_step = v1.train.get_global_step()

    def after_run(self, run_context, run_values):
        step = run_context.session.run(self.global_step)
        # TODO 4e: is it time to act?
        if step - self.last >= self.steps:
            self.action(step)
            self.last = step


def make_scaffold_fn(checkpoint):
    """Returns scaffold_fn: () -> Scaffold, with which conv2d/... start from `checkpoint`."""

    def scaffold_fn():
        # TODO 4f: how conv2d/... starts
        v1.train.init_from_checkpoint(checkpoint, {"conv2d/": "conv2d/"})
        return v1.train.Scaffold()

    return scaffold_fn
