"""A class-conditional GAN: several discriminator steps in a train step, spectral normalisation, averaged generator.

The input gives (images, labels) and model_fn draws the noise; batch statistics are taken over all cores.
"""

import functools

import tensorflow.compat.v1 as tf
from tensorflow.python.tpu import tpu_function
from tensorflow.python.tpu.ops import tpu_ops

SIZE, CLASSES, Z, DISC_ITERS = 16, 4, 8, 2


def cross_replica_mean(inputs, group_size=None):
    num_replicas = tpu_function.get_tpu_context().number_of_shards
    if num_replicas is None:
        return inputs
    if group_size is None:
        group_size = num_replicas
    groups = num_replicas // group_size
    group_assignment = [list(range(i * group_size, (i + 1) * group_size)) for i in range(groups)]
    return tpu_ops.cross_replica_sum(inputs, group_assignment) / tf.cast(group_size, inputs.dtype)


def standardize(x, labels, name, is_training):
    with tf.variable_scope(name):
        size = x.shape[-1]
        mean = tf.reduce_mean(x, [0, 1, 2])
        square = tf.reduce_mean(tf.square(x), [0, 1, 2])
        if is_training:
            mean, square = cross_replica_mean(mean), cross_replica_mean(square)
        x = (x - mean) * tf.rsqrt(square - tf.square(mean) + 1e-3)
        gamma = tf.layers.dense(labels, size, use_bias=False, kernel_initializer=tf.ones_initializer(), name="gamma")
        beta = tf.layers.dense(labels, size, use_bias=False, kernel_initializer=tf.zeros_initializer(), name="beta")
        return x * gamma[:, None, None, :] + beta[:, None, None, :]


def spectral_norm(weights, power_iteration_rounds=1):
    w = tf.reshape(weights, (-1, weights.shape[-1]))
    u_var = tf.get_variable(
        weights.name.replace(":0", "").split("/")[-1] + "_u",
        shape=(w.shape[0], 1),
        dtype=w.dtype,
        initializer=tf.random_normal_initializer(),
        trainable=False,
    )
    u = u_var
    for _ in range(power_iteration_rounds):
        v = tf.nn.l2_normalize(tf.matmul(w, u, transpose_a=True), axis=None, epsilon=1e-12)
        u = tf.nn.l2_normalize(tf.matmul(w, v), axis=None, epsilon=1e-12)
    with tf.control_dependencies([u_var.assign(u, name="update_u")]):
        u = tf.identity(u)
    u, v = tf.stop_gradient(u), tf.stop_gradient(v)
    norm_value = tf.matmul(tf.matmul(u, w, transpose_a=True), v)
    norm_value.shape.assert_is_fully_defined()
    return tf.reshape(w / norm_value, weights.shape)


def sn_conv(x, filters, name, strides=1):
    with tf.variable_scope(name):
        w = tf.get_variable(
            "kernel", [3, 3, x.shape[-1], filters], initializer=tf.orthogonal_initializer()
        )
        b = tf.get_variable("bias", [filters], initializer=tf.zeros_initializer())
        return tf.nn.conv2d(x, spectral_norm(w), [1, strides, strides, 1], "SAME") + b


def generator(z, y, is_training, reuse=False):
    with tf.variable_scope("generator", reuse=reuse):
        x = tf.reshape(tf.layers.dense(tf.concat([z, y], 1), 4 * 4 * 16, name="fc"), [-1, 4, 4, 16])
        for i in range(2):
            x = tf.nn.relu(standardize(x, y, "bn%d" % i, is_training))
            x = tf.image.resize_nearest_neighbor(x, [8 << i, 8 << i])
            x = tf.layers.conv2d(x, 16, 3, padding="same", name="conv%d" % i)
        return tf.nn.tanh(tf.layers.conv2d(x, 3, 3, padding="same", name="rgb"))


def discriminator(x, y, reuse=tf.AUTO_REUSE):
    with tf.variable_scope("discriminator", reuse=reuse):
        for i in range(2):
            x = tf.nn.relu(sn_conv(x, 16, "conv%d" % i, 2))
        h = tf.reduce_sum(x, axis=[1, 2])
        out = tf.layers.dense(h, 1, name="linear")
        embedding = tf.layers.dense(y, 16, use_bias=False, name="embedding")
        return out + tf.reduce_sum(embedding * h, axis=1, keepdims=True)


