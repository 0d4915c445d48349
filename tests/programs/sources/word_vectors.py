"""Word vectors: a skip-gram with negatives drawn by the host, sharded reading with the host's number."""

import numpy as np
import tensorflow.compat.v1 as tf

VOCAB, DIM, NEGATIVES = 2000, 16, 5


class HParams(object):
    """What tf.contrib.training.HParams was."""

    def __init__(self, **kwargs):
        self.__dict__.update(kwargs)

    def values(self):
        return dict(self.__dict__)

    def add_hparam(self, name, value):
        setattr(self, name, value)


def model_fn(features, labels, mode, params):
    hparams = HParams(**params)
    init = 0.5 / hparams.dim
    w_in = tf.get_variable("w_in", [hparams.vocab, hparams.dim], initializer=tf.random_uniform_initializer(-init, init))
    w_out = tf.get_variable("w_out", [hparams.vocab, hparams.dim], initializer=tf.zeros_initializer())
    bias = tf.get_variable("bias", [hparams.vocab], initializer=tf.zeros_initializer())
    centre = tf.nn.embedding_lookup(w_in, features["centre"])
    positive = tf.nn.embedding_lookup(w_out, labels)
    negative = tf.nn.embedding_lookup(w_out, features["negatives"])
    if mode == tf.estimator.ModeKeys.PREDICT:
        return tf.estimator.tpu.TPUEstimatorSpec(mode, predictions={"vector": centre})
    pos_logits = tf.reduce_sum(centre * positive, axis=1) + tf.gather(bias, labels)
    neg_logits = tf.einsum("bd,bnd->bn", centre, negative)
    losses = tf.nn.sigmoid_cross_entropy_with_logits(labels=tf.ones_like(pos_logits), logits=pos_logits)
    losses += tf.reduce_sum(
        tf.nn.sigmoid_cross_entropy_with_logits(labels=tf.zeros_like(neg_logits), logits=neg_logits), axis=1
    )
    loss = tf.reduce_mean(losses)
    step = tf.train.get_or_create_global_step()
    rate = tf.maximum(hparams.lr * (1.0 - tf.cast(step, tf.float32) / hparams.steps), 1e-4)
    optimizer = tf.train.GradientDescentOptimizer(rate)
    if hparams.use_tpu:
        optimizer = tf.tpu.CrossShardOptimizer(optimizer)
    train_op = optimizer.minimize(loss, step)  # <- TPU201
    return tf.estimator.tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)


def make_input_fn(hparams):
    def input_fn(params):
        batch_size = params["batch_size"]
        context = params["context"]
        num_hosts, host = context.num_hosts, context.current_input_fn_deployment()[1]
        random = np.random.RandomState(host)
        text = random.zipf(1.5, 6000) % hparams.vocab
        centre, around = text[1:].astype(np.int32), text[:-1].astype(np.int32)
        dataset = tf.data.Dataset.from_tensor_slices((centre, around))
        dataset = dataset.shard(num_hosts, 0)
        dataset = dataset.repeat().shuffle(1000)

        def with_negatives(centre, around):
            negatives = tf.random.uniform([NEGATIVES], 0, hparams.vocab, tf.int32)
            return {"centre": centre, "negatives": negatives}, around

        dataset = dataset.map(with_negatives, num_parallel_calls=4)
        return dataset.batch(batch_size, drop_remainder=True).prefetch(8)

    return input_fn


def main(data_dir):
    hparams = HParams(vocab=VOCAB, dim=DIM, lr=0.5, steps=1000.0)
    hparams.add_hparam("seed", 1)
    config = tf.estimator.tpu.RunConfig(
        model_dir="/tmp/vectors",
        save_checkpoints_steps=1000,
        tpu_config=tf.estimator.tpu.TPUConfig(
            iterations_per_loop=1000,
            per_host_input_for_training=tf.estimator.tpu.InputPipelineConfig.PER_HOST_V2,
        ),
    )
    estimator = tf.estimator.tpu.TPUEstimator(
        model_fn, params=hparams.values(), config=config, train_batch_size=256, eval_batch_size=256
    )
    return estimator, make_input_fn(hparams)


FAULTS = [
    ("TPU201", "    if hparams.use_tpu:\n        optimizer = tf.tpu.CrossShardOptimizer(optimizer)\n", ""),
    ("TPU202", "    losses += tf.reduce_sum(\n        tf.nn.sigmoid_cross_entropy_with_logits(labels=tf.zeros_like(neg_logits), logits=neg_logits), axis=1\n    )\n", "    losses += tf.nn.nce_loss(w_out, bias, tf.cast(labels, tf.int64)[:, None], centre, NEGATIVES, hparams.vocab)\n"),
    ("TPU101", "dataset.batch(batch_size, drop_remainder=True).prefetch(8)", "dataset.padded_batch(batch_size, ({\"centre\": [], \"negatives\": [NEGATIVES]}, [])).prefetch(8)"),
    ("TPU126", "TPUEstimatorSpec(mode, loss=loss, train_op=train_op)", "TPUEstimatorSpec(mode, loss=loss)"),
    ("TPU120", "tf.random.uniform([NEGATIVES], 0, hparams.vocab, tf.int32)", "tf.cast(tf.random.uniform([NEGATIVES], 0, hparams.vocab, tf.int32), tf.uint16)"),
]
