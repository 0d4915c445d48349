"""An image classifier in the manner of 2018: slim, flags of TensorFlow, summaries in a host_call."""
from __future__ import absolute_import
from __future__ import division
from __future__ import print_function

import numpy as np
import tensorflow as tf

slim = tf.contrib.slim
flags = tf.flags
FLAGS = flags.FLAGS
flags.DEFINE_string('tpu', None, 'name of the TPU')
flags.DEFINE_string('model_dir', '/tmp/slim_images', '')
flags.DEFINE_integer('train_batch_size', 64, '')
flags.DEFINE_bool('use_tpu', True, '')


def network(images, is_training):
  with slim.arg_scope([slim.conv2d], weights_regularizer=slim.l2_regularizer(1e-4),
                      normalizer_fn=slim.batch_norm,
                      normalizer_params={'is_training': is_training, 'decay': 0.9}):
    net = slim.conv2d(images, 8, [3, 3], stride=2)
    net = slim.conv2d(net, 16, [3, 3], stride=2)
  net = tf.reduce_mean(net, [1, 2])
  return slim.fully_connected(net, 5, activation_fn=None)


def model_fn(features, labels, mode, params):
  is_training = mode == tf.estimator.ModeKeys.TRAIN
  logits = network(features, is_training)
  loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
  loss += tf.add_n(tf.losses.get_regularization_losses())
  if mode == tf.estimator.ModeKeys.EVAL:
    def metric_fn(labels, logits):
      return {'accuracy': tf.metrics.accuracy(labels, tf.argmax(logits, axis=1))}
    return tf.contrib.tpu.TPUEstimatorSpec(mode, loss=loss, eval_metrics=(metric_fn, [labels, logits]))
  step = tf.train.get_global_step()
  rate = tf.train.exponential_decay(0.1, step, 100, 0.9)
  optimizer = tf.train.MomentumOptimizer(rate, 0.9)
  if FLAGS.use_tpu:
    optimizer = tf.contrib.tpu.CrossShardOptimizer(optimizer)
  with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
    train_op = optimizer.minimize(loss, step)

  def host_call_fn(gs, lr):
    gs = gs[0]
    with tf.contrib.summary.create_file_writer(FLAGS.model_dir).as_default():
      with tf.contrib.summary.always_record_summaries():
        tf.contrib.summary.scalar('learning_rate', lr[0], step=gs)
        return tf.contrib.summary.all_summary_ops()

  host_call = (host_call_fn, [tf.reshape(step, [1]), tf.reshape(rate, [1])])
  return tf.contrib.tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op, host_call=host_call)


def input_fn(params):
  images = np.zeros([128, 32, 32, 3], np.float32)
  labels = np.zeros([128], np.int32)
  dataset = tf.data.Dataset.from_tensor_slices((images, labels)).repeat()
  dataset = dataset.apply(tf.contrib.data.map_and_batch(
      lambda x, y: (x / 255., y), params['batch_size'], num_parallel_batches=2, drop_remainder=True))
  return dataset.prefetch(tf.contrib.data.AUTOTUNE)


def main(unused_argv):
  resolver = tf.contrib.cluster_resolver.TPUClusterResolver(FLAGS.tpu, zone=None, project=None)
  config = tf.contrib.tpu.RunConfig(
      cluster=resolver, model_dir=FLAGS.model_dir, save_checkpoints_steps=100,
      tpu_config=tf.contrib.tpu.TPUConfig(iterations_per_loop=100, num_shards=8))
  classifier = tf.contrib.tpu.TPUEstimator(
      use_tpu=FLAGS.use_tpu, model_fn=model_fn, config=config,
      train_batch_size=FLAGS.train_batch_size, eval_batch_size=64)
  tf.logging.info('training')
  classifier.train(input_fn=input_fn, max_steps=200)
  classifier.evaluate(input_fn=input_fn, steps=2)


if __name__ == '__main__':
  tf.logging.set_verbosity(tf.logging.INFO)
  tf.app.run()