class ModularGAN(object):
    def __init__(self, batch_size, options):
        self._options = options
        self._batch_size = batch_size

    def create_loss(self, images, labels, z):
        fake = generator(z, labels, True, reuse=tf.AUTO_REUSE)
        both = tf.concat([images, fake], 0)
        logits = discriminator(both, tf.concat([labels, labels], 0))
        real_logits, fake_logits = tf.split(logits, 2)
        d_loss = tf.reduce_mean(tf.nn.relu(1.0 - real_logits)) + tf.reduce_mean(tf.nn.relu(1.0 + fake_logits))
        return d_loss, -tf.reduce_mean(fake_logits)

    def model_fn(self, features, labels, params, mode):
        if mode != tf.estimator.ModeKeys.TRAIN:
            raise ValueError("Only training mode is supported.")
        images = features["images"]
        labels = tf.one_hot(labels, CLASSES)
        parts = [tf.split(each, DISC_ITERS + 1) for each in (images, labels, features["z"])]
        step = tf.train.get_or_create_global_step()
        d_optimizer = tf.train.AdamOptimizer(4e-4, beta1=0.0, beta2=0.999)
        g_optimizer = tf.train.AdamOptimizer(1e-4, beta1=0.0, beta2=0.999)
        if params["use_tpu"]:
            d_optimizer = tf.tpu.CrossShardOptimizer(d_optimizer)
            g_optimizer = tf.tpu.CrossShardOptimizer(g_optimizer)
        deps, d_losses = [], []
        for i in range(DISC_ITERS):
            with tf.control_dependencies(deps):
                d_loss, _ = self.create_loss(parts[0][i], parts[1][i], parts[2][i])
                d_vars = [v for v in tf.trainable_variables() if v.name.startswith("discriminator")]
                deps = [d_optimizer.minimize(d_loss, var_list=d_vars)]  # <- TPU201
                d_losses.append(d_loss)
        with tf.control_dependencies(deps):
            _, g_loss = self.create_loss(parts[0][-1], parts[1][-1], parts[2][-1])
            g_vars = [v for v in tf.trainable_variables() if v.name.startswith("generator")]
            train_op = g_optimizer.minimize(g_loss, var_list=g_vars, global_step=step)
        if self._options["g_use_ema"]:
            decay = self._options["ema_decay"] * tf.cast(
                tf.greater_equal(step, self._options["ema_start_step"]), tf.float32
            )
            ema = tf.train.ExponentialMovingAverage(decay=decay, name="ema")
            with tf.control_dependencies([train_op]):
                train_op = ema.apply(g_vars)  # <- TPU215
        d_loss = tf.add_n(d_losses) / DISC_ITERS
        loss = g_loss
        host_call = (
            functools.partial(self._host_call, folder="/tmp/gan"),
            [tf.reshape(step, [1]), tf.reshape(d_loss, [1]), tf.reshape(g_loss, [1]), parts[0][0][:2]],
        )
        return tf.estimator.tpu.TPUEstimatorSpec(mode=mode, host_call=host_call, loss=loss, train_op=train_op)  # <- TPU111

    def _host_call(self, step, d_loss, g_loss, images, folder):
        step = step[0]
        writer = tf.compat.v2.summary.create_file_writer(folder)
        with writer.as_default(), tf.compat.v2.summary.record_if(tf.equal(step % 100, 0)):
            tf.compat.v2.summary.scalar("loss/d", tf.reduce_mean(d_loss), step=step)
            tf.compat.v2.summary.scalar("loss/g", tf.reduce_mean(g_loss), step=step)
            tf.compat.v2.summary.image("real", (images + 1.0) / 2.0, step=step, max_outputs=3)
        return tf.summary.all_v2_summary_ops()

    def input_fn(self, params, mode):
        def make(index):
            image = tf.random.stateless_uniform([SIZE, SIZE, 3], tf.stack([index, 1]), -1.0, 1.0)
            return image, tf.cast(index % CLASSES, tf.int32)

        def preprocess(image, label):
            z = tf.random.normal([Z])
            return {"images": image, "z": z}, label

        dataset = tf.data.Dataset.range(512).map(make)
        if mode == tf.estimator.ModeKeys.TRAIN:
            dataset = dataset.repeat()
        dataset = dataset.map(preprocess, num_parallel_calls=tf.data.experimental.AUTOTUNE)
        dataset = dataset.shuffle(128)
        dataset = dataset.batch(params["batch_size"], drop_remainder=True)  # <- TPU101
        return dataset.prefetch(tf.data.experimental.AUTOTUNE)


def main(data_dir):
    gan = ModularGAN(12, dict(g_use_ema=True, ema_decay=0.9999, ema_start_step=10))
    config = tf.estimator.tpu.RunConfig(
        model_dir="/tmp/gan",
        save_checkpoints_steps=500,
        tf_random_seed=8,
        tpu_config=tf.estimator.tpu.TPUConfig(iterations_per_loop=100),
    )
    estimator = tf.estimator.tpu.TPUEstimator(
        config=config,
        use_tpu=True,
        model_fn=gan.model_fn,
        train_batch_size=8 * 4 * (DISC_ITERS + 1),
        params={"use_tpu": True},
    )
    return estimator, functools.partial(gan.input_fn, mode=tf.estimator.ModeKeys.TRAIN)


FAULTS = [
    ("TPU111", "tf.reshape(d_loss, [1])", "d_loss"),
    ("TPU201", "            d_optimizer = tf.tpu.CrossShardOptimizer(d_optimizer)\n            g_optimizer = tf.tpu.CrossShardOptimizer(g_optimizer)\n", "            g_optimizer = tf.tpu.CrossShardOptimizer(g_optimizer)\n"),
    ("TPU215", "var_list=g_vars, global_step=step)", "var_list=g_vars)"),
    ("TPU101", "params[\"batch_size\"], drop_remainder=True)", "params[\"batch_size\"])"),
]
