"""Names in text: a small BERT with a tag for each piece; masked metrics of tags; padded last examples."""
from __future__ import absolute_import, division, print_function

import collections
import copy
import json
import math
import os
import re

import numpy as np
import six
import tensorflow as tf0

tf = tf0.compat.v1
LABELS = ["[PAD]", "O", "B-PER", "I-PER", "B-LOC", "I-LOC", "[CLS]", "[SEP]"]


class Config(object):
  def __init__(self, vocab_size, hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32,
               hidden_dropout_prob=0.1, max_position_embeddings=64, type_vocab_size=2, initializer_range=0.02):
    self.__dict__.update({k: v for k, v in locals().items() if k != "self"})

  @classmethod
  def from_dict(cls, json_object):
    config = cls(vocab_size=None)
    for (key, value) in six.iteritems(json_object):
      config.__dict__[key] = value
    return config


class InputFeatures(object):
  def __init__(self, input_ids, input_mask, segment_ids, label_ids, is_real_example=True):
    self.input_ids, self.input_mask, self.segment_ids = input_ids, input_mask, segment_ids
    self.label_ids, self.is_real_example = label_ids, is_real_example


def file_based_convert(path, count, pad_to, seq_length, seed):
  if os.path.exists(path):
    return
  rs = np.random.RandomState(seed)
  writer = tf.python_io.TFRecordWriter(path)
  for i in range(pad_to):
    n = rs.randint(5, seq_length)
    f = InputFeatures([1] + list(rs.randint(4, 90, n - 1)) + [0] * (seq_length - n), [1] * n + [0] * (seq_length - n),
                      [0] * seq_length, list(rs.randint(1, len(LABELS), n)) + [0] * (seq_length - n), i < count)
    create = lambda values: tf.train.Feature(int64_list=tf.train.Int64List(value=list(values)))
    features = collections.OrderedDict()
    for name in ("input_ids", "input_mask", "segment_ids", "label_ids"):
      features[name] = create(getattr(f, name))
    features["is_real_example"] = create([int(f.is_real_example)])
    writer.write(tf.train.Example(features=tf.train.Features(feature=features)).SerializeToString())
  writer.close()


def file_based_input_fn_builder(input_file, seq_length, is_training, drop_remainder):
  name_to_features = {
      "input_ids": tf.FixedLenFeature([seq_length], tf.int64),
      "input_mask": tf.FixedLenFeature([seq_length], tf.int64),
      "segment_ids": tf.FixedLenFeature([seq_length], tf.int64),
      "label_ids": tf.FixedLenFeature([seq_length], tf.int64),
      "is_real_example": tf.FixedLenFeature([], tf.int64),
  }

  def _decode_record(record, name_to_features):
    example = tf.parse_single_example(record, name_to_features)
    for name in list(example.keys()):
      t = example[name]
      if t.dtype == tf.int64:
        t = tf.to_int32(t)
      example[name] = t
    return example

  def input_fn(params):
    batch_size = params["batch_size"]
    d = tf.data.TFRecordDataset(input_file)
    if is_training:
      d = d.repeat()
      d = d.shuffle(buffer_size=100)
    d = d.apply(tf.data.experimental.map_and_batch(
        lambda record: _decode_record(record, name_to_features), batch_size=batch_size, drop_remainder=drop_remainder))
    return d

  return input_fn


def layer_norm(x, name):
  with tf.variable_scope(name):
    d = x.shape[-1]
    beta = tf.get_variable("beta", [d], initializer=tf.zeros_initializer())
    gamma = tf.get_variable("gamma", [d], initializer=tf.ones_initializer())
    mean, variance = tf.nn.moments(x, axes=[-1], keep_dims=True)
    return tf.nn.batch_normalization(x, mean, variance, beta, gamma, 1e-12)


def gelu(x):
  return x * 0.5 * (1.0 + tf.tanh((np.sqrt(2 / np.pi) * (x + 0.044715 * tf.pow(x, 3)))))


def dropout(x, p):
  return x if p is None or p == 0.0 else tf.nn.dropout(x, 1.0 - p)


def get_shape_list(tensor):
  shape = tensor.shape.as_list()
  dynamic = tf.shape(tensor)
  return [dynamic[i] if s is None else s for i, s in enumerate(shape)]


