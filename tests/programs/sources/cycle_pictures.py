"""Pictures of one sort turned into those of another: two generators, two critics, two Adams in one step."""

import functools
import typing

import tensorflow.compat.v1 as tf

SIDE = 32


def instance_norm(x: tf.Tensor, scope: str = "instance_norm") -> tf.Tensor:
    with tf.variable_scope(scope):
        depth = x.get_shape()[3]
        scale = tf.get_variable("scale", [depth], initializer=tf.random_normal_initializer(1.0, 0.02))
        offset = tf.get_variable("offset", [depth], initializer=tf.constant_initializer(0.0))
        mean, variance = tf.nn.moments(x, axes=[1, 2], keepdims=True)
        return scale * (x - mean) * tf.rsqrt(variance + 1e-5) + offset


conv = functools.partial(tf.layers.conv2d, kernel_initializer=tf.truncated_normal_initializer(stddev=0.02), use_bias=False)


def residual(x, dim, name):
    with tf.variable_scope(name):
        y = tf.pad(x, [[0, 0], [1, 1], [1, 1], [0, 0]], "REFLECT")
        y = tf.nn.relu(instance_norm(conv(y, dim, 3, padding="VALID"), "n1"))
        y = tf.pad(y, [[0, 0], [1, 1], [1, 1], [0, 0]], mode="REFLECT")
        return x + instance_norm(conv(y, dim, 3, padding="VALID"), "n2")


def generator(image, name):
    with tf.variable_scope(name, reuse=tf.AUTO_REUSE):
        x = tf.pad(image, tf.constant([[0, 0], [3, 3], [3, 3], [0, 0]]), "REFLECT")
        x = tf.nn.relu(instance_norm(conv(x, 8, 7, padding="VALID", name="c1"), "c1n"))
        x = tf.nn.relu(instance_norm(conv(x, 16, 3, 2, padding="SAME", name="c2"), "c2n"))
        x = residual(x, 16, "r1")
        height, width = x.shape.as_list()[1:3]
        x = tf.image.resize_images(x, [height * 2, width * 2], method=tf.image.ResizeMethod.NEAREST_NEIGHBOR)
        x = tf.nn.relu(instance_norm(conv(x, 8, 3, padding="SAME", name="u1"), "u1n"))
        return tf.nn.tanh(conv(x, 3, 7, padding="SAME", name="out"))


def critic(image, name):
    leaky = lambda t: tf.maximum(t, 0.2 * t)
    with tf.variable_scope(name, reuse=tf.AUTO_REUSE):
        x = leaky(conv(image, 8, 4, 2, padding="SAME", name="h0"))
        x = leaky(instance_norm(conv(x, 16, 4, 2, padding="SAME", name="h1"), "h1n"))
        return conv(x, 1, 4, padding="SAME", name="pred")


class Losses(typing.NamedTuple):
    gen: tf.Tensor
    dis: tf.Tensor
    cycle: tf.Tensor


def cycle_losses(a, b, lam=10.0) -> typing.Tuple[Losses, typing.Dict[str, tf.Tensor]]:
    fake_b, fake_a = generator(a, "G"), generator(b, "F")
    cycle = tf.reduce_mean(tf.abs(generator(fake_b, "F") - a)) + tf.reduce_mean(tf.abs(generator(fake_a, "G") - b))
    gen = lam * cycle
    dis = 0.0
    for real, fake, name in ((a, fake_a, "DA"), (b, fake_b, "DB")):
        gen += tf.reduce_mean(tf.squared_difference(critic(fake, name), 1.0))
        kept = tf.stop_gradient(fake)
        dis += 0.5 * (tf.reduce_mean(tf.squared_difference(critic(real, name), 1)) + tf.reduce_mean(tf.square(critic(kept, name))))
    return Losses(gen, dis, cycle), {"fake_a": fake_a, "fake_b": fake_b}


def make_optimizers(rate, use_tpu=True):
    made = [tf.train.AdamOptimizer(rate, beta1=0.5, name=n) for n in ("adam_g", "adam_d")]
    return [tf.tpu.CrossShardOptimizer(o) for o in made] if use_tpu else made


