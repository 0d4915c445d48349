# Mobile networks by a list of block strings; averages read through a custom getter, channels-last-batch input.
import math
import re

import tensorflow.compat.v1 as tf
from absl import flags
from tensorflow.python.tpu import bfloat16

FLAGS = flags.FlagValues()
flags.DEFINE_float('base_learning_rate', default=0.016, help='for a batch of 256', flag_values=FLAGS)
flags.DEFINE_bool('transpose_input', default=True, help='HWCN', flag_values=FLAGS)
flags.DEFINE_bool('use_bfloat16', default=True, help='', flag_values=FLAGS)
flags.DEFINE_bool('skip_host_call', default=False, help='', flag_values=FLAGS)
FLAGS.mark_as_parsed()

NUM_TRAIN_IMAGES = 960
NUM_EVAL_IMAGES = 192
BLOCKS = ['r1_k3_s11_e1_i16_o8_noskip', 'r2_k3_s22_e3_i8_o16', 'r1_k5_s22_e3_i16_o24_se0.25']


class Decoder(object):
  """Turns 'r1_k3_s22_e6_i16_o24' into a dict."""

  def decode(self, text):
    options = {}
    for op in text.split('_'):
      splits = re.split(r'(\d.*)', op)
      if len(splits) >= 2:
        key, value = splits[:2]
        options[key] = value
    return dict(
        kernel=int(options['k']), repeat=int(options['r']), out=int(options['o']),
        expand=int(options['e']), stride=int(options['s'][0]), skip='noskip' not in text,
        se=float(options['se']) if 'se' in options else None)


def conv_kernel_initializer(shape, dtype=None, partition_info=None):
  del partition_info
  fan_out = int(shape[0] * shape[1] * shape[3])
  return tf.random_normal(shape, mean=0.0, stddev=math.sqrt(2.0 / fan_out), dtype=dtype)


class Net(object):

  def __init__(self, blocks, classes):
    self.blocks = [Decoder().decode(b) for b in blocks]
    self.classes = classes

  def norm(self, x, training, relu=True):
    x = tf.layers.batch_normalization(x, axis=-1, momentum=0.99, epsilon=1e-3, training=training, fused=True)
    return tf.nn.relu6(x) if relu else x

  def __call__(self, x, training):
    x = tf.layers.conv2d(x, 16, 3, 2, 'same', use_bias=False, kernel_initializer=conv_kernel_initializer)
    x = self.norm(x, training)
    for args in self.blocks:
      for n in range(args['repeat']):
        stride = args['stride'] if n == 0 else 1
        inputs, width = x, x.get_shape().as_list()[-1] * args['expand']
        if args['expand'] != 1:
          x = self.norm(tf.layers.conv2d(x, width, 1, use_bias=False), training)
        kernel = tf.get_variable('dw_%d_%d' % (self.blocks.index(args), n), [args['kernel']] * 2 + [width, 1], x.dtype,
                                 initializer=tf.variance_scaling_initializer())
        x = self.norm(tf.nn.depthwise_conv2d(x, kernel, [1, stride, stride, 1], 'SAME'), training)
        if args['se']:
          pooled = tf.reduce_mean(x, [1, 2], keepdims=True)
          gate = tf.layers.conv2d(tf.layers.conv2d(pooled, 4, 1, activation=tf.nn.relu), width, 1)
          x = tf.sigmoid(gate) * x
        x = self.norm(tf.layers.conv2d(x, args['out'], 1, use_bias=False), training, relu=False)
        if args['skip'] and stride == 1 and inputs.shape[-1] == x.shape[-1]:
          x = x + inputs
    x = tf.reduce_mean(x, [1, 2])
    if training:
      x = tf.nn.dropout(x, rate=0.2)
    return tf.layers.dense(x, self.classes, kernel_initializer=tf.random_uniform_initializer(-.1, .1))


