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
        "evaluation leaves out the last, smaller batch": "Then its count of digits would be too small. Does that hold "
        "a loss at 1.46?",
        "the training data are not mixed well": "Each epoch is mixed from all 512 digits. And the classes come out right.",
        "the most likely class has to be taken from probabilities": "The largest score is the largest probability: "
        "softmax keeps the order.",
        "nothing counts the steps, so training does not end": "minimize gets the global step, and counts in it.",
        "the learning rate is too high for this optimizer": "Three rates end at the same value: what else sets it?",
    },
    "healthy": {
        "return dataset.shuffle(512).repeat()": "The buffer holds all 512 examples, and each epoch is mixed again.",
        "seed=2)).batch(64)": "batch keeps the last, smaller batch unless it is told otherwise.",
        "classes = tf.argmax(scores": "The largest score is the largest probability: softmax keeps the order.",
        "answers = {": "Whoever asks the model wants probabilities, so softmax belongs here, once.",
        "loss = tf.losses.sparse": "This op takes logits and does the softmax itself. What does it get?",
        "optimizer = tf.train.Adam": "The loss falls at first, and three rates end at the same value.",
        "train_op = optimizer": "minimize counts the step in the global step that it is given.",
    },
    "faults": [
        {
            "rule": "",
            "right": 'tf.layers.dense(net, 10, name="scores")',
            "wrong": 'tf.layers.dense(net, 10, tf.nn.softmax, name="scores")',
            "why": "the loss gets numbers of another kind than it expects",
            "comment": "The loss takes a softmax of what is one already: of numbers from 0 to 1, the most certain "
            "answer among ten classes is e / (e + 9) = 23 %, and costs 1.46 nats.",
            "silent": True,
        },
    ],
}
