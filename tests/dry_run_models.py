"""Small models for the tests of the dry run: a port as people write them, one trait each."""

import numpy as np

from lab_utils.dry_run.private import hlo as _hlo
from lab_utils.dry_run.run.virtual import running
from lab_utils.estimator import tf, tpu, v1

RNG = np.random.RandomState(0)
IMAGES = RNG.rand(256, 8, 8, 3).astype("float32")
ROWS = RNG.rand(256, 6).astype("float32")
WORDS = RNG.randint(0, 50, (256, 7)).astype("int32")
CLASSES = RNG.randint(0, 3, 256).astype("int32")


def make(model_fn, *, batch=64, params=None, config=None, **arguments):
    """A TPUEstimator around `model_fn`, as a learner hands it over: with use_tpu=False."""
    config = config or tpu.RunConfig(
        model_dir="unused_model_dir", tpu_config=tpu.TPUConfig(iterations_per_loop=10)
    )
    defaults = {"use_tpu": False, "eval_batch_size": batch, "predict_batch_size": batch}
    return tpu.TPUEstimator(
        model_fn,
        config=config,
        params=params or {},
        train_batch_size=batch,
        **defaults | arguments,
    )


def run_program(program, **options):
    """What happens in some steps of a lowered program on virtual cores."""
    with running(program, **options) as finish:
        return finish(None)


def all_reduces(program):
    """How many sums over the cores a lowered program holds."""
    module = _hlo.module(program.hlo)
    ops = [op.opcode for computation in module.computations for op in computation.instructions]
    return ops.count("all-reduce")


def reader(data):
    """An input_fn over arrays."""

    def input_fn(params):
        dataset = tf.data.Dataset.from_tensor_slices(data).shuffle(256, seed=1).repeat()
        return dataset.batch(params["batch_size"], drop_remainder=True)

    return input_fn


def train_spec(mode, loss, params, optimizer=None, **more):
    """The spec of a training step with CrossShardOptimizer."""
    optimizer = optimizer or v1.train.AdamOptimizer(0.01)
    if params["use_tpu"] and params.get("cross_shard", True):
        optimizer = v1.tpu.CrossShardOptimizer(optimizer)
    updates = v1.get_collection(v1.GraphKeys.UPDATE_OPS)
    with tf.control_dependencies(updates):
        step = optimizer.minimize(loss, v1.train.get_global_step())
    return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=step, **more)


def classify(logits, labels):
    """The mean loss of a classifier."""
    return tf.reduce_mean(
        tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
    )


def dense(features, labels, mode, params):
    """A plain network, with all three modes."""
    hidden = v1.layers.dense(features, 16, activation=tf.nn.relu)
    logits = v1.layers.dense(hidden, 3)
    if mode == "infer":
        return tpu.TPUEstimatorSpec(mode, predictions={"class": tf.argmax(logits, 1)})
    loss = classify(logits, labels)
    if mode == "eval":
        metrics = (lambda y, z: {"a": v1.metrics.accuracy(y, tf.argmax(z, 1))}, [labels, logits])
        return tpu.TPUEstimatorSpec(mode, loss=loss, eval_metrics=metrics)
    return train_spec(mode, loss, params)


def batch_norm(features, labels, mode, params):
    """Convolutions with fused batch normalisation and its update ops."""
    x = v1.layers.conv2d(features, 8, 3)
    x = v1.layers.batch_normalization(x, training=mode == "train", fused=True)
    return train_spec(mode, classify(v1.layers.dense(v1.layers.flatten(x), 3), labels), params)


def dropout(features, labels, mode, params):
    """Random numbers on the device."""
    x = v1.layers.dropout(v1.layers.dense(features, 16), 0.5, training=True)
    return train_spec(mode, classify(v1.layers.dense(x, 3), labels), params)


def recurrent(features, labels, mode, params):
    """Embedding and LSTM: gathers, loops and their gradients."""
    table = v1.get_variable("table", [50, 8])
    words = tf.nn.embedding_lookup(table, features["words"])
    cell = v1.nn.rnn_cell.LSTMCell(8)
    _, state = v1.nn.dynamic_rnn(cell, words, dtype=tf.float32)
    return train_spec(mode, classify(v1.layers.dense(state.h, 3), labels), params)


def no_labels(features, labels, mode, params):
    """An autoencoder of a lone tensor, with a host_call and a scaffold_fn."""
    decoded = v1.layers.dense(v1.layers.dense(features, 3), 6)
    loss = tf.reduce_mean(tf.math.squared_difference(decoded, features))
    return train_spec(
        mode,
        loss,
        params,
        host_call=(lambda loss: tf.print(loss), [tf.reshape(loss, [1])]),
        scaffold_fn=lambda: v1.train.Scaffold(),
    )


def control_flow(features, labels, mode, params):
    """tf.cond, tf.while_loop with a gradient, tf.map_fn."""
    x = v1.layers.dense(features, 8)
    x = tf.cond(tf.reduce_mean(x) > 0, lambda: x * 2, lambda: x - 1)
    body = lambda i, y: (i + 1, tf.tanh(y))  # noqa: E731
    x = tf.while_loop(lambda i, y: i < 3, body, (0, x), maximum_iterations=3)[1]
    x = tf.map_fn(lambda row: row * 2.0, x)
    return train_spec(mode, classify(v1.layers.dense(x, 3), labels), params)


def cross_replica_norm(features, labels, mode, params):
    """Batch statistics summed over the cores, and the core's own number."""
    mean = v1.tpu.cross_replica_sum(tf.reduce_mean(features, 0)) / 8
    core = tf.cast(tf.distribute.get_replica_context().replica_id_in_sync_group, tf.float32)
    x = v1.layers.dense(features - mean + 0 * core, 8)
    return train_spec(mode, classify(v1.layers.dense(x, 3), labels), params)


MODELS = {
    "dense": (dense, (ROWS, CLASSES)),
    "batch_norm": (batch_norm, (IMAGES, CLASSES)),
    "dropout": (dropout, (ROWS, CLASSES)),
    "recurrent": (recurrent, ({"words": WORDS}, CLASSES)),
    "no_labels": (no_labels, ROWS),
    "control_flow": (control_flow, (ROWS, CLASSES)),
    "cross_replica_norm": (cross_replica_norm, (ROWS, CLASSES)),
}