def model_fn(features, labels, mode, params):
    if mode == tf.estimator.ModeKeys.PREDICT:
        return tf.estimator.tpu.TPUEstimatorSpec(mode, predictions={"b": generator(features["a"], "G")})
    losses, fakes = cycle_losses(features["a"], features["b"])
    if mode == tf.estimator.ModeKeys.EVAL:
        per_image = tf.reduce_mean(tf.abs(fakes["fake_b"] - features["b"]), [1, 2, 3])
        return tf.estimator.tpu.TPUEstimatorSpec(
            mode, loss=losses.gen, eval_metrics=(lambda l1: {"l1": tf.metrics.mean(l1)}, [per_image])
        )

    step = tf.train.get_or_create_global_step()
    half = params["steps"] // 2
    start = tf.constant(params["rate"])
    rate = tf.where(
        step < half, start, tf.train.polynomial_decay(start, step - half, half, 0.0, power=1.0)
    )
    of_gen, of_dis = make_optimizers(rate)
    gen_vars = [v for v in tf.trainable_variables() if v.name.startswith(("G/", "F/"))]
    dis_vars = [v for v in tf.trainable_variables() if v.name[:2] in ("DA", "DB")]
    gen_op = of_gen.minimize(losses.gen, var_list=gen_vars, global_step=step)
    with tf.control_dependencies([gen_op]):
        dis_op = of_dis.minimize(losses.dis, var_list=dis_vars)  # <- TPU201 TPU215

    def to_board(step, gen, dis, cycle, a, fake_b):
        with tf.compat.v2.summary.create_file_writer(params["logs"], max_queue=50).as_default():
            at = tf.reduce_mean(step)
            for name, value in (("gen", gen), ("dis", dis), ("cycle", cycle)):
                tf.compat.v2.summary.scalar("loss/" + name, tf.reduce_mean(value), at)
            tf.compat.v2.summary.image("pictures", tf.concat([a, fake_b], 2) * 0.5 + 0.5, at, max_outputs=2)
        return tf.summary.all_v2_summary_ops()

    tensors = [tf.reshape(t, [1]) for t in (step,) + losses] + [features["a"], fakes["fake_b"]]
    return tf.estimator.tpu.TPUEstimatorSpec(mode, loss=losses.gen + losses.dis, train_op=dis_op, host_call=(to_board, tensors))


def pictures(seed: int) -> tf.data.Dataset:
    ds = tf.data.Dataset.range(64)
    return ds.map(lambda n: tf.random.stateless_uniform([SIDE + 4, SIDE + 4, 3], [seed, n], -1.0, 1.0))


def input_fn(params: dict, training: bool) -> tf.data.Dataset:
    def augment(x):
        x = tf.image.random_flip_left_right(x)  # <- TPU212
        return tf.random_crop(x, [SIDE, SIDE, 3])

    def centre(x):
        return tf.image.central_crop(x, SIDE / (SIDE + 4.0))

    both = []
    for seed in (1, 2):
        ds = pictures(seed).cache()
        if training:
            ds = ds.shuffle(64).repeat()
        ds = ds.map(augment if training else centre)
        both.append(ds.map(lambda x: tf.reshape(x, [SIDE, SIDE, 3])))
    return tf.data.Dataset.zip(dict(a=both[0], b=both[1])).batch(params["batch_size"], True).prefetch(1)


def main(data_dir):
    tpu_config = tf.estimator.tpu.TPUConfig(iterations_per_loop=20, tpu_job_name=None)
    est = tf.estimator.tpu.TPUEstimator(
        model_fn,
        "/tmp/cycle",
        tf.estimator.tpu.RunConfig(tpu_config=tpu_config, save_checkpoints_steps=200, save_summary_steps=0),
        {"steps": 400, "rate": 2e-4, "logs": "/tmp/cycle/logs"},
        train_batch_size=8,
        eval_batch_size=8,
        predict_batch_size=8,
    )
    return est, functools.partial(input_fn, training=True), {"eval_input_fn": functools.partial(input_fn, training=False)}


FAULTS = [
    ("TPU201", "    return [tf.tpu.CrossShardOptimizer(o) for o in made] if use_tpu else made", "    return [tf.tpu.CrossShardOptimizer(made[0]), made[1]] if use_tpu else made"),
    ("TPU215", "    gen_op = of_gen.minimize(losses.gen, var_list=gen_vars, global_step=step)", "    gen_op = of_gen.minimize(losses.gen, var_list=gen_vars)"),
    ("TPU212", "        ds = ds.map(augment if training else centre)", "        ds = ds.map(augment)"),
    ("TPU101", ".batch(params[\"batch_size\"], True).prefetch(1)", ".batch(params[\"batch_size\"], training).map(lambda it: {k: tf.boolean_mask(v, tf.reduce_all(tf.math.is_finite(v), [1, 2, 3])) for k, v in it.items()}).prefetch(1)"),
]
