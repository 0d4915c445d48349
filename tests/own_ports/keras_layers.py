"""Regression with Keras layers, cyclic evaluation input, batch over the whole held-out set."""

import argparse
import tempfile

import numpy as np
from sklearn.datasets import load_diabetes

from lab_utils.estimator import tf, tpu, v1

p = argparse.ArgumentParser()
p.add_argument(
    "--use_tpu",
    type=lambda s: s.lower() in ("true", "1", "yes"),
    nargs="?",
    const=True,
    default=False,
)
flags, _ = p.parse_known_args()
X, t = load_diabetes(return_X_y=True)
X, t = np.float32(X * 20), np.float32((t - t.mean()) / t.std())[:, None]


def train_input(params):
    return (
        tf.data.Dataset.from_tensor_slices((X[:400], t[:400]))
        .shuffle(400)
        .repeat()
        .batch(params["batch_size"], drop_remainder=True)
    )


def eval_input(params):
    return (
        tf.data.Dataset.from_tensor_slices((X[402:], t[402:]))
        .batch(params["batch_size"], drop_remainder=True)
        .repeat()
    )


def model_fn(features, labels, mode, params):
    net = tf.keras.Sequential([tf.keras.layers.Dense(16, "relu"), tf.keras.layers.Dense(1)])
    out = net(features)
    if mode == tf.estimator.ModeKeys.PREDICT:
        return tpu.TPUEstimatorSpec(mode, predictions={"out": out})
    loss = tf.reduce_mean(tf.square(out - labels))
    if mode == tf.estimator.ModeKeys.EVAL:
        return tpu.TPUEstimatorSpec(
            mode=mode,
            loss=loss,
            eval_metrics=(
                lambda a, b: dict(rmse=v1.metrics.root_mean_squared_error(a, b)),
                [labels, out],
            ),
        )
    optimizer = v1.train.RMSPropOptimizer(0.01)
    if params["use_tpu"]:
        optimizer = v1.tpu.CrossShardOptimizer(optimizer)
    return tpu.TPUEstimatorSpec(
        mode=mode,
        loss=loss,
        train_op=optimizer.minimize(loss, global_step=v1.train.get_global_step()),
    )


def make_estimator(use_tpu):
    cluster = tf.distribute.cluster_resolver.TPUClusterResolver("local") if use_tpu else None
    run = tpu.RunConfig(
        cluster=cluster,
        model_dir=tempfile.mkdtemp(),
        save_checkpoints_steps=100,
        tpu_config=tpu.TPUConfig(iterations_per_loop=50),
    )
    return tpu.TPUEstimator(
        model_fn,
        config=run,
        use_tpu=use_tpu,
        train_batch_size=40,
        eval_batch_size=40,
        predict_batch_size=40,
    )


estimator = make_estimator(flags.use_tpu)
estimator.train(train_input, steps=100)
print(estimator.evaluate(eval_input, steps=1))