class Model(object):
  def __init__(self, config, is_training, input_ids, input_mask, token_type_ids, use_one_hot_embeddings):
    config = copy.deepcopy(config)
    if not is_training:
      config.hidden_dropout_prob = 0.0
    init = tf.truncated_normal_initializer(stddev=config.initializer_range)
    b, s = get_shape_list(input_ids)
    h, heads = config.hidden_size, config.num_attention_heads
    with tf.variable_scope("bert"):
      with tf.variable_scope("embeddings"):
        table = tf.get_variable("word_embeddings", [config.vocab_size, h], initializer=init)
        flat = tf.reshape(input_ids, [-1])
        if use_one_hot_embeddings:
          out = tf.matmul(tf.one_hot(flat, depth=config.vocab_size), table)
        else:
          out = tf.gather(table, flat)
        out = tf.reshape(out, [b, s, h])
        types = tf.get_variable("token_type_embeddings", [config.type_vocab_size, h], initializer=init)
        out += tf.reshape(tf.matmul(tf.one_hot(tf.reshape(token_type_ids, [-1]), config.type_vocab_size), types), [b, s, h])
        positions = tf.get_variable("position_embeddings", [config.max_position_embeddings, h], initializer=init)
        assert_op = tf.assert_less_equal(s, config.max_position_embeddings)
        with tf.control_dependencies([assert_op]):
          out += tf.reshape(tf.slice(positions, [0, 0], [s, -1]), [1, s, h])
        out = dropout(layer_norm(out, "LayerNorm"), config.hidden_dropout_prob)
      adder = (1.0 - tf.cast(tf.reshape(input_mask, [b, 1, 1, s]), tf.float32)) * -10000.0
      for i in range(config.num_hidden_layers):
        with tf.variable_scope("layer_%d" % i):
          q, k, v = [tf.transpose(tf.reshape(tf.layers.dense(out, h, name=n, kernel_initializer=init),
                                             [b, s, heads, h // heads]), [0, 2, 1, 3]) for n in ("query", "key", "value")]
          scores = tf.matmul(q, k, transpose_b=True) * (1.0 / math.sqrt(float(h // heads)))
          probs = dropout(tf.nn.softmax(scores + adder), config.hidden_dropout_prob)
          context = tf.reshape(tf.transpose(tf.matmul(probs, v), [0, 2, 1, 3]), [b, s, h])
          out = layer_norm(out + dropout(tf.layers.dense(context, h, kernel_initializer=init), config.hidden_dropout_prob), "ln1")
          inner = tf.layers.dense(out, config.intermediate_size, activation=gelu, kernel_initializer=init, name="inner")
          out = layer_norm(out + tf.layers.dense(inner, h, kernel_initializer=init, name="outer"), "ln2")
    self.sequence_output = out


class AdamWeightDecayOptimizer(tf.train.Optimizer):
  def __init__(self, learning_rate, weight_decay_rate=0.0, beta_1=0.9, beta_2=0.999, epsilon=1e-6, exclude=None, name="AdamWeightDecayOptimizer"):
    super(AdamWeightDecayOptimizer, self).__init__(False, name)
    self.learning_rate, self.weight_decay_rate, self.exclude = learning_rate, weight_decay_rate, exclude
    self.beta_1, self.beta_2, self.epsilon = beta_1, beta_2, epsilon

  def apply_gradients(self, grads_and_vars, global_step=None, name=None):
    assignments = []
    for (grad, param) in grads_and_vars:
      if grad is None or param is None:
        continue
      param_name = re.match("^(.*):\\d+$", param.name).group(1)
      m, v = [tf.get_variable(name=param_name + s, shape=param.shape.as_list(), dtype=tf.float32, trainable=False,
                              initializer=tf.zeros_initializer()) for s in ("/adam_m", "/adam_v")]
      next_m = tf.multiply(self.beta_1, m) + tf.multiply(1.0 - self.beta_1, grad)
      next_v = tf.multiply(self.beta_2, v) + tf.multiply(1.0 - self.beta_2, tf.square(grad))
      update = next_m / (tf.sqrt(next_v) + self.epsilon)
      if not any(re.search(r, param_name) for r in self.exclude or []):
        update += self.weight_decay_rate * param
      assignments.extend([param.assign(param - self.learning_rate * update), m.assign(next_m), v.assign(next_v)])
    return tf.group(*assignments, name=name)


def create_optimizer(loss, init_lr, num_train_steps, num_warmup_steps, use_tpu):
  global_step = tf.train.get_or_create_global_step()
  learning_rate = tf.train.polynomial_decay(tf.constant(init_lr), global_step, num_train_steps, 0.0, power=1.0)
  if num_warmup_steps:
    steps_int = tf.cast(global_step, tf.int32)
    done = tf.cast(steps_int, tf.float32) / tf.cast(num_warmup_steps, tf.float32)
    is_warmup = tf.cast(steps_int < num_warmup_steps, tf.float32)
    learning_rate = (1.0 - is_warmup) * learning_rate + is_warmup * init_lr * done
  optimizer = AdamWeightDecayOptimizer(learning_rate, 0.01, exclude=["LayerNorm", "ln", "bias"])
  if use_tpu:
    optimizer = tf.tpu.CrossShardOptimizer(optimizer)
  tvars = tf.trainable_variables()
  grads, _ = tf.clip_by_global_norm(tf.gradients(loss, tvars), clip_norm=1.0)
  train_op = optimizer.apply_gradients(zip(grads, tvars), global_step=global_step)  # <- TPU201
  new_global_step = global_step + 1
  train_op = tf.group(train_op, [global_step.assign(new_global_step)])
  return train_op, learning_rate


def create_model(config, is_training, features, num_labels, use_one_hot_embeddings):
  model = Model(config, is_training, features["input_ids"], features["input_mask"], features["segment_ids"], use_one_hot_embeddings)
  out = model.sequence_output
  if is_training:
    out = tf.nn.dropout(out, keep_prob=0.9)
  with tf.variable_scope("tags"):
    weights = tf.get_variable("output_weights", [num_labels, out.shape[-1]], initializer=tf.truncated_normal_initializer(stddev=0.02))
    bias = tf.get_variable("output_bias", [num_labels], initializer=tf.zeros_initializer())
    b, s, h = get_shape_list(out)
    logits = tf.nn.bias_add(tf.matmul(tf.reshape(out, [-1, h]), weights, transpose_b=True), bias)
    logits = tf.reshape(logits, [-1, s, num_labels])
  log_probs = tf.nn.log_softmax(logits, axis=-1)
  one_hot = tf.one_hot(features["label_ids"], depth=num_labels, dtype=tf.float32)
  per_token = -tf.reduce_sum(one_hot * log_probs, axis=-1)
  mask = tf.cast(features["input_mask"], tf.float32)
  per_example = tf.reduce_sum(per_token * mask, -1) / tf.reduce_sum(mask, -1)
  return tf.reduce_mean(per_example), per_example, logits, tf.argmax(logits, axis=-1, output_type=tf.int32)


def model_fn_builder(config, num_labels, init_lr, num_train_steps, num_warmup_steps, use_tpu, use_one_hot_embeddings):
  def model_fn(features, labels, mode, params):
    tf.logging.info("*** Features ***")
    for name in sorted(features.keys()):
      tf.logging.info("  name = %s, shape = %s" % (name, features[name].shape))
    is_training = (mode == tf.estimator.ModeKeys.TRAIN)
    is_real = tf.cast(features["is_real_example"], tf.float32)
    (total_loss, per_example, logits, predicts) = create_model(config, is_training, features, num_labels, use_one_hot_embeddings)
    scaffold_fn = None
    if use_tpu:
      def tpu_scaffold():
        return tf.train.Scaffold()
      scaffold_fn = tpu_scaffold

    if mode == tf.estimator.ModeKeys.TRAIN:
      train_op, rate = create_optimizer(total_loss, init_lr, num_train_steps, num_warmup_steps, use_tpu)

      def host_fn(step, rate, losses):
        writer = tf0.summary.create_file_writer("/tmp/ner", flush_millis=10000)
        with writer.as_default(), tf0.summary.record_if(tf.equal(step[0] % 10, 0)):
          tf0.summary.scalar("rate", tf.reduce_mean(rate), step=step[0])
          tf0.summary.scalar("worst", tf.reduce_max(losses), step=step[0])
          return tf.summary.all_v2_summary_ops()

      step = tf.reshape(tf.train.get_global_step(), [1])
      return tf.estimator.tpu.TPUEstimatorSpec(mode=mode, loss=total_loss, train_op=train_op, scaffold_fn=scaffold_fn,  # <- TPU111
                                               host_call=(host_fn, [step, rate[None], per_example]))
    elif mode == tf.estimator.ModeKeys.EVAL:
      def metric_fn(per_example, label_ids, predicts, input_mask, is_real):
        weights = tf.cast(input_mask, tf.float32) * is_real[:, None]
        positive = [2, 3, 4, 5]
        hit = lambda ids: tf.reduce_any(tf.equal(ids[..., None], positive), -1)
        cm = tf.get_variable("cm", [num_labels, num_labels], tf.float32, tf.zeros_initializer(), trainable=False,
                             collections=[tf.GraphKeys.LOCAL_VARIABLES, tf.GraphKeys.METRIC_VARIABLES])
        new = tf.math.confusion_matrix(tf.reshape(label_ids, [-1]), tf.reshape(predicts, [-1]), num_labels, dtype=tf.float32,
                                       weights=tf.reshape(weights, [-1]))
        return {
            "eval_loss": tf.metrics.mean(values=per_example, weights=is_real),
            "accuracy": tf.metrics.accuracy(label_ids, predicts, weights=weights),
            "precision": tf.metrics.precision(hit(label_ids), hit(predicts), weights=weights),
            "recall": tf.metrics.recall(hit(label_ids), hit(predicts), weights=weights),
            "confusion": (tf.reduce_sum(tf.linalg.tensor_diag_part(cm)), cm.assign_add(new)),
        }

      eval_metrics = (metric_fn, [per_example, features["label_ids"], predicts, features["input_mask"], is_real])
      return tf.estimator.tpu.TPUEstimatorSpec(mode=mode, loss=total_loss, eval_metrics=eval_metrics, scaffold_fn=scaffold_fn)  # <- TPU112
    return tf.estimator.tpu.TPUEstimatorSpec(mode=mode, predictions={"tags": predicts, "logits": logits}, scaffold_fn=scaffold_fn)

  return model_fn


def main(data_dir):
  seq, batch = 16, 32
  train, dev = os.path.join(data_dir, "ner_train.tf_record"), os.path.join(data_dir, "ner_dev.tf_record")
  file_based_convert(train, 256, 256, seq, 1)
  file_based_convert(dev, 59, 64, seq, 2)
  config = Config.from_dict(json.loads('{"vocab_size": 100, "hidden_size": 16}'))
  per_host = tf.estimator.tpu.InputPipelineConfig.PER_HOST_V2
  run_config = tf.estimator.tpu.RunConfig(cluster=None, master=None, model_dir="/tmp/ner", save_checkpoints_steps=1000,
      tpu_config=tf.estimator.tpu.TPUConfig(iterations_per_loop=1000, num_shards=8, per_host_input_for_training=per_host))
  model_fn = model_fn_builder(config, len(LABELS), 5e-5, 2000, 200, True, True)
  estimator = tf.estimator.tpu.TPUEstimator(use_tpu=True, model_fn=model_fn, config=run_config, train_batch_size=batch,
                                            eval_batch_size=batch, predict_batch_size=batch)
  return (estimator, file_based_input_fn_builder(train, seq, True, True),
          {"eval_input_fn": file_based_input_fn_builder(dev, seq, False, True),
           "predict_input_fn": file_based_input_fn_builder(dev, seq, False, False)})


FAULTS = [
    ("TPU201", "  if use_tpu:\n    optimizer = tf.tpu.CrossShardOptimizer(optimizer)\n  tvars", "  tvars"),
    ("TPU111", "[step, rate[None], per_example]", "[step, rate, per_example]"),
    ("TPU215", "  train_op = tf.group(train_op, [global_step.assign(new_global_step)])", "  train_op = tf.group(train_op, [tf.identity(new_global_step)])"),
    ("TPU112", "  def metric_fn(per_example, label_ids, predicts, input_mask, is_real):", "  def metric_fn(per_example, label_ids, logits, predicts, input_mask, is_real):"),
]
