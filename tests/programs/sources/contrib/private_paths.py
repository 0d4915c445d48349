"""A digits trainer that imports the private modules, as in TensorFlow 1.4; argparse, tabs, xrange."""
import argparse

import numpy as np
import tensorflow as tf
from tensorflow.contrib.tpu.python.tpu import tpu_config
from tensorflow.contrib.tpu.python.tpu import tpu_estimator
from tensorflow.contrib.tpu.python.tpu import tpu_optimizer
from tensorflow.python.estimator import model_fn as model_fn_lib
from tensorflow.python.ops import array_ops

ModeKeys = model_fn_lib.ModeKeys


def metric_fn(labels, predictions):
	return {"accuracy": tf.metrics.accuracy(labels, predictions)}


def model(features, labels, mode, params):
	net = array_ops.reshape(features["image"], [-1, 64])
	for i in xrange(2):
		net = tf.layers.dense(net, 32, tf.nn.relu, name="hidden_%d" % i)
	logits = tf.layers.dense(net, 10)
	if mode == ModeKeys.PREDICT:
		return tpu_estimator.TPUEstimatorSpec(mode, predictions={"digit": tf.argmax(logits, 1, output_type=tf.int32)})
	loss = tf.losses.softmax_cross_entropy(tf.one_hot(labels, 10), logits)
	train_op = None
	eval_metrics = None
	if mode == ModeKeys.TRAIN:
		optimizer = tpu_optimizer.CrossShardOptimizer(tf.train.AdamOptimizer(params["learning_rate"]))
		train_op = optimizer.minimize(loss, global_step=tf.train.get_or_create_global_step())
	else:
		eval_metrics = (metric_fn, [labels, tf.argmax(logits, 1, output_type=tf.int32)])
	return tpu_estimator.TPUEstimatorSpec(mode=mode, loss=loss, train_op=train_op, eval_metrics=eval_metrics)


def make_input(training):
	def input_fn(params):
		images = {"image": np.zeros((200, 8, 8), "float32")}
		data = tf.data.Dataset.from_tensor_slices((images, np.zeros(200, "int32")))
		if training:
			data = data.shuffle(200).repeat()
		return data.apply(tf.contrib.data.batch_and_drop_remainder(params["batch_size"]))
	return input_fn


def run(args):
	config = tpu_config.RunConfig(
		master=args.master, evaluation_master=args.master, model_dir=args.model_dir,
		save_checkpoints_steps=50, tpu_config=tpu_config.TPUConfig(50, 8))
	estimator = tpu_estimator.TPUEstimator(
		model_fn=model, use_tpu=True, config=config, params={"learning_rate": 0.01},
		train_batch_size=64, eval_batch_size=64)
	for epoch in xrange(3):
		estimator.train(make_input(True), steps=50)
		print("epoch %d: %s" % (epoch, estimator.evaluate(make_input(False), steps=3)))


parser = argparse.ArgumentParser()
parser.add_argument("--master", default="grpc://10.240.1.2:8470")
parser.add_argument("--model_dir", default="gs://somebody/digits")
run(parser.parse_args())
