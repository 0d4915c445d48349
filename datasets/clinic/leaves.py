"""Leaves of three kinds of tree: pictures taken with a phone, and a small network."""

import numpy as np
import tensorflow.compat.v1 as tf

SIDE, KINDS = 16, 3


def make_input_fn(count, seed, training):
    random = np.random.RandomState(seed)
    labels = random.randint(0, KINDS, count).astype(np.int32)
    photographs = random.randint(0, 200, [count, SIDE, SIDE, 3]).astype(np.uint8)
    photographs[np.arange(count), labels] += 55

    def prepare(photograph, label):
        image = tf.cast(photograph, tf.float32) / 255.0
        if training:
            image = tf.image.random_flip_left_right(image)
        return {"image": image - 0.5}, label

    def input_fn(params):
        dataset = tf.data.Dataset.from_tensor_slices((photographs, labels))
        if training:
            dataset = dataset.shuffle(count).repeat()
        dataset = dataset.map(prepare, num_parallel_calls=4)
        return dataset.batch(params["batch_size"], drop_remainder=True)

    return input_fn


def metric_fn(labels, logits):
    return {"accuracy": tf.metrics.accuracy(labels, tf.argmax(logits, axis=1))}


def model_fn(features, labels, mode, params):
    training = mode == tf.estimator.ModeKeys.TRAIN
    net = tf.layers.conv2d(features["image"], 16, 3, use_bias=False)
    net = tf.nn.relu(tf.layers.batch_normalization(net, training=training))
    logits = tf.layers.dense(tf.reduce_mean(net, [1, 2]), KINDS)
    loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
    if mode == tf.estimator.ModeKeys.EVAL:
        metrics = (metric_fn, [labels, logits])
        return tf.estimator.tpu.TPUEstimatorSpec(mode, loss=loss, eval_metrics=metrics)
    optimizer = tf.train.MomentumOptimizer(0.1, 0.9)
    if params["use_tpu"]:
        optimizer = tf.tpu.CrossShardOptimizer(optimizer)
    with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
        train_op = optimizer.minimize(loss, tf.train.get_global_step())
    return tf.estimator.tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)


def port():
    config = tf.estimator.tpu.RunConfig(
        model_dir="run/leaves",
        save_checkpoints_steps=500,
        tpu_config=tf.estimator.tpu.TPUConfig(iterations_per_loop=100),
    )
    estimator = tf.estimator.tpu.TPUEstimator(
        model_fn,
        config=config,
        use_tpu=False,
        train_batch_size=64,
        eval_batch_size=64,
    )
    held_out = make_input_fn(128, seed=2, training=False)
    return estimator, make_input_fn(512, seed=1, training=True), {"eval_input_fn": held_out}


WARD = {
    "others": (
        "the averages of batch normalisation are never updated",
        "batch normalisation uses the statistics of the batch in evaluation",
        "the last pictures of the evaluation are left out",
        "the learning rate has to fall",
    ),
    "healthy": {
        "net = tf.nn.relu(tf.layers.batch_normalization(": "`training` is False in evaluation, so its averages are used.",
        "with tf.control_dependencies(tf.get_collection(": "These are the updates of the averages, and each step runs them.",
        'return dataset.batch(params["batch_size"]': "128 pictures are two full batches of 64: nothing is left out.",
        "dataset = dataset.shuffle(count).repeat()": "Only training shuffles and repeats.",
        "optimizer = tf.train.MomentumOptimizer(": "Evaluation does not train: a rate cannot make two of them differ.",
    },
    "faults": [
        {
            "rule": "TPU212",
            "right": "        if training:\n            image = tf.image.random_flip_left_right(image)\n",
            "wrong": "        image = tf.image.random_flip_left_right(image)\n",
            "why": "evaluation sees other pictures each time",
            "comment": "The flip belongs to training. Here each evaluation draws other pictures.",
            "silent": True,
        },
    ],
}
