"""Cracks in metal parts on a belt: does the camera see one?"""

import numpy as np
import tensorflow.compat.v1 as tf

SIDE = 8


def parts(count, seed):
    random = np.random.RandomState(seed)
    cracked = random.randint(0, 2, count).astype(np.float32)
    pictures = random.uniform(0, 1, [count, SIDE, SIDE]).astype(np.float32)
    pictures[:, SIDE // 2] -= 0.4 * cracked[:, None]
    features = {"picture": pictures, "weight": np.ones(count, np.float32)}
    return tf.data.Dataset.from_tensor_slices((features, cracked))


def train_input_fn(params):
    dataset = parts(512, seed=1).shuffle(512).repeat()
    return dataset.batch(params["batch_size"], drop_remainder=True)


def eval_input_fn(params):
    filler = ({"picture": tf.zeros([SIDE, SIDE]), "weight": 0.0}, 0.0)
    dataset = parts(100, seed=2).concatenate(tf.data.Dataset.from_tensors(filler).repeat(28))
    return dataset.batch(params["batch_size"], drop_remainder=True)


def model_fn(features, labels, mode, params):
    net = tf.layers.flatten(features["picture"])
    net = tf.layers.dense(net, 32, tf.nn.relu, name="hidden")
    logits = tf.layers.dense(net, 1, name="logits")[:, 0]
    weight = features["weight"]
    loss = tf.losses.sigmoid_cross_entropy(labels, logits, weight)
    if mode == tf.estimator.ModeKeys.EVAL:
        limit = params["limit"]

        def metric_fn(labels, logits, weight):
            cracked = tf.cast(tf.sigmoid(logits) > limit, tf.float32)
            return {
                "accuracy": tf.metrics.accuracy(labels, cracked, weights=weight),
                "recall": tf.metrics.recall(labels, cracked, weights=weight),
            }

        return tf.estimator.tpu.TPUEstimatorSpec(
            mode, loss=loss, eval_metrics=(metric_fn, [labels, logits, weight])
        )
    optimizer = tf.train.AdamOptimizer(0.01)
    if params["use_tpu"]:
        optimizer = tf.tpu.CrossShardOptimizer(optimizer)
    train_op = optimizer.minimize(loss, tf.train.get_global_step())
    return tf.estimator.tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)


def port():
    estimator = tf.estimator.tpu.TPUEstimator(
        model_fn,
        model_dir="run/parts",
        config=tf.estimator.tpu.RunConfig(),
        use_tpu=False,
        train_batch_size=64,
        eval_batch_size=64,
        params={"limit": 0.3},
    )
    return estimator, train_input_fn, {"eval_input_fn": eval_input_fn}


WARD = {
    "others": (
        "a number of Python cannot be used in metric_fn",
        "this op does not exist on a TPU",
        "padding counts as examples here",
        "a scalar would leave the core, and it has no axis along which to join",
    ),
    "healthy": {
        'limit = params["limit"]': "A number of Python is the same on every machine; metric_fn may use it.",
        "cracked = tf.cast(tf.sigmoid(logits) > limit": "This runs on the host, which has all ops; logits is a parameter, and limit a number of Python.",
        'weight = features["weight"]': "weight is in order here. Which line uses it where it is not?",
        "loss = tf.losses.sigmoid_cross_entropy(": "The loss stays on the core, and the weights keep padding out.",
        "from_tensors(filler).repeat(28)": "Padding fills the second batch, with weight 0.",
    },
    "weight": "weight",
    "faults": [
        {
            "rule": "TPU118",
            "right": """        def metric_fn(labels, logits, weight):
            cracked = tf.cast(tf.sigmoid(logits) > limit, tf.float32)
            return {
                "accuracy": tf.metrics.accuracy(labels, cracked, weights=weight),
                "recall": tf.metrics.recall(labels, cracked, weights=weight),
            }

        return tf.estimator.tpu.TPUEstimatorSpec(
            mode, loss=loss, eval_metrics=(metric_fn, [labels, logits, weight])
        )""",
            "wrong": """        def metric_fn(labels, logits):
            cracked = tf.cast(tf.sigmoid(logits) > limit, tf.float32)
            return {
                "accuracy": tf.metrics.accuracy(labels, cracked, weights=weight),
                "recall": tf.metrics.recall(labels, cracked, weights=weight),
            }

        return tf.estimator.tpu.TPUEstimatorSpec(
            mode, loss=loss, eval_metrics=(metric_fn, [labels, logits])
        )""",
            "at": ("tf.metrics.accuracy(labels", "tf.metrics.recall(labels"),
            "why": "metric_fn uses a tensor that stays on the core",
            "comment": "Only the tensors of eval_metrics leave the core; weight was not among them.",
        },
    ],
}
