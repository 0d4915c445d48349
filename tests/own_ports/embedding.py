import sys
import tempfile

import numpy as np

from lab_utils.estimator import tf, tpu, v1

ON_TPU = any(a.startswith("--use_tpu") and not a.endswith("False") for a in sys.argv[1:])
rng = np.random.RandomState(0)
words = rng.randint(0, 50, [1000, 12]).astype(np.int32)
good = (words < 10).sum(1) > 2
good = good.astype(np.int32)


def data(first, last, repeat):
    def input_fn(params):
        ds = tf.data.Dataset.range(first, last).map(
            lambda i: (tf.gather(tf.constant(words), i), tf.gather(tf.constant(good), i))
        )
        if repeat:
            ds = ds.shuffle(900).repeat()
        return ds.batch(params["batch_size"], drop_remainder=True)

    return input_fn


def model_fn(features, labels, mode, config, params):
    table = v1.get_variable("table", [50, 8])
    net = tf.reduce_mean(tf.gather(table, features), axis=1)
    logits = v1.layers.dense(net, 1)[:, 0]
    each = tf.nn.sigmoid_cross_entropy_with_logits(
        labels=tf.cast(labels, tf.float32), logits=logits
    )
    loss = tf.reduce_mean(each)
    if mode == tf.estimator.ModeKeys.TRAIN:
        opt = v1.train.AdagradOptimizer(params["rate"])
        if params["use_tpu"]:
            opt = v1.tpu.CrossShardOptimizer(opt)
        return tpu.TPUEstimatorSpec(
            mode=mode,
            loss=loss,
            train_op=opt.minimize(loss, global_step=v1.train.get_or_create_global_step()),
        )
    return tpu.TPUEstimatorSpec(
        mode=mode,
        loss=loss,
        eval_metrics=(
            lambda y, z, e: {"auc": v1.metrics.auc(y, tf.sigmoid(z)), "loss2": v1.metrics.mean(e)},
            (labels, logits, each),
        ),
    )


kwargs = dict(model_dir=tempfile.mkdtemp(), tpu_config=tpu.TPUConfig(iterations_per_loop=25))
if ON_TPU:
    kwargs["cluster"] = tf.distribute.cluster_resolver.TPUClusterResolver(tpu="local")
e = tpu.TPUEstimator(
    model_fn=model_fn,
    config=tpu.RunConfig(**kwargs),
    use_tpu=ON_TPU,
    train_batch_size=64,
    eval_batch_size=40,
    params={"rate": 0.5},
)
for _ in range(2):
    e.train(data(0, 800, True), steps=50)
print(e.evaluate(data(800, 1000, False), steps=5))
