#!/usr/bin/env python
# Click rates by feature columns (numbers, buckets) and by the TPU-ready lookups of ids; weights for examples.
import collections

import numpy as np
import tensorflow as tf

fc = tf.compat.v1.feature_column
K = tf.compat.v1
Field = collections.namedtuple('Field', ['name', 'kind', 'size', 'dim'])
FIELDS = (
    Field('age', 'bucket', [18., 25., 40., 60.], None),
    Field('price', 'number', 1, None),
    Field('visits', 'number', 3, None),
    Field('user', 'id', 120, 8),
    Field('item', 'id', 80, 8),
    Field('tags', 'ids', 30, 4),
)


class Columns:
  def __init__(self, fields):
    self.fields = fields

  @property
  def dense(self):
    out = []
    for f in self.fields:
      if f.kind == 'number':
        out.append(fc.numeric_column(f.name, shape=(f.size,), normalizer_fn=lambda x: (x - 2.0) / 3.0))
      elif f.kind == 'bucket':
        out.append(fc.numeric_column(f.name))
    return out

  def spec(self):
    shapes = {'number': lambda f: [f.size], 'bucket': lambda f: [1], 'id': lambda f: [1], 'ids': lambda f: [5]}
    return {f.name: tf.io.FixedLenFeature(shapes[f.kind](f), tf.int64 if f.kind.startswith('id') else tf.float32)
            for f in self.fields}


def serving_parse(raw, columns):
  spec = columns.spec()
  spec.update(label=tf.io.FixedLenFeature([1], tf.float32), weight=tf.io.FixedLenFeature([1], tf.float32, [1.0]))
  row = tf.io.parse_example(raw, spec)
  for k, v in row.items():
    if v.dtype == tf.int64: row[k] = tf.cast(v, tf.int32)
  return row, row.pop('label')


def lookup(f, ids):
  with K.variable_scope('embed', reuse=K.AUTO_REUSE):
    shape = [f.size, f.dim]
    table = K.get_variable(f.name, shape, initializer=K.truncated_normal_initializer(stddev=f.dim ** -0.5))
  rows = tf.nn.embedding_lookup(table, ids)
  if f.kind == 'id':
    return tf.squeeze(rows, 1)
  valid = tf.cast(ids >= 0, tf.float32)[:, :, tf.newaxis]
  return tf.math.divide_no_nan(tf.reduce_sum(rows * valid, 1), tf.reduce_sum(valid, 1))


def build(columns, hidden):
  def model_fn(features, labels, mode, params):
    weights = features.pop('weight') if 'weight' in features else None
    parts = [fc.input_layer(features, columns.dense)]
    for f in columns.fields:
      if f.kind == 'bucket':
        which = tf.reduce_sum(tf.cast(features[f.name] >= tf.constant([f.size]), tf.int32), 1)
        parts.append(tf.one_hot(which, len(f.size) + 1))
      elif f.kind in ('id', 'ids'):
        parts.append(lookup(f, tf.maximum(features[f.name], 0) if f.kind == 'id' else features[f.name]))
    net = tf.concat(parts, axis=-1)
    crosses = []
    x0 = net
    for i in range(2):
      with K.variable_scope('cross_%d' % i):
        w = K.get_variable('w', [x0.shape[1], 1])
        b = K.get_variable('b', [x0.shape[1]], initializer=K.zeros_initializer)
        crosses.append(x0 * tf.matmul(net, w) + b + net)
        net = crosses[-1]
    for units in hidden:
      net = K.layers.dense(net, units, activation='relu')
      net = K.layers.dropout(net, 0.2, training=(mode == 'train'))
    logits = K.layers.dense(net, 1, name='logit')
    head = dict(probability=tf.sigmoid(logits), logit=logits)
    if mode == 'infer':
      return K.estimator.tpu.TPUEstimatorSpec(mode, predictions=head, export_outputs={
          'serving_default': tf.estimator.export.PredictOutput(head)})

    loss = K.losses.sigmoid_cross_entropy(labels, logits, weights)
    if mode == 'eval':
      def metric_fn(y, p, w, logit):
        pairs = {'auc': K.metrics.auc(y, p, weights=w), 'auc_pr': K.metrics.auc(y, p, weights=w, curve='PR')}
        xent = tf.nn.sigmoid_cross_entropy_with_logits(y, logit)
        pairs['log_loss'] = K.metrics.mean(xent, w)
        pairs['calibration'] = K.metrics.mean(p, weights=w)
        for threshold in (.25, .75):
          pairs['recall@%s' % threshold] = K.metrics.recall_at_thresholds(y, p, [threshold], w)
        return pairs
      return K.estimator.tpu.TPUEstimatorSpec(mode, loss=loss, eval_metrics=(  # <- TPU111
          metric_fn, [labels, head['probability'], weights, logits]))

    step = K.train.get_global_step()
    def shard(o): return K.tpu.CrossShardOptimizer(o)
    sparse, rest = [], []
    for v in K.trainable_variables(): (sparse if v.op.name.startswith('embed/') else rest).append(v)
    grads = tf.gradients(loss, sparse + rest)
    slow, fast = shard(K.train.AdagradOptimizer(0.05)), shard(K.train.AdamOptimizer(params.get('lr', 1e-3)))
    with tf.control_dependencies([slow.apply_gradients(zip(grads[:len(sparse)], sparse))]):
      train = fast.apply_gradients(zip(grads[len(sparse):], rest), global_step=step)
    return K.estimator.tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train)
  return model_fn


