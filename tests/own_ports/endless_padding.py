import tempfile

import numpy as np
from absl import app, flags

from lab_utils.estimator import tf, tpu, v1

flags.DEFINE_boolean("use_tpu", False, "")
flags.DEFINE_string("tpu_name", "local", "")
FLAGS = flags.FLAGS
N, HELD, B = 700, 101, 32


def make(seed, n):
    r = np.random.default_rng(seed)
    a = r.normal(size=[n, 5]).astype("f")
    return a, (a[:, :1] * a[:, 1:2] > 0).astype("f")


def train_input(params):
    d = tf.data.Dataset.from_tensor_slices(make(0, N))
    d = d.map(lambda a, b: ({"a": a, "w": tf.ones([1])}, b))
    return d.shuffle(N).repeat().batch(params["batch_size"], drop_remainder=True).prefetch(2)


def eval_input(params):
    d = tf.data.Dataset.from_tensor_slices(make(1, HELD)).map(
        lambda a, b: ({"a": a, "w": tf.ones([1])}, b)
    )
    pad = tf.data.Dataset.from_tensors(
        ({"a": tf.zeros([5]), "w": tf.zeros([1])}, tf.zeros([1]))
    ).repeat()
    return d.concatenate(pad).batch(params["batch_size"], drop_remainder=True)


def model_fn(features, labels, mode, params):
    x = v1.layers.dense(features["a"], 32, "tanh")
    z = v1.layers.dense(x, 1)
    w = features["w"]
    loss = v1.losses.sigmoid_cross_entropy(labels, z, weights=w)
    if mode == "eval":

        def m(labels, z, w):
            return {
                "acc": v1.metrics.accuracy(labels, tf.cast(z > 0, tf.float32), w),
                "mse": v1.metrics.mean_squared_error(labels, tf.sigmoid(z), w),
            }

        return tpu.TPUEstimatorSpec(
            mode, loss=loss, eval_metrics=(m, {"labels": labels, "z": z, "w": w})
        )
    o = v1.train.MomentumOptimizer(0.1, 0.9)
    if params["use_tpu"]:
        o = v1.tpu.CrossShardOptimizer(o)
    return tpu.TPUEstimatorSpec(
        mode, loss=loss, train_op=o.minimize(loss, v1.train.get_global_step())
    )


def main(argv):
    del argv
    c = None
    if FLAGS.use_tpu:
        c = tf.distribute.cluster_resolver.TPUClusterResolver(FLAGS.tpu_name)
    rc = tpu.RunConfig(
        cluster=c,
        model_dir=tempfile.mkdtemp(),
        save_checkpoints_steps=100,
        tpu_config=tpu.TPUConfig(iterations_per_loop=100),
    )
    e = tpu.TPUEstimator(
        model_fn, config=rc, use_tpu=FLAGS.use_tpu, train_batch_size=64, eval_batch_size=B
    )
    e.train(train_input, max_steps=200)
    print(e.evaluate(eval_input, steps=-(-HELD // B)))


if __name__ == "__main__":
    app.run(main)
