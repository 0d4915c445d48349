"""A normalizing flow: invertible 1x1 convolutions in triangular parts, a learned prior, bits a dimension.

hparams in a module global; the optimizer is chosen by name from a dict; weights are averaged by hand (Polyak).
"""

import argparse

import numpy as np
import tensorflow.compat.v1 as tf

hps = argparse.Namespace(
    n_levels=2, depth=2, width=16, n_bits_x=8, image_size=8, lr=1e-3, beta1=0.9, polyak_epochs=1,
    n_train=128, optimizer="adamax", batch_train=32, batch_test=16, weight_y=0.0, learntop=True, seed=0,
)  # fmt: skip


def squeeze2d(x, factor=2):
    n, h, w, c = x.shape.as_list()
    x = tf.reshape(x, [n, h // factor, factor, w // factor, factor, c])
    x = tf.transpose(x, [0, 1, 3, 5, 2, 4])
    return tf.reshape(x, [n, h // factor, w // factor, c * factor * factor])


def actnorm(name, x, logdet):
    with tf.variable_scope(name):
        n, h, w, c = x.shape.as_list()
        b = tf.get_variable("b", [1, 1, 1, c], initializer=tf.zeros_initializer())
        logs = tf.get_variable("logs", [1, 1, 1, c], initializer=tf.zeros_initializer())
        return (x + b) * tf.exp(logs * 3.0), logdet + tf.reduce_sum(logs * 3.0) * h * w


def _decomposed(c):
    """A random rotation as a permutation, a lower and an upper matrix."""
    upper = np.linalg.qr(np.random.RandomState(hps.seed).randn(c, c))[0]
    order, lower = np.eye(c), np.eye(c)
    for i in range(c):
        pivot = i + np.argmax(np.abs(upper[i:, i]))
        for m in (upper, order):
            m[[i, pivot]] = m[[pivot, i]]
        lower[[i, pivot], :i] = lower[[pivot, i], :i]
        for j in range(i + 1, c):
            lower[j, i] = upper[j, i] / upper[i, i]
            upper[j] -= lower[j, i] * upper[i]
    return order.T, lower, upper


def invertible_1x1_conv(name, z, logdet):
    with tf.variable_scope(name):
        n, h, w, c = z.shape.as_list()
        rotation, lower, upper = (m.astype("float32") for m in _decomposed(c))
        scales = np.diag(upper)
        l_mask = np.tril(np.ones([c, c], "float32"), -1)
        l = tf.get_variable("L", initializer=lower) * l_mask + tf.eye(c)
        u = tf.get_variable("U", initializer=np.triu(upper, 1)) * l_mask.T
        log_s = tf.get_variable("log_S", initializer=np.log(np.abs(scales)))
        weight = tf.matmul(tf.constant(rotation), tf.matmul(l, u + tf.diag(tf.constant(np.sign(scales)) * tf.exp(log_s))))
        logdet += tf.reduce_sum(log_s) * h * w
        return tf.nn.conv2d(z, tf.reshape(weight, [1, 1, c, c]), [1, 1, 1, 1], "SAME"), logdet


def f(name, h, width, n_out):
    with tf.variable_scope(name):
        h = tf.nn.relu(tf.layers.conv2d(h, width, 3, padding="same", name="l_1"))
        h = tf.nn.relu(tf.layers.conv2d(h, width, 1, name="l_2"))
        return tf.layers.conv2d(h, n_out, 3, padding="same", kernel_initializer=tf.zeros_initializer(), name="l_last")


def revnet2d_step(name, z, logdet):
    with tf.variable_scope(name):
        z, logdet = actnorm("actnorm", z, logdet)
        z, logdet = invertible_1x1_conv("invconv", z, logdet)
        z1, z2 = tf.split(z, 2, axis=3)
        shift, scale = tf.unstack(tf.reshape(f("f1", z1, hps.width, 2 * int(z2.shape[-1])), z2.shape.as_list() + [2]), axis=-1)
        scale = tf.nn.sigmoid(scale + 2.0)
        z2 = (z2 + shift) * scale
        logdet += tf.reduce_sum(tf.log(scale), axis=[1, 2, 3])
        return tf.concat([z1, z2], 3), logdet


def gaussian_logp(x, mean, logsd):
    return tf.reduce_sum(-0.5 * (np.log(2 * np.pi) + 2.0 * logsd + (x - mean) ** 2 / tf.exp(2.0 * logsd)), axis=[1, 2, 3])


def encode(x):
    n_bins = 2.0**hps.n_bits_x
    z = tf.cast(x, tf.float32) / n_bins - 0.5
    z += tf.random_uniform(z.shape, 0, 1.0 / n_bins)
    objective = tf.zeros([int(x.shape[0])]) - np.log(n_bins) * np.prod(z.shape.as_list()[1:])
    for level in range(hps.n_levels):
        z = squeeze2d(z)
        for step in range(hps.depth):
            z, objective = revnet2d_step("level%d_step%d" % (level, step), z, objective)
        if level < hps.n_levels - 1:
            z, out = tf.split(z, 2, axis=3)
            mean, logsd = tf.split(f("split%d" % level, z, hps.width, 2 * int(out.shape[-1])), 2, axis=3)
            objective += gaussian_logp(out, mean, logsd)
    n, h, w, c = z.shape.as_list()
    with tf.variable_scope("prior"):
        top = tf.get_variable("h_top", [1, h, w, 2 * c], initializer=tf.zeros_initializer(), trainable=hps.learntop)
    mean, logsd = tf.split(tf.tile(top, [n, 1, 1, 1]), 2, axis=3)
    objective += gaussian_logp(z, mean, logsd)
    return z, -objective / (np.log(2.0) * np.prod(x.shape.as_list()[1:]))


def adamax(params, cost, alpha, beta1, beta2=0.999):
    grads = tf.gradients(cost, params)
    grads = [tf.tpu.cross_replica_sum(g) / replicas() for g in grads]
    updates = []
    for w, g in zip(params, grads):
        slot = w.op.name.replace("/", "_")
        mom = tf.get_variable(slot + "_adam_m", w.shape.as_list(), initializer=tf.zeros_initializer(), trainable=False)
        inf = tf.get_variable(slot + "_adam_v", w.shape.as_list(), initializer=tf.zeros_initializer(), trainable=False)
        mom_t = beta1 * mom + (1.0 - beta1) * g
        inf_t = tf.maximum(beta2 * inf, tf.abs(g) + 1e-8)
        updates += [mom.assign(mom_t), inf.assign(inf_t), w.assign_sub(alpha * mom_t / inf_t)]  # <- TPU201
    return tf.group(*updates)


def replicas():
    from tensorflow.python.tpu import tpu_function

    return tpu_function.get_tpu_context().number_of_shards or 1


optimizers = {"adamax": adamax}


def polyak(params, beta):
    updates = []
    for p in params:
        ema = tf.get_variable(p.op.name.replace("/", "_") + "_ema", p.shape.as_list(), initializer=tf.zeros_initializer(), trainable=False)
        updates.append(ema.assign(beta * ema + (1.0 - beta) * p))
    return tf.group(*updates)


def model_fn(features, labels, mode, params):
    z, bits_x = encode(features)
    loss = tf.reduce_mean(bits_x)
    if mode == "eval":
        return tf.estimator.tpu.TPUEstimatorSpec(mode, loss=loss, eval_metrics=(metrics, [bits_x, tf.norm(tf.layers.flatten(z), axis=1)]))
    lr = hps.lr * tf.minimum(1.0, tf.cast(tf.train.get_global_step(), tf.float32) / 100.0)
    step = tf.train.get_global_step()
    all_params = tf.trainable_variables()
    train_op = optimizers[hps.optimizer](all_params, loss, alpha=lr, beta1=hps.beta1)
    with tf.control_dependencies([train_op]):
        train_op = tf.group(polyak(all_params, 0.99), tf.assign_add(step, 1))
    return tf.estimator.tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)


def metrics(bits_x, norm):
    return {"bits_x": tf.metrics.mean(bits_x), "norm": tf.metrics.mean(norm)}


def get_data(is_training):
    def input_fn(params):
        x = np.random.RandomState(1).randint(0, 256, (hps.n_train, hps.image_size, hps.image_size, 3)).astype("uint8")
        y = np.zeros([hps.n_train], np.int32)
        dataset = tf.data.Dataset.from_tensor_slices((x, y))
        if is_training:
            dataset = dataset.shuffle(hps.n_train, seed=hps.seed).repeat()
        dataset = dataset.map(lambda a, b: (tf.cast(a, tf.int32), b), 4)
        return dataset.apply(tf.data.experimental.map_and_batch(lambda a, b: (a, b), params["batch_size"], drop_remainder=True))

    return input_fn


def main(data_dir):
    config = tf.estimator.tpu.RunConfig(
        tf_random_seed=hps.seed, model_dir="/tmp/glow",
        tpu_config=tf.estimator.tpu.TPUConfig(iterations_per_loop=50, per_host_input_for_training=True),
    )  # fmt: skip
    estimator = tf.estimator.tpu.TPUEstimator(model_fn, config=config, train_batch_size=hps.batch_train, eval_batch_size=hps.batch_test)
    return estimator, get_data(True), {"eval_input_fn": get_data(False)}


FAULTS = [
    ("TPU201", "    grads = [tf.tpu.cross_replica_sum(g) / replicas() for g in grads]\n", ""),
    ("TPU215", "tf.group(polyak(all_params, 0.99), tf.assign_add(step, 1))", "tf.group(polyak(all_params, 0.99))"),
    ("TPU101", "params[\"batch_size\"], drop_remainder=True))", "params[\"batch_size\"]))"),
    ("TPU202", "        logdet += tf.reduce_sum(log_s) * h * w\n", "        logdet += tf.log(tf.abs(tf.matrix_determinant(weight))) * h * w\n"),
    ("TPU120", "(tf.cast(a, tf.int32), b), 4)", "(tf.cast(a, tf.int16), b), 4)"),
    ("TPU126", "TPUEstimatorSpec(mode, loss=loss, train_op=train_op)", "TPUEstimatorSpec(mode, train_op=train_op)"),
]