def reader(pattern, columns, epochs=None):
  def read(params):
    files = tf.data.Dataset.list_files(pattern, shuffle=epochs is None)
    rows = files.interleave(tf.data.TFRecordDataset, cycle_length=4, num_parallel_calls=tf.data.experimental.AUTOTUNE)
    rows = rows.shuffle(500, reshuffle_each_iteration=True).repeat() if epochs is None else rows.repeat(epochs)
    return (rows.batch(params['batch_size'], drop_remainder=True)
                .map(lambda raw: serving_parse(raw, columns), num_parallel_calls=4).prefetch(2))
  return read


def write(folder):
  r = np.random.RandomState(2)
  for shard in range(2):
    with tf.io.TFRecordWriter('%s/ctr-%05d-of-00002' % (folder, shard)) as out:
      for _ in range(128):
        f = lambda v: tf.train.Feature(float_list=tf.train.FloatList(value=v))
        n = lambda v: tf.train.Feature(int64_list=tf.train.Int64List(value=v))
        out.write(tf.train.Example(features=tf.train.Features(feature=dict(
            age=f([r.uniform(10, 80)]), price=f([r.rand()]), visits=f(r.rand(3)), user=n([r.randint(120)]),
            item=n([r.randint(80)]), tags=n(r.randint(-1, 30, 5)), label=f([float(r.rand() < .2)]),
            weight=f([r.choice([1., 2.])])))).SerializeToString())


def main(data_dir):
  write(data_dir)
  columns = Columns(FIELDS)
  estimator = K.estimator.tpu.TPUEstimator(
      model_fn=build(columns, [32, 16]), model_dir='/tmp/ctr', params={'lr': 2e-3}, use_tpu=True,
      train_batch_size=64, eval_batch_size=64, predict_batch_size=64,
      config=K.estimator.tpu.RunConfig(tpu_config=K.estimator.tpu.TPUConfig(iterations_per_loop=100), keep_checkpoint_max=2))
  return estimator, reader(data_dir + '/ctr-*', columns), {'eval_input_fn': reader(data_dir + '/ctr-*', columns, 1)}


FAULTS = [
    ("TPU227", "    loss = K.losses.sigmoid_cross_entropy(labels, logits, weights)\n", "    loss = tf.reduce_mean(weights * tf.nn.sigmoid_cross_entropy_with_logits(labels=labels, logits=logits) + tf.math.abs(tf.squeeze(labels, 1) - logits))\n"),
    ("TPU111", "metric_fn, [labels, head['probability'], weights, logits]", "metric_fn, [labels, head['probability'], tf.reduce_mean(weights), logits]"),
]
