#!/usr/bin/env python
# -*- coding: utf-8 -*-
# Häuser: a regression whose input functions are lambdas; RunConfig by position; a chained optimizer.
from tensorflow.estimator import Estimator, EstimatorSpec, ModeKeys, RunConfig
from tensorflow.estimator import TrainSpec, EvalSpec, train_and_evaluate
import tensorflow.compat.v1 as tf1
import numpy as np

BATCH_SIZE = 32


def model(features, labels, mode):
    hidden = tf1.layers.dense(features, 16, activation=tf1.nn.relu)
    price = tf1.squeeze(tf1.layers.dense(hidden, 1), 1)
    if mode == ModeKeys.PREDICT:
        return EstimatorSpec(mode, {'price': price})
    loss = tf1.losses.mean_squared_error(labels, price)
    if mode == ModeKeys.EVAL:
        return EstimatorSpec(mode, loss=loss, eval_metric_ops={
            'error': tf1.metrics.mean_absolute_error(labels, price),   # in thousands
        })
    train_op = tf1.train.AdamOptimizer(1e-2).minimize(loss, tf1.train.get_global_step())
    return EstimatorSpec(mode, None, loss, train_op)


def houses(rows, batch_size, training=True):
    data = tf1.data.Dataset.from_tensor_slices(
        (np.ones([rows, 5], np.float32), np.ones([rows], np.float32)))
    if training:
        data = data.repeat()
    return data.batch(batch_size)


config = RunConfig('/tmp/houses', 7, save_checkpoints_steps=100)
estimator = Estimator(model, config=config)
train_and_evaluate(
    estimator,
    TrainSpec(lambda: houses(320, BATCH_SIZE), max_steps=100),
    EvalSpec(input_fn=lambda: houses(64, BATCH_SIZE, False), steps=2))
