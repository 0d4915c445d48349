"""Clicks on advertisements: rows of text with hashed words, a wide and a deep part, crossed columns, an area metric.

Labels are [batch, 1] throughout; two optimizers share a step; the estimator is made by a function of argparse's.
"""

import argparse
import os

import numpy as np
import tensorflow.compat.v1 as tf

DENSE, WORDS, BUCKETS, DIM = 4, 3, 50, 6
COLUMNS = ["clicked"] + ["d%d" % i for i in range(DENSE)] + ["c%d" % i for i in range(WORDS)]


def get_args():
    p = argparse.ArgumentParser()
    p.add_argument("--batch_size", type=int, default=64)
    p.add_argument("--deep", type=int, nargs="*", default=[32, 16])
    p.add_argument("--l2", type=float, default=1e-6)
    p.add_argument("--tpu", default="local")
    return p.parse_args([])


args = get_args()


def parse_lines(lines):
    defaults = [[0.0]] + [[0.0]] * DENSE + [[""]] * WORDS
    fields = dict(zip(COLUMNS, tf.io.decode_csv(lines, defaults, field_delim="\t")))
    label = fields.pop("clicked")[:, None]
    words = [tf.strings.to_hash_bucket_fast(fields["c%d" % i], BUCKETS) for i in range(WORDS)]
    crossed = tf.strings.to_hash_bucket_fast(tf.strings.join([fields["c0"], fields["c1"]], "_x_"), BUCKETS)
    dense = tf.log1p(tf.maximum(tf.stack([fields["d%d" % i] for i in range(DENSE)], 1), 0.0))
    sparse = tf.cast(tf.stack(words + [crossed], 1), tf.int32)
    return {"dense": dense, "sparse": sparse}, label


class Reader:
    def __init__(self, files, shuffle):
        self.files, self.shuffle = files, shuffle

    def __call__(self, params):
        size = params["batch_size"]
        ds = tf.data.TextLineDataset(self.files, buffer_size=8 << 20)
        if self.shuffle:
            ds = ds.shuffle(1000).repeat(None)
        return ds.batch(size, drop_remainder=True).map(parse_lines, 2).prefetch(1)


def tables(name, dim):
    with tf.variable_scope(name):
        return [tf.get_variable("t%d" % i, [BUCKETS, dim], initializer=tf.zeros_initializer() if dim == 1 else None) for i in range(WORDS + 1)]


def model_fn(features, labels, mode, params):
    sparse = tf.unstack(features["sparse"], axis=1)
    wide = sum(tf.nn.embedding_lookup(t, ids) for t, ids in zip(tables("wide", 1), sparse))
    embedded = [tf.nn.embedding_lookup(t, ids) for t, ids in zip(tables("deep", DIM), sparse)]
    pairs = tf.stack(embedded, 1)
    interactions = tf.matmul(pairs, pairs, transpose_b=True)
    mask = np.tril_indices(WORDS + 1, -1)
    flat = tf.stack([interactions[:, i, j] for i, j in zip(*mask)], 1)
    x = tf.concat(embedded + [features["dense"], flat], 1)
    with tf.variable_scope("deep"):
        for n, units in enumerate(args.deep):
            x = tf.layers.dense(x, units, tf.nn.relu, name="fc%d" % n)
        deep = tf.layers.dense(x, 1, name="out")
    bias = tf.get_variable("wide/bias", [1], initializer=tf.zeros_initializer())
    logits = wide + deep + bias
    probability = tf.sigmoid(logits)
    if mode == tf.estimator.ModeKeys.PREDICT:
        return tf.estimator.tpu.TPUEstimatorSpec(mode, predictions={"p": probability})
    loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=labels, logits=logits))
    loss += args.l2 * sum(tf.nn.l2_loss(v) for v in tf.trainable_variables("deep"))

    def metric_fn(labels, probability):
        return {"auc": tf.metrics.auc(labels, probability, num_thresholds=50, curve="ROC"), "prior": tf.metrics.mean(labels)}

    step = tf.train.get_or_create_global_step()
    train_op = None
    if mode == tf.estimator.ModeKeys.TRAIN:
        ftrl = tf.tpu.CrossShardOptimizer(tf.train.FtrlOptimizer(0.05, l1_regularization_strength=1e-4))
        adagrad = tf.tpu.CrossShardOptimizer(tf.train.AdagradOptimizer(0.02, initial_accumulator_value=0.1))
        with tf.name_scope("optimize"):
            of_wide = ftrl.minimize(loss, var_list=tf.trainable_variables("wide"))
            of_deep = adagrad.minimize(loss, var_list=tf.trainable_variables("deep"))
        train_op = tf.group(of_wide, of_deep)
        with tf.control_dependencies([train_op]):
            train_op = tf.assign_add(step, 1).op
    return tf.estimator.tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op, eval_metrics=(metric_fn, (labels, probability)))


def main(data_dir):
    path = os.path.join(data_dir, "clicks.tsv")
    if not os.path.exists(path):
        random = np.random.RandomState(1)
        with open(path, "w") as out:
            for _ in range(256):
                row = [float(random.rand() < 0.3)] + random.randint(0, 90, DENSE).tolist() + ["%x" % w for w in random.randint(0, 900, WORDS)]
                out.write("\t".join(map(str, row)) + "\n")
    resolver = None
    config = tf.estimator.tpu.RunConfig(
        cluster=resolver, model_dir="/tmp/clicks", tpu_config=tf.estimator.tpu.TPUConfig(100, 8), save_checkpoints_steps=400
    )
    est = tf.estimator.tpu.TPUEstimator(
        model_fn, config=config, use_tpu=bool(args.tpu), train_batch_size=args.batch_size, eval_batch_size=args.batch_size, predict_batch_size=args.batch_size
    )
    return est, Reader([path], True), {"eval_input_fn": Reader([path], False), "predict_input_fn": Reader([path], False)}


FAULTS = [
    ("TPU201", "        adagrad = tf.tpu.CrossShardOptimizer(tf.train.AdagradOptimizer(0.02, initial_accumulator_value=0.1))\n        with tf.name_scope(\"optimize\"):\n            of_wide = ftrl.minimize(loss, var_list=tf.trainable_variables(\"wide\"))\n            of_deep", "        adagrad = tf.train.AdagradOptimizer(0.02, initial_accumulator_value=0.1)\n        with tf.name_scope(\"optimize\"):\n            of_wide = ftrl.minimize(loss, var_list=tf.trainable_variables(\"wide\"))\n            of_deep"),
    ("TPU119", "    sparse = tf.cast(tf.stack(words + [crossed], 1), tf.int32)\n", "    sparse = tf.stack([fields[\"c%d\" % i] for i in range(WORDS)], 1)\n"),
    ("TPU101", "ds.batch(size, drop_remainder=True)", "ds.batch(size)"),
    ("TPU215", "            train_op = tf.assign_add(step, 1).op\n", "            train_op = tf.no_op()\n"),
    ("TPU204", "    wide = sum(", "    sparse = [tf.strings.to_hash_bucket_fast(tf.as_string(ids), BUCKETS) for ids in sparse]\n    wide = sum("),
    ("TPU224", "    step = tf.train.get_or_create_global_step()\n", "    step = tf.train.get_or_create_global_step()\n    loss += 0.0 * tf.metrics.auc(labels, probability)[1]\n"),
]
