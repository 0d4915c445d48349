"""A vector-quantized autoencoder: a code book of moving averages summed over all cores, straight-through gradients.

The model is made of classes with their own variables; some examples only go to the summaries of the host.
"""

import functools

import numpy as np
import tensorflow.compat.v1 as tf
from tensorflow.python.tpu.ops import tpu_ops
from tensorflow.python.training import moving_averages

CODES, CODE_DIM, SIDE = 32, 8, 16


class VectorQuantizerEMA(object):
    def __init__(self, dim, codes, commitment, decay, cores, epsilon=1e-5):
        self.dim, self.codes, self.commitment, self.decay, self.epsilon = dim, codes, commitment, decay, epsilon
        self.cores = cores
        with tf.variable_scope("vq"):
            initial = tf.random_normal_initializer()
            self.w = tf.get_variable("embedding", [dim, codes], initializer=initial, trainable=False)
            self.size = tf.get_variable("ema_cluster_size", [codes], initializer=tf.zeros_initializer(), trainable=False)
            self.ema_w = tf.get_variable("ema_dw", [dim, codes], initializer=initial, trainable=False)

    def __call__(self, inputs, is_training):
        flat = tf.reshape(inputs, [-1, self.dim])
        distances = tf.reduce_sum(flat**2, 1, keepdims=True) - 2 * tf.matmul(flat, self.w) + tf.reduce_sum(self.w**2, 0, keepdims=True)
        indices = tf.argmax(-distances, 1)
        encodings = tf.one_hot(indices, self.codes)
        quantized = tf.reshape(tf.nn.embedding_lookup(tf.transpose(self.w), indices), inputs.shape)
        e_latent_loss = tf.reduce_mean((tf.stop_gradient(quantized) - inputs) ** 2)
        updates = tf.no_op()
        if is_training:
            counts, sums = tf.reduce_sum(encodings, 0), tf.matmul(flat, encodings, transpose_a=True)
            counts, sums = (tpu_ops.cross_replica_sum(each) for each in (counts, sums))
            new_size = moving_averages.assign_moving_average(self.size, counts, self.decay, zero_debias=False)
            new_sum = moving_averages.assign_moving_average(self.ema_w, tf.stop_gradient(sums), self.decay, zero_debias=False)
            n = tf.reduce_sum(new_size)
            smoothed = (new_size + self.epsilon) / (n + self.codes * self.epsilon) * n
            updates = tf.assign(self.w, new_sum / smoothed[None, :])
        with tf.control_dependencies([updates]):
            quantized = inputs + tf.stop_gradient(quantized - inputs)
        usage = tf.reduce_mean(encodings, 0)
        perplexity = tf.exp(-tf.reduce_sum(usage * tf.log(usage + 1e-10)))
        return quantized, self.commitment * e_latent_loss, perplexity


def residual_stack(h, layers, hidden):
    for i in range(layers):
        inner = tf.layers.conv2d(tf.nn.relu(h), hidden, 3, padding="SAME", name="res3x3_%d" % i)
        h += tf.layers.conv2d(tf.nn.relu(inner), h.shape[-1], 1, name="res1x1_%d" % i)
    return tf.nn.relu(h)


def encoder(x):
    with tf.variable_scope("encoder"):
        h = tf.nn.relu(tf.layers.conv2d(x, 16, 4, 2, "same", name="enc_1"))
        return tf.layers.conv2d(residual_stack(h, 2, 8), CODE_DIM, 1, name="to_vq")


def decoder(q):
    with tf.variable_scope("decoder"):
        h = residual_stack(tf.layers.conv2d(q, 16, 3, padding="same", name="dec_1"), 2, 8)
        return tf.layers.conv2d_transpose(h, 3, 4, 2, padding="same", name="dec_out")


