"""Handwritten numbers with a plain Estimator: the loss falls, and then it stays where it is."""

import numpy as np
import tensorflow.compat.v1 as tf


def load_data(count, seed):
    random = np.random.RandomState(seed)
    labels = random.randint(0, 10, count).astype(np.int32)
    pictures = random.uniform(0, 0.3, [count, 10, 10]).astype(np.float32)
    pictures[np.arange(count), labels] += 0.7
    return pictures, labels


def train_input_fn():
    dataset = tf.data.Dataset.from_tensor_slices(load_data(512, seed=1))
    return dataset.shuffle(512).repeat().batch(64)


def eval_input_fn():
    return tf.data.Dataset.from_tensor_slices(load_data(128, seed=2)).batch(64)


def inference(pictures):
    net = tf.layers.flatten(pictures)
    net = tf.layers.dense(net, 64, tf.nn.relu, name="hidden")
    return tf.layers.dense(net, 10, name="scores")


def model_fn(features, labels, mode):
    scores = inference(features)
    classes = tf.argmax(scores, axis=1)
    if mode == tf.estimator.ModeKeys.PREDICT:
        answers = {"class": classes, "probabilities": tf.nn.softmax(scores)}
        return tf.estimator.EstimatorSpec(mode, predictions=answers)
    loss = tf.losses.sparse_softmax_cross_entropy(labels, scores)
    if mode == tf.estimator.ModeKeys.EVAL:
        metrics = {"accuracy": tf.metrics.accuracy(labels, classes)}
        return tf.estimator.EstimatorSpec(mode, loss=loss, eval_metric_ops=metrics)
    optimizer = tf.train.AdamOptimizer(0.01)
    train_op = optimizer.minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


def port():
    estimator = tf.estimator.Estimator(model_fn, model_dir="run/plateau")
    inputs = {"eval_input_fn": eval_input_fn, "predict_input_fn": eval_input_fn}
    return estimator, train_input_fn, inputs


WARD = {
    "allowed": ("TPU109",),  # a plain Estimator, as lab 01 has it
    "others": {
        "evaluation leaves out the last, smaller batch": (
            "Then too few digits would be counted. But would that keep a loss at 1.46?"
        ),
        "the training data are not mixed well": (
            "Each epoch is mixed from all 512 digits, and the predicted classes are right."
        ),
        "the most likely class has to be taken from probabilities": "The largest score is the largest probability: "
        "softmax keeps the order.",
        "nothing counts the steps, so training does not end": (
            "minimize gets the global step, and adds 1 to it in each step."
        ),
        "the learning rate is too high for this optimizer": (
            "Three learning rates end at the same loss, so what else determines it?"
        ),
    },
    "healthy": {
        "return dataset.shuffle(512).repeat()": "The buffer holds all 512 examples, and each epoch is mixed again.",
        "seed=2)).batch(64)": "batch keeps the last, smaller batch unless drop_remainder is set.",
        "classes = tf.argmax(scores": "The largest score gives the largest probability, since softmax keeps the order.",
        "answers = {": "The users of the model want probabilities, so softmax belongs here, once.",
        "loss = tf.losses.sparse": "This op expects logits and applies the softmax itself. What does it get?",
        "optimizer = tf.train.Adam": "The loss falls at first, and three learning rates end at the same value.",
        "train_op = optimizer": "minimize adds 1 to the global step that it gets.",
    },
    "faults": [
        {
            "rule": "",
            "right": 'tf.layers.dense(net, 10, name="scores")',
            "wrong": 'tf.layers.dense(net, 10, tf.nn.softmax, name="scores")',
            "why": "the loss gets numbers of another kind than it expects",
            "comment": (
                "The loss applies softmax to numbers that are already the result of a softmax. These lie between 0 "
                "and 1, so the highest probability among ten classes is e / (e + 9) = 23 %, and the loss is 1.46 "
                "nats."
            ),
            "silent": True,
        },
    ],
}
