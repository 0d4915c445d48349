"""A port for the first demo (demos.md): handwritten digits, with two faults that a CPU does not show."""

import sys
import tempfile

import numpy as np
from sklearn.datasets import load_digits

from lab_utils.estimator import tf, tpu, v1

USE_TPU = "--use_tpu" in sys.argv
PIXELS, LABELS = load_digits(return_X_y=True)
PIXELS, LABELS = (PIXELS / 16).astype(np.float32), LABELS.astype(np.int32)


def train_input_fn(params):
    dataset = tf.data.Dataset.from_tensor_slices((PIXELS[:-300], LABELS[:-300]))
    dataset = dataset.shuffle(1500)
    return dataset.batch(params["batch_size"]).repeat()


def eval_input_fn(params):
    dataset = tf.data.Dataset.from_tensor_slices((PIXELS[-296:], LABELS[-296:]))
    return dataset.batch(params["batch_size"], drop_remainder=True)


def model_fn(features, labels, mode, params):
    net = v1.layers.dense(features, 64, activation=tf.nn.relu)
    logits = v1.layers.dense(net, 10)
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)
    loss = tf.reduce_mean(losses)
    optimizer = v1.train.AdamOptimizer(0.01)
    train_op = optimizer.minimize(loss, v1.train.get_global_step())

    def metric_fn(labels, logits):
        return {"accuracy": v1.metrics.accuracy(labels, tf.argmax(logits, axis=1))}

    return tpu.TPUEstimatorSpec(
        mode, loss=loss, train_op=train_op, eval_metrics=(metric_fn, [labels, logits])
    )


def main():
    cluster = tf.distribute.cluster_resolver.TPUClusterResolver("local") if USE_TPU else None
    config = tpu.RunConfig(
        cluster=cluster,
        model_dir=tempfile.mkdtemp(prefix="demo-"),
        tpu_config=tpu.TPUConfig(iterations_per_loop=100),
    )
    estimator = tpu.TPUEstimator(
        model_fn, config=config, use_tpu=USE_TPU, train_batch_size=256, eval_batch_size=296
    )
    estimator.train(train_input_fn, max_steps=200)
    print("accuracy", round(float(estimator.evaluate(eval_input_fn, steps=1)["accuracy"]), 3))


if __name__ == "__main__":
    main()
