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
        "evaluation leaves out the last, smaller batch": "Then it would count too few digits. Could that keep the "
        "loss in training at 1.46?",
        "the training data are not shuffled well": "Each epoch is shuffled over all 512 digits, and the predicted "
        "classes are right.",
        "the most likely class has to be found from probabilities": "The largest score is the largest probability, "
        "because softmax keeps the order.",
        "nothing counts the steps, so training does not end": "minimize gets the global step, and increments it.",
        "the learning rate is too high for this optimizer": "Three learning rates end at the same loss, so something "
        "else sets it.",
    },
    "healthy": {
        "return dataset.shuffle(512).repeat()": "The buffer holds all 512 examples, and each epoch is shuffled again.",
        "seed=2)).batch(64)": "batch keeps the last, smaller batch unless it is told otherwise.",
        "classes = tf.argmax(scores": "The largest score is the largest probability, because softmax keeps the order.",
        "answers = {": "Users of the model want probabilities, so one softmax belongs here.",
        "loss = tf.losses.sparse": "This op takes logits and applies the softmax itself. What does it get here?",
        "optimizer = tf.train.Adam": "The loss falls at first, and three learning rates end at the same loss.",
        "train_op = optimizer": "minimize increments the global step that it is given.",
    },
    "faults": [
        {
            "rule": "",
            "right": 'tf.layers.dense(net, 10, name="scores")',
            "wrong": 'tf.layers.dense(net, 10, tf.nn.softmax, name="scores")',
            "why": "the loss gets numbers of a different kind than it expects",
            "comment": "The loss applies a softmax to numbers that are already a softmax, and so lie between 0 and 1. "
            "From these, the most certain answer among ten classes is e / (e + 9) = 23 %, which costs 1.46 nats.",
            "silent": True,
        },
    ],
}
