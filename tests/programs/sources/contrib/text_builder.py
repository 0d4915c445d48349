# coding=utf-8
"""A sentence classifier with builders of closures, its own weight-decay optimizer, and bfloat16."""
import collections
import re
import tensorflow as tf
from tensorflow.contrib.tpu.python.tpu import bfloat16
from tensorflow.contrib import layers as contrib_layers

flags = tf.flags
FLAGS = flags.FLAGS
flags.DEFINE_bool("do_train", True, "")
flags.DEFINE_bool("use_tpu", True, "")
tf.flags.DEFINE_string("tpu_name", None, "")
flags.DEFINE_integer("max_seq_length", 8, "")
Example = collections.namedtuple("Example", "ids label")


class DecayOptimizer(tf.train.Optimizer):
  """Plain descent with weight decay, for variables that are no norm or bias."""

  def __init__(self, rate, decay=0.01, name="DecayOptimizer"):
    super(DecayOptimizer, self).__init__(False, name)
    self.rate, self.decay = rate, decay

  def apply_gradients(self, grads_and_vars, global_step=None, name=None):
    ops = []
    for grad, var in grads_and_vars:
      if grad is None:
        continue
      update = grad + (0.0 if re.search("norm|bias", var.name) else self.decay * var)
      ops.append(var.assign(var - self.rate * update))
    return tf.group(*ops, name=name)


def gelu(x):
  return 0.5 * x * (1.0 + tf.erf(x / tf.sqrt(2.0)))


def model_fn_builder(num_labels, rate, use_tpu):
  def model_fn(features, labels, mode, params):  # pylint: disable=unused-argument
    for name in sorted(features.keys()):
      tf.logging.info("name = %s, shape = %s", name, features[name].shape)
    with bfloat16.bfloat16_scope():
      table = tf.get_variable("words", [100, 16], initializer=tf.truncated_normal_initializer(stddev=0.02))
      one_hot = tf.one_hot(tf.reshape(features["ids"], [-1]), 100, dtype=tf.float32)
      hidden = tf.reshape(tf.matmul(one_hot, table), [-1, FLAGS.max_seq_length, 16])
    hidden = contrib_layers.layer_norm(inputs=gelu(hidden), begin_norm_axis=-1, begin_params_axis=-1)
    logits = tf.layers.dense(hidden[:, 0], num_labels, kernel_initializer=tf.initializers.truncated_normal(0.02))
    log_probs = tf.nn.log_softmax(logits, axis=-1)
    loss = -tf.reduce_mean(tf.reduce_sum(tf.one_hot(features["label"], num_labels) * log_probs, axis=-1))
    step = tf.train.get_or_create_global_step()
    optimizer = DecayOptimizer(rate)
    if use_tpu:
      optimizer = tf.contrib.tpu.CrossShardOptimizer(optimizer)
    tvars = tf.trainable_variables()
    train_op = optimizer.apply_gradients(zip(tf.gradients(loss, tvars), tvars), global_step=step)
    train_op = tf.group(train_op, [step.assign(step + 1)])
    return tf.contrib.tpu.TPUEstimatorSpec(mode=mode, loss=loss, train_op=train_op, scaffold_fn=None)
  return model_fn


def input_fn_builder(examples, drop_remainder):
  def input_fn(params):
    d = tf.data.Dataset.from_tensor_slices({
        "ids": tf.constant([e.ids for e in examples], dtype=tf.int32),
        "label": tf.constant([e.label for e in examples], tf.int32)})
    d = d.repeat().shuffle(buffer_size=100)
    return d.batch(batch_size=params["batch_size"], drop_remainder=drop_remainder)
  return input_fn


def main(_):
  tf.logging.set_verbosity(tf.logging.INFO)
  examples = [Example([i % 100] * FLAGS.max_seq_length, i % 2) for i in range(64)]
  resolver = None
  if FLAGS.use_tpu and FLAGS.tpu_name:
    resolver = tf.contrib.cluster_resolver.TPUClusterResolver(FLAGS.tpu_name)
  run_config = tf.contrib.tpu.RunConfig(
      cluster=resolver, master=None, model_dir="/tmp/text", save_checkpoints_steps=1000,
      tpu_config=tf.contrib.tpu.TPUConfig(
          iterations_per_loop=1000, num_shards=8,
          per_host_input_for_training=tf.contrib.tpu.InputPipelineConfig.PER_HOST_V2))
  estimator = tf.contrib.tpu.TPUEstimator(
      use_tpu=FLAGS.use_tpu, model_fn=model_fn_builder(2, 0.1, FLAGS.use_tpu), config=run_config,
      train_batch_size=32, eval_batch_size=8)
  if FLAGS.do_train:
    estimator.train(input_fn=input_fn_builder(examples, True), max_steps=30)


if __name__ == "__main__":
  tf.app.run()