def write_images(global_step, images, perplexity, model_dir):
    gs = global_step[0]
    with tf.compat.v2.summary.create_file_writer(model_dir).as_default():
        with tf.compat.v2.summary.record_if(tf.equal(gs % 100, 0)):
            tf.compat.v2.summary.image("reconstructions", images, step=gs, max_outputs=4)
            tf.compat.v2.summary.scalar("perplexity", tf.reduce_mean(perplexity), step=gs)
            return tf.summary.all_v2_summary_ops()


def model_fn(features, labels, mode, params):
    x = features
    training = mode == tf.estimator.ModeKeys.TRAIN
    vq = VectorQuantizerEMA(CODE_DIM, CODES, 0.25, 0.99, params["cores"])
    quantized, vq_loss, perplexity = vq(encoder(x), training)
    recon = decoder(quantized)
    recon_error = tf.reduce_mean((recon - x) ** 2) / params["data_variance"]
    loss = recon_error + vq_loss
    if mode == tf.estimator.ModeKeys.EVAL:
        each = tf.reduce_mean((recon - x) ** 2, axis=[1, 2, 3])
        return tf.estimator.tpu.TPUEstimatorSpec(mode=mode, loss=loss, eval_metrics=(lambda e: {"nmse": tf.metrics.mean(e)}, [each]))
    optimizer = tf.tpu.CrossShardOptimizer(tf.train.AdamOptimizer(3e-4), reduction=tf.losses.Reduction.MEAN)
    train_op = optimizer.minimize(loss, tf.train.get_global_step())  # <- TPU201 TPU215
    host_call = (
        functools.partial(write_images, model_dir="/tmp/vq"),
        [tf.reshape(tf.train.get_global_step(), [1]), tf.clip_by_value(recon[:2] + 0.5, 0, 1), perplexity[None]],
    )
    return tf.estimator.tpu.TPUEstimatorSpec(mode=mode, loss=loss, train_op=train_op, host_call=host_call)  # <- TPU111


def cast_and_normalise(image):
    return tf.cast(image, tf.float32) / 255.0 - 0.5


def input_fn(params):
    images = np.random.RandomState(0).randint(0, 256, [100, SIDE, SIDE, 3]).astype(np.uint8)
    return (
        tf.data.Dataset.from_tensor_slices(images)
        .map(cast_and_normalise)
        .shuffle(100)
        .repeat(-1)
        .batch(params["batch_size"], drop_remainder=True)
        .prefetch(-1)
    )


def main(data_dir):
    tpu_config = tf.estimator.tpu.TPUConfig(iterations_per_loop=100, num_shards=8, per_host_input_for_training=3)
    run_config = tf.estimator.tpu.RunConfig(tpu_config=tpu_config, model_dir="/tmp/vq", log_step_count_steps=None)
    estimator = tf.estimator.tpu.TPUEstimator(
        model_fn, params=dict(cores=8, data_variance=0.06), config=run_config, train_batch_size=64, eval_batch_size=64, use_tpu=False
    )
    return estimator, input_fn


FAULTS = [
    ("TPU201", "tf.tpu.CrossShardOptimizer(tf.train.AdamOptimizer(3e-4), reduction=tf.losses.Reduction.MEAN)", "tf.train.AdamOptimizer(3e-4)"),
    ("TPU111", "perplexity[None]],", "perplexity],"),
    ("TPU101", "        .batch(params[\"batch_size\"], drop_remainder=True)\n", "        .batch(params[\"batch_size\"])\n"),
    ("TPU202", "        indices = tf.argmax(-distances, 1)\n", "        indices = tf.unique_with_counts(tf.argmax(-distances, 1))[1]\n"),
    ("TPU206", "    recon = decoder(quantized)\n", "    recon = decoder(quantized)\n    tf.summary.image(\"recon\", recon)\n"),
    ("TPU214", "        .batch(params[\"batch_size\"], drop_remainder=True)\n", "        .batch(params[\"batch_size\"] * 8, drop_remainder=True)\n"),
]
