"""Portraits out of noise: a generator and a discriminator, with an optimizer each."""

import numpy as np
import tensorflow.compat.v1 as tf

NOISE, SIDE, TRAIN, PREDICT = 16, 8, tf.estimator.ModeKeys.TRAIN, tf.estimator.ModeKeys.PREDICT


def _pictures(count):
    random = np.random.RandomState(3)
    return random.uniform(-1, 1, [count, SIDE, SIDE]).astype(np.float32)


def generator(noise):
    with tf.variable_scope("generator", reuse=tf.AUTO_REUSE):
        hidden = tf.layers.dense(noise, 32, tf.nn.relu, name="hidden")
        return tf.reshape(tf.layers.dense(hidden, SIDE * SIDE, tf.tanh, name="out"), [-1, SIDE, SIDE])


def discriminator(pictures):
    with tf.variable_scope("discriminator", reuse=tf.AUTO_REUSE):
        flat = tf.reshape(pictures, [-1, SIDE * SIDE])
        hidden = tf.layers.dense(flat, 32, tf.nn.leaky_relu, name="hidden")
        return tf.layers.dense(hidden, 1, name="out")[:, 0]


def cross_entropy(logits, real):
    labels = tf.ones_like(logits) if real else tf.zeros_like(logits)
    return tf.nn.sigmoid_cross_entropy_with_logits(labels=labels, logits=logits)


def contrast(pictures):
    """Pictures around their middle, times a window that is darker at the rim."""
    window = np.outer(np.hanning(SIDE + 2)[1:-1], np.hanning(SIDE + 2)[1:-1])
    window = tf.constant(window.astype(np.float32))
    return pictures * window


def sharpest(pictures):
    """How sharp each generated picture is, and the pictures from the sharpest on."""
    edges = tf.reduce_mean(tf.abs(pictures[:, 1:] - pictures[:, :-1]), axis=[1, 2])
    order = tf.argsort(edges, direction="DESCENDING")
    return edges, tf.gather(pictures, order)


def metric_fn(d_loss, g_loss):
    return {"d_loss": tf.metrics.mean(d_loss), "g_loss": tf.metrics.mean(g_loss)}


def model_fn(features, labels, mode, params):
    made = generator(features["noise"])
    if mode == PREDICT:
        edges, sorted_pictures = sharpest(made)
        predictions = {"pictures": made, "edges": edges, "sorted": sorted_pictures}
        return tf.estimator.tpu.TPUEstimatorSpec(mode, predictions=predictions)

    on_real = discriminator(contrast(features["pictures"]))
    on_made = discriminator(contrast(made))
    d_losses = cross_entropy(on_real, True) + cross_entropy(on_made, False)
    g_losses = cross_entropy(on_made, True)
    d_loss, g_loss = tf.reduce_mean(d_losses), tf.reduce_mean(g_losses)
    if mode != TRAIN:
        return tf.estimator.tpu.TPUEstimatorSpec(
            mode, loss=g_loss, eval_metrics=(metric_fn, [d_losses, g_losses])
        )

    d_optimizer = tf.train.AdamOptimizer(2e-4, beta1=0.5)
    g_optimizer = tf.train.AdamOptimizer(2e-4, beta1=0.5)
    if params["use_tpu"]:
        d_optimizer = tf.tpu.CrossShardOptimizer(d_optimizer)
        g_optimizer = tf.tpu.CrossShardOptimizer(g_optimizer)
    d_step = d_optimizer.minimize(d_loss, var_list=tf.trainable_variables("discriminator"))
    with tf.control_dependencies([d_step]):
        g_step = g_optimizer.minimize(
            g_loss, tf.train.get_global_step(), var_list=tf.trainable_variables("generator")
        )
    return tf.estimator.tpu.TPUEstimatorSpec(mode, loss=g_loss, train_op=g_step)


def _with_noise(count):
    noise = np.random.RandomState(4).normal(0, 1, [count, NOISE])
    noise = tf.data.Dataset.from_tensor_slices(noise.astype(np.float32))
    pictures = tf.data.Dataset.from_tensor_slices(_pictures(count))
    return tf.data.Dataset.zip({"noise": noise, "pictures": pictures})


def train_input_fn(params):
    dataset = _with_noise(256).shuffle(256).repeat()
    return dataset.batch(params["batch_size"], drop_remainder=True)


def eval_input_fn(params):
    return _with_noise(128).batch(params["batch_size"], drop_remainder=True)


def predict_input_fn(params):
    dataset = _with_noise(128).map(lambda both: {"noise": both["noise"]})
    return dataset.batch(params["batch_size"], drop_remainder=True)


def port():
    config = tf.estimator.tpu.RunConfig(
        model_dir="run/portraits",
        save_checkpoints_steps=1000,
        tpu_config=tf.estimator.tpu.TPUConfig(iterations_per_loop=500, num_shards=8),
    )
    estimator = tf.estimator.tpu.TPUEstimator(
        model_fn,
        config=config,
        use_tpu=False,
        train_batch_size=64,
        eval_batch_size=64,
        predict_batch_size=64,
    )
    inputs = {"eval_input_fn": eval_input_fn, "predict_input_fn": predict_input_fn}
    return estimator, train_input_fn, inputs


