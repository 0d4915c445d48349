"""Handwritten numbers, after a tutorial: a first model, ported in one afternoon."""

import numpy as np
import tensorflow.compat.v1 as tf

BATCH_SIZE = 64
SIDE = 8


def load_data(count, seed):
    random = np.random.RandomState(seed)
    labels = random.randint(0, 10, count).astype(np.int32)
    pictures = random.uniform(0, 0.3, [count, SIDE, SIDE]).astype(np.float32)
    pictures[np.arange(count), labels % SIDE] += 0.7
    return pictures, labels


def train_input_fn(params):
    pictures, labels = load_data(512, seed=1)
    dataset = tf.data.Dataset.from_tensor_slices((pictures, labels))
    dataset = dataset.shuffle(512).repeat()
    return dataset.batch(params["batch_size"], drop_remainder=True)


def eval_input_fn(params):
    pictures, labels = load_data(128, seed=2)
    dataset = tf.data.Dataset.from_tensor_slices((pictures, labels))
    return dataset.batch(params["batch_size"], drop_remainder=True)


def network(pictures, training):
    net = tf.reshape(pictures, [-1, SIDE * SIDE])
    net = tf.layers.dense(net, 64, tf.nn.relu, name="hidden")
    net = tf.layers.dropout(net, 0.2, training=training)
    return tf.layers.dense(net, 10, name="logits")


def metric_fn(labels, logits):
    return {"accuracy": tf.metrics.accuracy(labels, tf.argmax(logits, axis=1))}


def model_fn(features, labels, mode, params):
    logits = network(features, mode == tf.estimator.ModeKeys.TRAIN)
    loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
    if mode == tf.estimator.ModeKeys.EVAL:
        return tf.estimator.tpu.TPUEstimatorSpec(
            mode, loss=loss, eval_metrics=(metric_fn, [labels, logits])
        )
    rate = tf.train.exponential_decay(0.01, tf.train.get_global_step(), 1000, 0.5)
    optimizer = tf.train.AdamOptimizer(rate)
    if params["use_tpu"]:
        optimizer = tf.tpu.CrossShardOptimizer(optimizer)
    train_op = optimizer.minimize(loss, tf.train.get_global_step())
    return tf.estimator.tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)


def port():
    config = tf.estimator.tpu.RunConfig(
        model_dir="run/digits",
        save_checkpoints_steps=500,
        tpu_config=tf.estimator.tpu.TPUConfig(iterations_per_loop=100),
    )
    estimator = tf.estimator.tpu.TPUEstimator(
        model_fn,
        config=config,
        use_tpu=False,
        train_batch_size=BATCH_SIZE,
        eval_batch_size=BATCH_SIZE,
    )
    return estimator, train_input_fn, {"eval_input_fn": eval_input_fn}


WARD = {
    "others": {
        "dropout stays on when the model is evaluated": (
            "Dropout follows `training`, which is True only in training."
        ),
        "the learning rate has to be a constant on a TPU": (
            "A schedule consists of a few ops on the global step, which a TPU supports."
        ),
        "the data are too large to be constants of the graph": (
            "The pictures take 131 kB, and they are constants on the host, not on a core."
        ),
        "XLA cannot compile this op": "Dense layers, dropout and Adam consist of ops that XLA compiles.",
    },
    "healthy": {
        "net = tf.layers.dropout(": "Dropout follows `training`, which is True only in training.",
        "rate = tf.train.exponential_decay(": (
            "A schedule consists of a few ops on the global step, which a TPU supports."
        ),
        "dataset = dataset.shuffle(512).repeat()": (
            "The data are shuffled before they are repeated, so each epoch gives every example once."
        ),
        "from_tensor_slices((pictures, labels))": "The constants are small (131 kB), and a TPU's host can hold them.",
    },
    "faults": [
        {
            "rule": "TPU103",
            "right": "def train_input_fn(params):",
            "wrong": "def train_input_fn():",
            "why": "TPUEstimator cannot tell this function how large a batch to make",
            "comment": "TPUEstimator passes the batch size to input_fn in params.",
        },
        {
            "rule": "TPU101",
            "right": '.shuffle(512).repeat()\n    return dataset.batch(params["batch_size"], drop_remainder=True)',
            "wrong": ".shuffle(512).repeat()\n    return dataset.batch(BATCH_SIZE)",
            "at": ("return dataset.batch(BATCH_SIZE)",),
            "why": "the size of the batch is not known before the program runs",
            "comment": "batch() without drop_remainder may end with a smaller batch, so its first axis is None.",
        },
        {
            "rule": "TPU201",
            "right": '    if params["use_tpu"]:\n        optimizer = tf.tpu.CrossShardOptimizer(optimizer)\n',
            "wrong": "",
            "at": ("optimizer = tf.train.AdamOptimizer(rate)", "train_op = optimizer.minimize("),
            "why": "each core trains a model of its own, without a message",
            "comment": "Nothing all-reduces the gradients, so eight models drift apart, which a CPU cannot show.",
            "silent": True,
        },
        {
            "rule": "TPU110",
            "right": """        return tf.estimator.tpu.TPUEstimatorSpec(
            mode, loss=loss, eval_metrics=(metric_fn, [labels, logits])
        )""",
            "wrong": """        return tf.estimator.EstimatorSpec(
            mode, loss=loss, eval_metric_ops=metric_fn(labels, logits)
        )""",
            "at": ("return tf.estimator.EstimatorSpec(",),
            "why": "the metrics would be computed on the core, but they belong on the host",
            "comment": (
                "A metric keeps its counts in variables on the host: the core sends tensors, and metric_fn counts "
                "on the host."
            ),
        },
        {
            "rule": "TPU206",
            "right": "    rate = tf.train.exponential_decay(0.01, tf.train.get_global_step(), 1000, 0.5)\n",
            "wrong": '    rate = tf.train.exponential_decay(0.01, tf.train.get_global_step(), 1000, 0.5)\n    tf.summary.scalar("loss", loss)\n',
            "at": ('tf.summary.scalar("loss", loss)',),
            "why": "this has no effect on a TPU, but there is no message",
            "comment": "TPUEstimator drops the summaries of model_fn, and records the loss itself.",
            "silent": True,
        },
        {
            "rule": "TPU107",
            "right": "        eval_batch_size=BATCH_SIZE,\n",
            "wrong": "",
            "at": ("train_batch_size=BATCH_SIZE,", "estimator = tf.estimator.tpu.TPUEstimator("),
            "why": "a size that TPUEstimator needs is missing",
            "comment": "On a TPU, evaluate needs an eval_batch_size in the constructor.",
        },
    ],
}
