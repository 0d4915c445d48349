"""What the programs of this folder share: a small right port, and whether the fault of a report is wanted."""

import os

import numpy as np

from lab_utils.estimator import tf, tpu, v1

FAULTY = bool(os.environ.get("FAULTY"))
TRAIN, EVAL, PREDICT = "train", "eval", "infer"


def arrays(count=512):
    features = np.random.RandomState(0).rand(count, 8).astype(np.float32)
    return features, features.argmax(1).astype(np.int32)


def train_input(params):
    data = tf.data.Dataset.from_tensor_slices(arrays()).shuffle(512).repeat()
    return data.batch(params["batch_size"], drop_remainder=True)


def eval_input(params):
    return tf.data.Dataset.from_tensor_slices(arrays()).batch(
        params["batch_size"], drop_remainder=True
    )


def predict_input(params):
    return tf.data.Dataset.from_tensor_slices(arrays()[0]).batch(params["batch_size"])


def logits_of(features):
    return v1.layers.dense(v1.layers.dense(features, 16, tf.nn.relu), 8, name="logits")


def loss_of(labels, logits):
    return v1.losses.sparse_softmax_cross_entropy(labels, logits)


def minimize(loss, optimizer=None):
    optimizer = v1.tpu.CrossShardOptimizer(optimizer or v1.train.GradientDescentOptimizer(0.1))
    return optimizer.minimize(loss, v1.train.get_global_step())


def accuracy(labels, logits):
    return {"accuracy": v1.metrics.accuracy(labels, tf.argmax(logits, 1))}


def spec(mode, labels, logits):
    """The right spec of each mode."""
    if mode == PREDICT:
        return tpu.TPUEstimatorSpec(mode, predictions={"class": tf.argmax(logits, 1)})
    loss = loss_of(labels, logits)
    if mode == EVAL:
        return tpu.TPUEstimatorSpec(mode, loss=loss, eval_metrics=(accuracy, [labels, logits]))
    return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=minimize(loss))


def model_fn(features, labels, mode, params):
    return spec(mode, labels, logits_of(features))


def config(address="local", **options):
    resolver = tf.distribute.cluster_resolver.TPUClusterResolver(address)
    settings = tpu.TPUConfig(**({"iterations_per_loop": 10} | options))
    folder = None if address == "local" else "gs://our-bucket/run"
    return tpu.RunConfig(cluster=resolver, tpu_config=settings, model_dir=folder)


def estimator(model_fn=model_fn, **options):
    sizes = {"train_batch_size": 64, "eval_batch_size": 64, "predict_batch_size": 64}
    return tpu.TPUEstimator(model_fn, config=config(), use_tpu=True, **(sizes | options))


def strategy(address="local"):
    resolver = tf.distribute.cluster_resolver.TPUClusterResolver(tpu=address)
    tf.config.experimental_connect_to_cluster(resolver)
    tf.tpu.experimental.initialize_tpu_system(resolver)
    return tf.distribute.TPUStrategy(resolver)
