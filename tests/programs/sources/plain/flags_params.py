"""Sequence sums; flags, params with batch_size, RunConfig().replace, a hook and a summary."""
import tensorflow as tf
import numpy as np

flags = tf.app.flags
flags.DEFINE_integer('batch_size', 64, 'batch')
flags.DEFINE_string('model_dir', '/tmp/sums', '')
FLAGS = flags.FLAGS


def model_fn(features, labels, mode, params):
  net = tf.layers.dense(features['values'], params['units'], activation=tf.nn.tanh)
  total = tf.squeeze(tf.layers.dense(net, 1), axis=1)
  loss = tf.losses.mean_squared_error(labels, total)
  tf.summary.scalar('loss', loss)
  optimizer = tf.train.AdagradOptimizer(params['rate'])
  train_op = optimizer.minimize(loss, global_step=tf.train.get_or_create_global_step())
  return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


def input_fn(params):
  values = np.random.RandomState(0).rand(512, 7).astype(np.float32)
  d = tf.data.Dataset.from_tensor_slices(({'values': values}, values.sum(1)))
  return d.shuffle(512).repeat().batch(params['batch_size'])


def main(_):
  config = tf.estimator.RunConfig().replace(save_checkpoints_steps=200)
  est = tf.estimator.Estimator(
      model_fn=model_fn,
      model_dir=FLAGS.model_dir,
      config=config,
      params={
          'units': 8,
          'rate': 0.1,
          'batch_size': FLAGS.batch_size,
      })
  est.train(input_fn, max_steps=100)


if __name__ == '__main__':
  tf.app.run(main)
