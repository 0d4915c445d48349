"""Batch normalisation over all cores in the manner of 2019: a `_moments` of its own, without a mask."""
from __future__ import absolute_import
from __future__ import print_function

import numpy as np
import tensorflow as tf
from tensorflow.contrib.tpu.python.tpu import tpu_function
from tensorflow.python.keras import layers as keras_layers


def joined(mean, variance):
  cores = tpu_function.get_tpu_context().number_of_shards or 1
  if cores == 1:
    return mean, variance
  square = tf.contrib.tpu.cross_replica_sum(variance + tf.square(mean)) / cores
  mean = tf.contrib.tpu.cross_replica_sum(mean) / cores
  return mean, square - tf.square(mean)


class OfLayers(tf.layers.BatchNormalization):

  def _moments(self, inputs, reduction_axes, keep_dims):
    return joined(*super(OfLayers, self)._moments(inputs, reduction_axes, keep_dims=keep_dims))


class OfKeras(keras_layers.BatchNormalization, tf.layers.Layer):

  def _moments(self, inputs, reduction_axes, keep_dims):
    return joined(*super(OfKeras, self)._moments(inputs, reduction_axes, keep_dims=keep_dims))


def model_fn(features, labels, mode, params):
  is_training = mode == tf.estimator.ModeKeys.TRAIN
  net = features
  for layer in (OfLayers(), OfKeras()):
    net = tf.nn.relu(layer.apply(tf.layers.conv2d(net, 8, 3), training=is_training))
  logits = tf.layers.dense(tf.reduce_mean(net, [1, 2]), 5)
  loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
  optimizer = tf.contrib.tpu.CrossShardOptimizer(tf.train.GradientDescentOptimizer(0.1))
  with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
    train_op = optimizer.minimize(loss, tf.train.get_global_step())
  return tf.contrib.tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)


def input_fn(params):
  images = np.zeros([128, 16, 16, 3], np.float32)
  labels = np.zeros([128], np.int32)
  dataset = tf.data.Dataset.from_tensor_slices((images, labels)).shuffle(128).repeat()
  return dataset.batch(params['batch_size'], drop_remainder=True)


def main(unused_argv):
  resolver = tf.contrib.cluster_resolver.TPUClusterResolver('local')
  config = tf.contrib.tpu.RunConfig(
      cluster=resolver, tpu_config=tf.contrib.tpu.TPUConfig(iterations_per_loop=100))
  classifier = tf.contrib.tpu.TPUEstimator(
      use_tpu=True, model_fn=model_fn, config=config, train_batch_size=64)
  classifier.train(input_fn=input_fn, max_steps=200)


if __name__ == '__main__':
  tf.app.run()
