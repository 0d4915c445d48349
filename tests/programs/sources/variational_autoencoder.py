"""A variational autoencoder without labels: params made into a Namespace, sampling in evaluation, hooks."""

from argparse import Namespace

import numpy as np
import tensorflow.compat.v1 as tf

DIM, LATENT = 24, 4


def encoder(x, hp):
    h = tf.layers.dense(x, hp.hidden, tf.nn.elu)
    return tf.layers.dense(h, hp.latent), tf.layers.dense(h, hp.latent)


def decoder(z, hp):
    return tf.layers.dense(tf.layers.dense(z, hp.hidden, tf.nn.elu), DIM)


class StepCounter(tf.train.SessionRunHook):
    def begin(self):
        self._step = tf.train.get_global_step()

    def after_run(self, run_context, run_values):
        pass


def model_fn(features, labels, mode, params):
    hp = Namespace(**params)
    mean, log_variance = encoder(features, hp)
    noise = tf.random_normal(tf.shape(mean))
    logits = decoder(mean + tf.exp(0.5 * log_variance) * noise, hp)
    reconstruction = tf.reduce_sum(
        tf.nn.sigmoid_cross_entropy_with_logits(labels=features, logits=logits), axis=1
    )
    divergence = -0.5 * tf.reduce_sum(1 + log_variance - tf.square(mean) - tf.exp(log_variance), axis=1)
    elbo = reconstruction + hp.beta * divergence
    loss = tf.reduce_mean(elbo)
    if mode == tf.estimator.ModeKeys.EVAL:

        def metric_fn(elbo, divergence):
            return {"elbo": tf.metrics.mean(elbo), "divergence": tf.metrics.mean(divergence)}

        return tf.estimator.tpu.TPUEstimatorSpec(mode, loss=loss, eval_metrics=(metric_fn, [elbo, divergence]))
    optimizer = tf.train.RMSPropOptimizer(hp.learning_rate)
    if hp.use_tpu:
        optimizer = tf.tpu.CrossShardOptimizer(optimizer)
    train_op = optimizer.minimize(loss, global_step=tf.train.get_global_step())  # <- TPU201 TPU215
    return tf.estimator.tpu.TPUEstimatorSpec(
        mode, loss=loss, train_op=train_op, training_hooks=[StepCounter()]  # <- TPU115
    )


def input_fn(params):
    hp = Namespace(**dict(params))
    data = np.random.RandomState(0).rand(512, DIM).astype(np.float32)
    dataset = tf.data.Dataset.from_tensor_slices(data)
    dataset = dataset.apply(tf.data.experimental.shuffle_and_repeat(buffer_size=512))
    dataset = dataset.batch(hp.batch_size, drop_remainder=True)
    return dataset.prefetch(1)


def eval_input_fn(params):
    params = params.copy()
    data = np.random.RandomState(1).rand(64, DIM).astype(np.float32)
    return tf.data.Dataset.from_tensor_slices(data).batch(params["batch_size"], drop_remainder=True)


def main(data_dir):
    params = dict(hidden=32, latent=LATENT, learning_rate=1e-3, beta=1.0)
    config = tf.estimator.tpu.RunConfig(
        model_dir="/tmp/vae", tpu_config=tf.estimator.tpu.TPUConfig(iterations_per_loop=100)
    )
    estimator = tf.estimator.tpu.TPUEstimator(
        model_fn, params=params, config=config, train_batch_size=64, eval_batch_size=64
    )
    return estimator, input_fn, {"eval_input_fn": eval_input_fn}


FAULTS = [
    ("TPU201", "    if hp.use_tpu:\n        optimizer = tf.tpu.CrossShardOptimizer(optimizer)\n", ""),
    ("TPU214", "dataset.batch(hp.batch_size, drop_remainder=True)", "dataset.batch(128, drop_remainder=True)"),
    ("TPU226", "dataset.batch(hp.batch_size, drop_remainder=True)", "dataset.batch(64, drop_remainder=True)"),
    ("TPU118", "return {\"elbo\": tf.metrics.mean(elbo), \"divergence\": tf.metrics.mean(divergence)}", "return {\"elbo\": tf.metrics.mean(elbo), \"divergence\": tf.metrics.mean(divergence), \"r\": tf.metrics.mean(reconstruction + elbo)}"),
    ("TPU115", "training_hooks=[StepCounter()]", "training_hooks=[StepCounter(), tf.train.LoggingTensorHook({\"loss\": loss}, 100)]"),
]
