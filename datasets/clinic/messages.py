"""Is this message spam? Word numbers, the mean of their vectors, and a line between two classes."""

import numpy as np
import tensorflow.compat.v1 as tf

WORDS, LENGTH, NUM_TRAIN, NUM_EVAL = 200, 12, 512, 150


def messages(count, seed):
    """Word numbers of messages of 3 to 20 words, one after another, each with its class."""
    random = np.random.RandomState(seed)
    for _ in range(count):
        words = random.randint(1, WORDS, random.randint(3, 21)).astype(np.int32)
        yield words, np.int32(words[:3].min() < 40)


def example(words, spam):
    words = words[:LENGTH]
    return {"words": words, "count": tf.size(words), "weight": 1.0}, spam


def examples(count, seed):
    signature = (tf.TensorSpec([None], tf.int32), tf.TensorSpec([], tf.int32))
    rows = lambda: messages(count, seed)
    return tf.data.Dataset.from_generator(rows, output_signature=signature).map(example)


def in_batches(dataset, params):
    shapes = ({"words": [LENGTH], "count": [], "weight": []}, [])
    return dataset.padded_batch(params["batch_size"], shapes, drop_remainder=True)


def train_input_fn(params):
    return in_batches(examples(NUM_TRAIN, seed=1).shuffle(NUM_TRAIN).repeat(), params)


def eval_input_fn(params):
    nothing = {"words": tf.zeros([0], tf.int32), "count": 0, "weight": 0.0}
    padding = tf.data.Dataset.from_tensors((nothing, 0)).repeat()
    steps = -(-NUM_EVAL // params["batch_size"])
    rows = examples(NUM_EVAL, seed=2).concatenate(padding)
    return in_batches(rows.take(steps * params["batch_size"]), params)


def metric_fn(labels, logits, weight):
    said = tf.argmax(logits, axis=1)
    return {"accuracy": tf.metrics.accuracy(labels, said, weights=weight)}


def model_fn(features, labels, mode, params):
    table = tf.get_variable("table", [WORDS, 16])
    mask = tf.sequence_mask(features["count"], LENGTH, tf.float32)[:, :, None]
    total = tf.reduce_sum(tf.gather(table, features["words"]) * mask, axis=1)
    logits = tf.layers.dense(total / tf.maximum(tf.reduce_sum(mask, axis=1), 1.0), 2)
    loss = tf.losses.sparse_softmax_cross_entropy(labels, logits, features["weight"])
    if mode == tf.estimator.ModeKeys.EVAL:
        metrics = (metric_fn, [labels, logits, features["weight"]])
        return tf.estimator.tpu.TPUEstimatorSpec(mode, loss=loss, eval_metrics=metrics)
    optimizer = tf.train.AdamOptimizer(params["learning_rate"])
    if params["use_tpu"]:
        optimizer = tf.tpu.CrossShardOptimizer(optimizer)
    train_op = optimizer.minimize(loss, tf.train.get_global_step())
    return tf.estimator.tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)


def port():
    config = tf.estimator.tpu.RunConfig(model_dir="run/messages")
    estimator = tf.estimator.tpu.TPUEstimator(
        model_fn,
        config=config,
        use_tpu=False,
        train_batch_size=64,
        eval_batch_size=64,
        params={"learning_rate": 0.01},
    )
    return estimator, train_input_fn, {"eval_input_fn": eval_input_fn}


WARD = {
    "weight": "weight",
    "others": (
        "the last batch may be smaller than the others",
        "the width of the mask depends on the data",
        "the last examples of the evaluation are left out",
        "the padding counts in the mean",
        "the padding counts in the accuracy",
    ),
    "healthy": {
        "signature = (": "Here the length may be unknown: the dataset is on the host, and the batches get one length later.",
        "words = words[:LENGTH]": "A cut is a bound, not a length: a shorter message stays shorter. Where does it get its length?",
        "nothing = {": "A row of padding has no words, and becomes as long as the others in padded_batch.",
        "mask = tf.sequence_mask(": "maxlen is given, so the mask has a fixed width.",
        "steps = -(-NUM_EVAL": "Rounded up: 150 messages in batches of 64 are three steps.",
        "loss = tf.losses.sparse": "The loss takes the weight as well.",
        "said = tf.argmax(": "The most likely class of each row.",
        "weights=weight)": "Rows of weight 0 do not count.",
    },
    "faults": [
        {
            "rule": "TPU102",
            "right": 'shapes = ({"words": [LENGTH], "count": [], "weight": []}, [])',
            "wrong": 'shapes = ({"words": [None], "count": [], "weight": []}, [])',
            "at": ("return dataset.padded_batch(",),
            "why": "each batch is as wide as its longest message",
            "comment": "[None] pads to the longest of each batch, at most twelve: a CPU accepts any width, a TPU only one.",
        },
    ],
}
