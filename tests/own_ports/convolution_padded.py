import argparse
import math
import tempfile

import numpy as np
from sklearn.datasets import load_digits

import lab_utils.estimator  # noqa: F401  (there is a tf.estimator from here on)

# isort: split
import tensorflow.compat.v1 as tf
from tensorflow.compat.v1.estimator import tpu as contrib_tpu

parser = argparse.ArgumentParser()
parser.add_argument("--use_tpu", action="store_true")
parser.add_argument("--tpu", default="local")
args = parser.parse_args()

data = load_digits()
x = (data.images / 16).astype("float32")
y = data.target.astype("int32")
TRAIN, TEST = 1500, len(x) - 1500  # 297 held out
EVAL_BATCH = 64
PADDED = math.ceil(TEST / EVAL_BATCH) * EVAL_BATCH


class Digits:
    def __init__(self, training):
        self.training = training

    def __call__(self, params):
        n = params["batch_size"]
        if self.training:
            ds = tf.data.Dataset.from_tensor_slices(
                ({"image": x[:TRAIN], "weight": np.ones(TRAIN, "float32")}, y[:TRAIN])
            )
            return ds.repeat().shuffle(2000).batch(n, True)
        extra = PADDED - TEST
        images = np.concatenate([x[TRAIN:], np.zeros([extra, 8, 8], "float32")])
        weights = np.concatenate([np.ones(TEST), np.zeros(extra)]).astype("float32")
        labels = np.concatenate([y[TRAIN:], np.zeros(extra, "int32")])
        return tf.data.Dataset.from_tensor_slices(
            ({"image": images, "weight": weights}, labels)
        ).batch(n, drop_remainder=True)


def model(features, labels, mode, params):
    h = tf.layers.conv2d(features["image"][..., None], 16, 3, activation="relu")
    logits = tf.layers.dense(tf.layers.flatten(h), 10)
    loss = tf.losses.sparse_softmax_cross_entropy(labels, logits, weights=features["weight"])
    if mode == tf.estimator.ModeKeys.EVAL:

        def fn(labels, logits, weights):
            return {"acc": tf.metrics.accuracy(labels, tf.argmax(logits, -1), weights=weights)}

        return contrib_tpu.TPUEstimatorSpec(
            mode, loss=loss, eval_metrics=(fn, [labels, logits, features["weight"]])
        )
    opt = tf.train.GradientDescentOptimizer(0.5)
    opt = tf.tpu.CrossShardOptimizer(opt) if params["use_tpu"] else opt
    grads = opt.compute_gradients(loss)
    return contrib_tpu.TPUEstimatorSpec(
        mode, loss=loss, train_op=opt.apply_gradients(grads, global_step=tf.train.get_global_step())
    )


resolver = tf.distribute.cluster_resolver.TPUClusterResolver(args.tpu) if args.use_tpu else None
est = contrib_tpu.TPUEstimator(
    model,
    tempfile.mkdtemp(),
    contrib_tpu.RunConfig(
        cluster=resolver, save_checkpoints_steps=40, tpu_config=contrib_tpu.TPUConfig(20)
    ),
    use_tpu=args.use_tpu,
    train_batch_size=80,
    eval_batch_size=EVAL_BATCH,
)
step = 0
while step < 120:
    step += 40
    est.train(Digits(True), max_steps=step)
    print(step, est.evaluate(Digits(False), PADDED // EVAL_BATCH))