def model_fn(features, labels, mode, params):
  training = mode == tf.estimator.ModeKeys.TRAIN
  if FLAGS.transpose_input and mode != tf.estimator.ModeKeys.PREDICT:
    features = tf.transpose(features, [3, 0, 1, 2])  # HWCN to NHWC
  features -= tf.constant([0.485, 0.456, 0.406], shape=[1, 1, 3], dtype=features.dtype)
  features /= tf.constant([0.229, 0.224, 0.225], shape=[1, 1, 3], dtype=features.dtype)

  net = Net(params['blocks'], params['classes'])
  if params['use_bfloat16']:
    with bfloat16.bfloat16_scope():
      logits = tf.cast(net(tf.cast(features, tf.bfloat16), training), tf.float32)
  else:
    logits = net(features, training)

  if mode == tf.estimator.ModeKeys.PREDICT:
    return tf.estimator.tpu.TPUEstimatorSpec(
        mode, predictions={'classes': tf.argmax(logits, 1), 'probabilities': tf.nn.softmax(logits, name='softmax')})

  batch_size = params['batch_size']
  one_hot = tf.one_hot(labels, params['classes'])
  loss = tf.losses.softmax_cross_entropy(onehot_labels=one_hot, logits=logits, label_smoothing=.1)
  loss += 1e-5 * tf.add_n([tf.nn.l2_loss(v) for v in tf.trainable_variables() if 'batch_normalization' not in v.name])

  global_step = tf.train.get_global_step()
  ema = tf.train.ExponentialMovingAverage(0.9999, num_updates=global_step)
  ema_vars = tf.trainable_variables() + [v for v in tf.global_variables() if 'moving_' in v.op.name]

  host_call = train_op = None
  restore = None
  if training:
    epoch = tf.cast(global_step, tf.float32) / (NUM_TRAIN_IMAGES / params['train_batch_size'])
    rate = FLAGS.base_learning_rate * params['train_batch_size'] / 256.
    rate = tf.where(epoch < 5, rate * epoch / 5, tf.train.exponential_decay(rate, global_step, 40, .97, True))
    optimizer = tf.train.RMSPropOptimizer(rate, .9, .9, 1e-3)
    if params['use_tpu']:
      optimizer = tf.tpu.CrossShardOptimizer(optimizer)
    with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
      train_op = optimizer.minimize(loss, global_step)
    with tf.control_dependencies([train_op]):
      train_op = ema.apply(ema_vars)  # <- TPU220

    if not FLAGS.skip_host_call:
      def host_call_fn(gs, lr, ce):
        gs = gs[0]
        with tf.compat.v2.summary.create_file_writer(params['model_dir']).as_default():
          with tf.compat.v2.summary.record_if(True):
            tf.compat.v2.summary.scalar('learning_rate', lr[0], step=gs)
            tf.compat.v2.summary.scalar('current_epoch', ce[0], step=gs)
            return tf.summary.all_v2_summary_ops()

      host_call = (host_call_fn, [tf.reshape(t, [1]) for t in (global_step, rate, epoch)])
  else:
    restore = ema.variables_to_restore(ema_vars)

  eval_metrics = None
  if mode == tf.estimator.ModeKeys.EVAL:
    def metric_fn(labels, logits):
      top5 = tf.cast(tf.nn.in_top_k(logits, labels, 5), tf.float32)
      return {'top_1_accuracy': tf.metrics.accuracy(labels, tf.argmax(logits, axis=1)),
              'top_5_accuracy': tf.metrics.mean(top5)}
    eval_metrics = (metric_fn, [labels, logits])

  def scaffold_fn():
    return tf.train.Scaffold(saver=tf.train.Saver(restore))

  tf.logging.info('batch %d, %d parameters', batch_size, sum(v.shape.num_elements() for v in tf.trainable_variables()))
  return tf.estimator.tpu.TPUEstimatorSpec(  # <- TPU111
      mode=mode, loss=loss, train_op=train_op, host_call=host_call, eval_metrics=eval_metrics,
      scaffold_fn=None if training else scaffold_fn)


class Images(object):

  def __init__(self, training, transpose=True):
    self.training, self.transpose = training, transpose

  def parse(self, n):
    seed = tf.stack([n, n + 7])
    image = tf.random.stateless_uniform([40, 40, 3], seed)
    if self.training:
      image = tf.image.random_flip_left_right(tf.image.random_crop(image, [32, 32, 3]))
    else:
      image = tf.image.resize_with_crop_or_pad(image, 32, 32)
    return image, tf.cast(n % 10, tf.int32)

  def set_shapes(self, batch_size, images, labels):
    if self.transpose:
      images.set_shape(images.get_shape().merge_with(tf.TensorShape([None, None, None, batch_size])))
      labels.set_shape(labels.get_shape().merge_with(tf.TensorShape([batch_size])))
    return images, labels

  def __call__(self, params):
    batch_size = params['batch_size']
    ds = tf.data.Dataset.range(NUM_TRAIN_IMAGES if self.training else NUM_EVAL_IMAGES)
    if self.training:
      ds = ds.shuffle(512).repeat()
    ds = ds.map(self.parse, 8).batch(batch_size, drop_remainder=True)
    if self.transpose:
      ds = ds.map(lambda images, labels: (tf.transpose(images, [1, 2, 3, 0]), labels), num_parallel_calls=8)
    ds = ds.map(lambda i, l: self.set_shapes(batch_size, i, l))
    return ds.prefetch(tf.data.experimental.AUTOTUNE)


def main(data_dir):
  params = dict(blocks=BLOCKS, classes=10, use_bfloat16=FLAGS.use_bfloat16, train_batch_size=64, model_dir='/tmp/mnas')
  config = tf.estimator.tpu.RunConfig(
      model_dir='/tmp/mnas', save_checkpoints_steps=max(600, 15), log_step_count_steps=64,
      session_config=tf.ConfigProto(graph_options=tf.GraphOptions(rewrite_options=None)),
      tpu_config=tf.estimator.tpu.TPUConfig(
          iterations_per_loop=15, per_host_input_for_training=tf.estimator.tpu.InputPipelineConfig.PER_HOST_V2))
  est = tf.estimator.tpu.TPUEstimator(
      use_tpu=True, model_fn=model_fn, config=config, train_batch_size=64, eval_batch_size=64, params=params,
      export_to_tpu=False)
  return est, Images(True), {'eval_input_fn': Images(False)}


FAULTS = [
    ("TPU220", "    with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):\n      train_op = optimizer.minimize(loss, global_step)", "    deps = tf.get_collection(tf.GraphKeys.TRAINABLE_VARIABLES, scope='no_such')\n    with tf.control_dependencies(deps):\n      train_op = optimizer.minimize(loss, global_step)"),
    ("TPU111", "[tf.reshape(t, [1]) for t in (global_step, rate, epoch)]", "list(map(tf.squeeze, [global_step, rate, epoch]))"),
]
