"""A regressor of boxes as detectors of 2018 start: the TPU is reset first; two estimators of one model."""
from __future__ import absolute_import
from __future__ import division
from __future__ import print_function

from absl import flags
import numpy as np
import tensorflow as tf

flags.DEFINE_string('tpu', 'my-tpu', 'The Cloud TPU to use for training.')
flags.DEFINE_string('gcp_project', None, 'Project name for the Cloud TPU-enabled project.')
flags.DEFINE_string('tpu_zone', None, 'GCE zone where the Cloud TPU is located in.')
flags.DEFINE_bool('use_tpu', True, 'Use TPUs rather than CPUs')
flags.DEFINE_integer('num_cores', default=8, help='Number of TPU cores for training')
flags.DEFINE_integer('train_batch_size', 64, 'training batch size')
flags.DEFINE_integer('eval_batch_size', 32, 'evaluation batch size')
flags.DEFINE_integer('iterations_per_loop', 100, 'Number of iterations per TPU training loop')
flags.DEFINE_string('mode', 'train_and_eval', 'Mode to run: train, eval or train_and_eval.')
flags.DEFINE_integer('num_epochs', 3, 'Number of epochs for training')
FLAGS = flags.FLAGS


class InputReader(object):
  """Examples for dataset."""

  def __init__(self, is_training):
    self._is_training = is_training

  def __call__(self, params):
    rng = np.random.RandomState(0)
    data = tf.data.Dataset.from_tensor_slices(
        (rng.rand(128, 24, 24, 3).astype(np.float32), rng.rand(128, 4).astype(np.float32)))
    if self._is_training:
      data = data.shuffle(128).repeat()
    return data.apply(tf.contrib.data.batch_and_drop_remainder(params['batch_size']))


def box_model_fn(features, labels, mode, params):
  """Model definition."""
  net = tf.layers.conv2d(features, params['width'], 3, strides=2, activation=tf.nn.relu)
  boxes = tf.layers.dense(tf.layers.flatten(net), 4)
  loss = tf.losses.huber_loss(labels, boxes, delta=params['delta'])
  train_op, eval_metrics = None, None
  if mode == tf.estimator.ModeKeys.TRAIN:
    optimizer = tf.train.MomentumOptimizer(params['learning_rate'], momentum=0.9)
    if params['use_tpu']:
      optimizer = tf.contrib.tpu.CrossShardOptimizer(optimizer)
    train_op = optimizer.minimize(loss, tf.train.get_global_step())
  else:
    def metric_fn(labels, boxes):
      return {'error': tf.metrics.mean_absolute_error(labels, boxes)}
    eval_metrics = (metric_fn, [labels, boxes])
  return tf.contrib.tpu.TPUEstimatorSpec(
      mode=mode, loss=loss, train_op=train_op, eval_metrics=eval_metrics)


def main(argv):
  del argv
  resolver = None
  if FLAGS.use_tpu:
    resolver = tf.contrib.cluster_resolver.TPUClusterResolver(
        FLAGS.tpu, zone=FLAGS.tpu_zone, project=FLAGS.gcp_project)
    tf.Session.reset(resolver.get_master())
  params = dict(width=8, delta=0.1, learning_rate=0.01)
  run_config = tf.contrib.tpu.RunConfig(
      cluster=resolver, model_dir='/tmp/box_regressor', save_checkpoints_steps=100,
      session_config=tf.ConfigProto(allow_soft_placement=True, log_device_placement=False),
      tpu_config=tf.contrib.tpu.TPUConfig(FLAGS.iterations_per_loop, num_shards=FLAGS.num_cores))
  for cycle in range(FLAGS.num_epochs):
    tf.logging.info('Starting training cycle, epoch: %d.' % cycle)
    train_estimator = tf.contrib.tpu.TPUEstimator(
        model_fn=box_model_fn, use_tpu=FLAGS.use_tpu, config=run_config, params=params,
        train_batch_size=FLAGS.train_batch_size)
    train_estimator.train(input_fn=InputReader(is_training=True), steps=100)
    if FLAGS.mode == 'train_and_eval':
      eval_estimator = tf.contrib.tpu.TPUEstimator(
          model_fn=box_model_fn, use_tpu=False, config=run_config, params=dict(params, delta=1.0),
          train_batch_size=FLAGS.train_batch_size, eval_batch_size=FLAGS.eval_batch_size)
      eval_estimator.evaluate(input_fn=InputReader(is_training=False), steps=4)


if __name__ == '__main__':
  tf.logging.set_verbosity(tf.logging.INFO)
  tf.app.run(main)
