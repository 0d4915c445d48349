"""A generative adversarial network: two optimizers, noise as a feature, prediction of pictures."""

import numpy as np
import tensorflow.compat.v1 as tf

USE_TPU, NOISE_DIM, BATCH = True, 16, 32
SIDE = 16


def _leaky_relu(x):
    return tf.nn.leaky_relu(x, alpha=0.2)


def _batch_norm(x, is_training, name):
    return tf.layers.batch_normalization(
        x, momentum=0.9, epsilon=1e-5, training=is_training, name=name
    )


def _dense(x, channels, name):
    return tf.layers.dense(
        x, channels, kernel_initializer=tf.truncated_normal_initializer(stddev=0.02), name=name
    )


def _conv2d(x, filters, kernel_size, stride, name):
    return tf.layers.conv2d(
        x,
        filters,
        [kernel_size, kernel_size],
        strides=[stride, stride],
        padding="same",
        kernel_initializer=tf.truncated_normal_initializer(stddev=0.02),
        name=name,
    )


def _deconv2d(x, filters, kernel_size, stride, name):
    return tf.layers.conv2d_transpose(
        x,
        filters,
        [kernel_size, kernel_size],
        strides=[stride, stride],
        padding="same",
        kernel_initializer=tf.truncated_normal_initializer(stddev=0.02),
        name=name,
    )


