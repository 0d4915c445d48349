"""An autoencoder as a class: contrib.layers, LARS, train_and_evaluate, pictures turned by contrib.image."""
import os, sys
import functools
import numpy as np
import tensorflow as tf
import tensorflow.contrib.layers as layers
import tensorflow.contrib.tpu as contrib_tpu
from tensorflow.contrib.opt import LARSOptimizer
from tensorflow.contrib.framework import arg_scope
from tensorflow.contrib.training import HParams


class Autoencoder(object):
    def __init__(self, hparams):
        self.hp = hparams

    def encode(self, x):
        with arg_scope([layers.fully_connected], activation_fn=tf.nn.relu,
                       weights_initializer=layers.variance_scaling_initializer()):
            return layers.stack(layers.flatten(x), layers.fully_connected, [32, self.hp.code])

    def decode(self, code):
        return layers.fully_connected(layers.layer_norm(code), 144, activation_fn=None)

    def __call__(self, features, labels, mode, params):
        pixels = layers.flatten(features['pixels'])
        loss = tf.losses.mean_squared_error(pixels, self.decode(self.encode(pixels)))
        if mode == tf.estimator.ModeKeys.EVAL:
            metrics = (lambda pixels: {'mean': tf.metrics.mean(pixels)}, [pixels])
            return contrib_tpu.TPUEstimatorSpec(mode=mode, loss=loss, eval_metrics=metrics)
        opt = tf.contrib.estimator.clip_gradients_by_norm(
            LARSOptimizer(self.hp.rate, weight_decay=self.hp.decay), 4.0)
        opt = contrib_tpu.CrossShardOptimizer(opt)
        return contrib_tpu.TPUEstimatorSpec(
            mode=mode, loss=loss, train_op=opt.minimize(loss, global_step=tf.train.get_global_step()))


def pictures(params, training):
    data = tf.data.Dataset.from_tensor_slices({'pixels': np.ones([96, 12, 12, 1], np.float32)})
    if training:
        turned = lambda row: {'pixels': tf.contrib.image.rotate(row['pixels'], 0.1, 'BILINEAR')}
        data = data.map(turned).repeat()
    data = data.batch(params['batch_size'], drop_remainder=True)
    return data.map(lambda row: (row, tf.zeros([params['batch_size']])))


hp = HParams(code=8, rate=1e-3, decay=1e-5)
run_config = contrib_tpu.RunConfig(
    model_dir=os.environ.get('JOB_DIR', '/tmp/vae'),
    tpu_config=contrib_tpu.TPUConfig(
        iterations_per_loop=10,
        per_host_input_for_training=contrib_tpu.InputPipelineConfig.PER_HOST_V2),
    save_checkpoints_steps=10)
estimator = contrib_tpu.TPUEstimator(
    Autoencoder(hp), config=run_config, use_tpu=True, train_batch_size=32, eval_batch_size=32)
tf.estimator.train_and_evaluate(
    estimator,
    tf.estimator.TrainSpec(functools.partial(pictures, training=True), max_steps=100),
    tf.estimator.EvalSpec(functools.partial(pictures, training=False), steps=2))
