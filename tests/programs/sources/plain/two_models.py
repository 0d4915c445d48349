import argparse

import numpy as np
import tensorflow as tf

v1 = tf.compat.v1
parser = argparse.ArgumentParser()
parser.add_argument("--deep", action="store_true")
args = parser.parse_args()


def spec(mode, loss, logits):
	# One spec for both models.
	opt = tf.compat.v1.train.MomentumOptimizer(0.1, momentum=0.9)
	grads_and_vars = opt.compute_gradients(loss)
	train_op = opt.apply_gradients(grads_and_vars, global_step=tf.compat.v1.train.get_global_step())
	return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


def deep(features, labels, mode):
	net = tf.compat.v1.layers.dense(features, 32, activation=tf.nn.relu)
	logits = tf.compat.v1.layers.dense(net, 3)
	return spec(mode, tf.compat.v1.losses.sparse_softmax_cross_entropy(labels, logits), logits)


def wide(features, labels, mode):
	logits = tf.compat.v1.layers.dense(features, 3)
	return spec(mode, tf.compat.v1.losses.sparse_softmax_cross_entropy(labels, logits), logits)


def make_input(rows):
	def input_fn():
		x = np.zeros((rows, 6), "float32")
		y = np.zeros((rows,), "int32")
		return tf.data.Dataset.from_tensor_slices((x, y)).repeat().batch(64)
	return input_fn


model = tf.estimator.Estimator(deep if args.deep else wide, "/tmp/two")
model.train(make_input(640), steps=50)