WARD = {
    "others": {
        "the two networks share variables by mistake": (
            "They have scopes of their own. Only the two calls of the discriminator share variables, as they should."
        ),
        "tf.argsort is missing on a TPU": "TensorFlow turns argsort into TopK, which a TPU supports.",
        "a constant of the graph is too large": (
            "The largest constant on a core is the window, with 64 numbers."
        ),
        "the shape of the batch is not known before the program runs": (
            "All three input functions drop a last batch that is not full."
        ),
        "labels are missing, and a TPU needs them": "labels may be None, if model_fn does not use them.",
    },
    "healthy": {
        "order = tf.argsort(": "TensorFlow turns argsort into TopK, which a TPU supports.",
        "reuse=tf.AUTO_REUSE": "Both calls of the discriminator should use the same variables.",
        "def model_fn(features, labels": "labels are None here, and that is allowed.",
        "return tf.layers.dense(hidden, 1": "This line turns a column into a row, which prevents broadcasting.",
    },
    "faults": [
        {
            "rule": "TPU120",
            "right": "    noise = tf.data.Dataset.from_tensor_slices(noise.astype(np.float32))\n",
            "wrong": "    noise = tf.data.Dataset.from_tensor_slices(noise)\n",
            "at": ("noise = np.random.RandomState(4)", 'return tf.data.Dataset.zip({"noise"'),
            "why": "a feature is of a type that the infeed does not support",
            "comment": (
                "NumPy draws float64 numbers. Features must be float32, int32, bfloat16 or another type that the "
                "infeed supports (rule TPU120 lists them)."
            ),
        },
        {
            "rule": "TPU208",
            "right": "    window = tf.constant(window.astype(np.float32))\n    return pictures * window\n",
            "wrong": "    return tf.cast(tf.cast(pictures, tf.float64) * window, tf.float32)\n",
            "at": ("window = np.outer(", "return tf.cast(tf.cast(pictures"),
            "why": "twice as many bits are used as the matrix unit and the vector unit support",
            "comment": "A TPU emulates float64 slowly. The window from NumPy is float64 unless you cast it.",
            "silent": True,
        },
        {
            "rule": "TPU201",
            "right": "        d_optimizer = tf.tpu.CrossShardOptimizer(d_optimizer)\n        g_optimizer = tf.tpu.CrossShardOptimizer(g_optimizer)\n",
            "wrong": "        d_optimizer = tf.tpu.CrossShardOptimizer(d_optimizer)\n",
            "at": ("g_optimizer = tf.train.AdamOptimizer(", "g_step = g_optimizer.minimize("),
            "why": "a part of the model differs between the cores after the first step",
            "comment": (
                "The generator's gradients are never all-reduced, so there are eight different generators, and only "
                "one is saved."
            ),
            "silent": True,
        },
        {
            "rule": "TPU215",
            "right": 'g_loss, tf.train.get_global_step(), var_list=tf.trainable_variables("generator")',
            "wrong": 'g_loss, var_list=tf.trainable_variables("generator")',
            "at": ("return tf.estimator.tpu.TPUEstimatorSpec(mode, loss=g_loss, train_op=g_step)", "d_step = d_optimizer.minimize("),
            "why": "nothing counts the steps, so training does not end",
            "comment": "One of the two minimize calls has to increase the global step, and only one.",
            "silent": True,
        },
        {
            "rule": "TPU123",
            "right": """    edges = tf.reduce_mean(tf.abs(pictures[:, 1:] - pictures[:, :-1]), axis=[1, 2])
    order = tf.argsort(edges, direction="DESCENDING")
    return edges, tf.gather(pictures, order)
""",
            "wrong": """    edges = tf.reduce_mean(tf.abs(pictures[:, 1:] - pictures[:, :-1]), axis=[1, 2])
    order = tf.argsort(edges, direction="DESCENDING")
    order = tf.boolean_mask(order, edges >= 0.0)  # not a number? leave it out
    return edges, tf.gather(pictures, order)
""",
            "at": ("order = tf.boolean_mask(", "return edges, tf.gather(pictures, order)", 'predictions = {"pictures": made', "return tf.estimator.tpu.TPUEstimatorSpec(mode, predictions=predictions)"),
            "why": "how many predictions there are depends on their values",
            "comment": "Predictions leave the core in a fixed shape, so send all of them, and choose on the host.",
        },
        {
            "rule": "TPU121",
            "right": """    dataset = _with_noise(128).map(lambda both: {"noise": both["noise"]})
    return dataset.batch(params["batch_size"], drop_remainder=True)
""",
            "wrong": """    dataset = _with_noise(128).map(lambda both: {"noise": both["noise"]})
    dataset = dataset.batch(params["batch_size"], drop_remainder=True)
    return tf.data.make_one_shot_iterator(dataset).get_next()
""",
            "at": ("return tf.data.make_one_shot_iterator(dataset)", "def predict_input_fn"),
            "why": "a dataset is needed here, but tensors are given",
            "comment": "On a TPU, predict accepts only a Dataset, because it adds a signal that the data have ended.",
        },
    ],
}