def discriminator(x, is_training=True, scope="Discriminator"):
    with tf.variable_scope(scope, reuse=tf.AUTO_REUSE):
        x = _leaky_relu(_conv2d(x, 8, 5, 2, name="d_conv1"))
        x = _leaky_relu(_batch_norm(_conv2d(x, 16, 5, 2, name="d_conv2"), is_training, "d_bn2"))
        x = tf.reshape(x, [-1, SIDE // 4 * SIDE // 4 * 16])
        return _dense(x, 1, name="d_fc_4")


def generator(x, is_training=True, scope="Generator"):
    with tf.variable_scope(scope, reuse=tf.AUTO_REUSE):
        x = tf.nn.relu(_batch_norm(_dense(x, 4 * 4 * 16, "g_fc1"), is_training, "g_bn1"))
        x = tf.reshape(x, [-1, 4, 4, 16])
        x = tf.nn.relu(_batch_norm(_deconv2d(x, 8, 5, 2, name="g_dconv2"), is_training, "g_bn2"))
        return tf.tanh(_deconv2d(x, 3, 4, 2, name="g_dconv4"))


def model_fn(features, labels, mode, params):
    del labels
    if mode == tf.estimator.ModeKeys.PREDICT:
        random_noise = features["random_noise"]
        predictions = {"generated_images": generator(random_noise, is_training=False)}
        return tf.estimator.tpu.TPUEstimatorSpec(mode=mode, predictions=predictions)

    is_training = mode == tf.estimator.ModeKeys.TRAIN
    batch_size = params["batch_size"]
    real_images = tf.reshape(features["real_images"], [batch_size, SIDE, SIDE, 3])
    random_noise = features["random_noise"]
    generated_images = generator(random_noise, is_training=is_training)
    d_on_data_logits = tf.squeeze(discriminator(real_images))
    d_on_g_logits = tf.squeeze(discriminator(generated_images))

    d_loss_on_data = tf.nn.sigmoid_cross_entropy_with_logits(
        labels=tf.ones_like(d_on_data_logits), logits=d_on_data_logits
    )
    d_loss_on_gen = tf.nn.sigmoid_cross_entropy_with_logits(
        labels=tf.zeros_like(d_on_g_logits), logits=d_on_g_logits
    )
    d_loss = d_loss_on_data + d_loss_on_gen
    g_loss = tf.nn.sigmoid_cross_entropy_with_logits(
        labels=tf.ones_like(d_on_g_logits), logits=d_on_g_logits
    )

    if mode == tf.estimator.ModeKeys.TRAIN:
        d_loss = tf.reduce_mean(d_loss)
        g_loss = tf.reduce_mean(g_loss)
        d_optimizer = tf.train.AdamOptimizer(learning_rate=0.0002, beta1=0.5)
        g_optimizer = tf.train.AdamOptimizer(learning_rate=0.0002, beta1=0.5)
        if USE_TPU:
            d_optimizer = tf.tpu.CrossShardOptimizer(d_optimizer)
            g_optimizer = tf.tpu.CrossShardOptimizer(g_optimizer)
        with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
            d_step = d_optimizer.minimize(
                d_loss,
                var_list=tf.get_collection(tf.GraphKeys.TRAINABLE_VARIABLES, scope="Discriminator"),
            )
            g_step = g_optimizer.minimize(  # <- TPU201
                g_loss,
                var_list=tf.get_collection(tf.GraphKeys.TRAINABLE_VARIABLES, scope="Generator"),
            )
            increment_step = tf.assign_add(tf.train.get_or_create_global_step(), 1)
            joint_op = tf.group([d_step, g_step, increment_step])  # <- TPU215
            return tf.estimator.tpu.TPUEstimatorSpec(mode=mode, loss=g_loss, train_op=joint_op)

    if mode == tf.estimator.ModeKeys.EVAL:

        def _eval_metric_fn(d_loss, g_loss):
            return {
                "discriminator_loss": tf.metrics.mean(d_loss),
                "generator_loss": tf.metrics.mean(g_loss),
            }

        return tf.estimator.tpu.TPUEstimatorSpec(  # <- TPU112
            mode=mode, loss=tf.reduce_mean(g_loss), eval_metrics=(_eval_metric_fn, [d_loss, g_loss])
        )
    raise ValueError("Invalid mode provided to model_fn")


class InputFunction:
    def __init__(self, is_training, noise_dim):
        self.is_training = is_training
        self.noise_dim = noise_dim
        random = np.random.RandomState(0)
        self.images = random.uniform(-1, 1, [96, SIDE * SIDE * 3]).astype(np.float32)
        self.labels = random.randint(0, 10, [96]).astype(np.int32)

    def __call__(self, params):
        batch_size = params["batch_size"]
        dataset = tf.data.Dataset.from_tensor_slices((self.images, self.labels)).cache()
        if self.is_training:
            dataset = dataset.repeat().shuffle(96)
        dataset = dataset.batch(batch_size, drop_remainder=True)
        dataset = dataset.prefetch(4)
        images, labels = tf.data.make_one_shot_iterator(dataset).get_next()
        random_noise = tf.random_normal([batch_size, self.noise_dim])
        features = {"real_images": images, "random_noise": random_noise}
        return features, labels


def noise_input_fn(params):
    np.random.seed(0)
    noise = np.random.randn(BATCH, NOISE_DIM).astype(np.float32)
    noise_dataset = tf.data.Dataset.from_tensors(tf.constant(noise, dtype=tf.float32))
    noise = tf.data.make_one_shot_iterator(noise_dataset).get_next()
    return {"random_noise": noise}, None


def generate_input_fn(is_training):
    return InputFunction(is_training, NOISE_DIM)


def main(data_dir):
    config = tf.estimator.tpu.RunConfig(
        model_dir="/tmp/dcgan",
        tpu_config=tf.estimator.tpu.TPUConfig(num_shards=8, iterations_per_loop=500),
    )
    est = tf.estimator.tpu.TPUEstimator(
        model_fn=model_fn,
        use_tpu=USE_TPU,
        config=config,
        train_batch_size=BATCH,
        eval_batch_size=BATCH,
    )
    return est, generate_input_fn(True), {"eval_input_fn": generate_input_fn(False)}


FAULTS = [
    ("TPU201", "            g_optimizer = tf.tpu.CrossShardOptimizer(g_optimizer)\n", ""),
    ("TPU215", "tf.group([d_step, g_step, increment_step])", "tf.group([d_step, g_step])"),
    ("TPU101", "dataset.batch(batch_size, drop_remainder=True)", "dataset.batch(batch_size)"),
    ("TPU112", "(_eval_metric_fn, [d_loss, g_loss])", "(_eval_metric_fn, [d_loss])"),
    ("TPU126", "return tf.estimator.tpu.TPUEstimatorSpec(mode=mode, loss=g_loss, train_op=joint_op)", "return tf.estimator.tpu.TPUEstimatorSpec(mode=mode, loss=g_loss)"),
]
