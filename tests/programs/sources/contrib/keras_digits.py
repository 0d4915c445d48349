"""Digits with Keras layers inside an Estimator's model, trained, evaluated and asked in one main, as in 2018."""
from __future__ import print_function

import numpy as np
import tensorflow as tf  # pylint: disable=g-bad-import-order

tf.flags.DEFINE_string("tpu", default=None, help="name or address of the TPU")
tf.flags.DEFINE_integer("batch_size", 256, "over all cores")
tf.flags.DEFINE_integer("eval_steps", 4, "0: no evaluation")
tf.flags.DEFINE_bool("ask", True, "predict a few digits at the end")
FLAGS = tf.flags.FLAGS
L = tf.keras.layers


def digits_network():
  pool = L.MaxPooling2D((2, 2), (2, 2), padding="same")
  return tf.keras.Sequential([
      L.Reshape(target_shape=[28, 28, 1], input_shape=(784,)),
      L.Conv2D(8, 5, padding="same", activation=tf.nn.relu), pool,
      L.Conv2D(16, 5, padding="same", activation=tf.nn.relu), pool,
      L.Flatten(), L.Dense(32, activation=tf.nn.relu), L.Dropout(0.4), L.Dense(10)])


def model_fn(features, labels, mode, params):
  del params
  images = features["image"] if isinstance(features, dict) else features
  network = digits_network()
  if mode == tf.estimator.ModeKeys.PREDICT:
    logits = network(images, training=False)
    return tf.contrib.tpu.TPUEstimatorSpec(mode, predictions={
        "digit": tf.argmax(logits, axis=1), "probabilities": tf.nn.softmax(logits)})
  logits = network(images, training=(mode == tf.estimator.ModeKeys.TRAIN))
  loss = tf.losses.sparse_softmax_cross_entropy(labels=labels, logits=logits)
  if mode == tf.estimator.ModeKeys.EVAL:
    def metric_fn(labels, logits):
      return {"accuracy": tf.metrics.accuracy(labels, tf.argmax(logits, axis=1))}
    return tf.contrib.tpu.TPUEstimatorSpec(mode, loss=loss, eval_metrics=(metric_fn, [labels, logits]))
  rate = tf.train.exponential_decay(0.05, tf.train.get_global_step(), 100000, 0.96)
  optimizer = tf.contrib.tpu.CrossShardOptimizer(tf.train.GradientDescentOptimizer(rate))
  return tf.contrib.tpu.TPUEstimatorSpec(
      mode, loss=loss, train_op=optimizer.minimize(loss, tf.train.get_global_step()))


def digits(count):
  draw = np.random.RandomState(0)
  return tf.data.Dataset.from_tensor_slices(
      (draw.rand(count, 784).astype(np.float32), draw.randint(0, 10, count).astype(np.int32)))


def train_input_fn(params):
  return digits(1024).cache().repeat().shuffle(5000).apply(
      tf.contrib.data.batch_and_drop_remainder(params["batch_size"]))


def eval_input_fn(params):
  return digits(1024).apply(tf.contrib.data.batch_and_drop_remainder(params["batch_size"]))


def predict_input_fn(params):
  return digits(10).batch(params["batch_size"]).map(lambda image, label: image)


def main(argv):
  del argv
  tf.logging.set_verbosity(tf.logging.INFO)
  config = tf.contrib.tpu.RunConfig(
      cluster=tf.contrib.cluster_resolver.TPUClusterResolver(FLAGS.tpu),
      session_config=tf.ConfigProto(allow_soft_placement=True),
      tpu_config=tf.contrib.tpu.TPUConfig(50, 8))
  estimator = tf.contrib.tpu.TPUEstimator(
      model_fn=model_fn, use_tpu=True, config=config, train_batch_size=FLAGS.batch_size,
      eval_batch_size=FLAGS.batch_size, predict_batch_size=FLAGS.batch_size)
  estimator.train(input_fn=train_input_fn, max_steps=1000)
  if FLAGS.eval_steps:
    estimator.evaluate(input_fn=eval_input_fn, steps=FLAGS.eval_steps)
  if FLAGS.ask:
    for found in estimator.predict(input_fn=predict_input_fn):
      print(found["digit"], found["probabilities"][found["digit"]])


if __name__ == "__main__":
  tf.app.run()
