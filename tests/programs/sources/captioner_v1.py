"""Version 1 behaviour throughout: reference variables, version 1 loops and branches, Dimension.value."""

import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()
tf.disable_resource_variables()

WORDS, LENGTH, STATE, FEATURE = 30, 6, 12, 16


class Hyper(dict):
    def __getattr__(self, name):
        if name not in self:
            raise AttributeError(name)
        return self[name]

    def copy(self):
        return Hyper(self)


def decode(image_features, captions, hyper, is_training):
    with tf.variable_scope("decoder", initializer=tf.glorot_uniform_initializer()):
        embeddings = tf.get_variable("embeddings", [WORDS, STATE])
        kernel = tf.get_variable("kernel", [2 * STATE, STATE])
        bias = tf.get_variable("bias", [STATE], initializer=tf.zeros_initializer())
        batch = image_features.shape[0].value
        words = tf.einsum("btv,vs->tbs", tf.one_hot(captions, WORDS), embeddings)
        state = tf.layers.dense(image_features, STATE, tf.tanh)
        outputs = tf.TensorArray(tf.float32, LENGTH)
        inputs = tf.TensorArray(tf.float32, LENGTH).unstack(words)

        def body(i, state, outputs):
            both = tf.concat([inputs.read(i), state], 1)
            state = tf.tanh(tf.matmul(both, kernel) + bias)
            return [i + 1, state, outputs.write(i, state)]

        _, state, outputs = tf.while_loop(
            lambda i, *_: i < LENGTH, body, [tf.constant(0), state, outputs], maximum_iterations=LENGTH
        )
        states = outputs.stack()
        states.set_shape([LENGTH, batch, STATE])
        if is_training:
            states = tf.nn.dropout(states, keep_prob=hyper.keep)
        logits = tf.layers.dense(states, WORDS)
    return tf.transpose(logits, [1, 0, 2])


def model_fn(features, labels, mode, params):
    hyper = Hyper(params).copy()
    is_training = mode == tf.estimator.ModeKeys.TRAIN
    logits = decode(features["image"], features["words"], hyper, is_training)
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
    loss = tf.reduce_mean(losses)
    if mode == tf.estimator.ModeKeys.EVAL:

        def metric_fn(losses, labels, logits):
            return {
                "accuracy": tf.metrics.accuracy(labels, tf.argmax(logits, -1)),
                "caption_loss": tf.metrics.mean(losses),
            }

        return tf.estimator.tpu.TPUEstimatorSpec(  # <- TPU111
            mode=mode, loss=loss, eval_metrics=(metric_fn, [losses, labels, logits])
        )
    step = tf.train.get_global_step()
    rate = tf.cond(step < 100, lambda: hyper.rate, lambda: hyper.rate * 0.1)
    optimizer = tf.train.MomentumOptimizer(rate, 0.9)
    optimizer = tf.tpu.CrossShardOptimizer(optimizer)
    train_op = optimizer.minimize(loss, step)  # <- TPU201 TPU215
    return tf.estimator.tpu.TPUEstimatorSpec(mode=mode, loss=loss, train_op=train_op)


def get_input_fn(count, training):
    def input_fn(params):
        random = np.random.RandomState(0)
        images = random.randn(count, FEATURE).astype(np.float32)
        captions = random.randint(0, WORDS, [count, LENGTH + 1]).astype(np.int32)
        features = {"image": images, "words": captions[:, :-1]}
        dataset = tf.data.Dataset.from_tensor_slices((features, captions[:, 1:]))
        if training:
            dataset = dataset.shuffle(count).repeat()
        return dataset.batch(params["batch_size"], drop_remainder=True)

    return input_fn


def main(data_dir):
    config = tf.estimator.tpu.RunConfig(
        model_dir="/tmp/captions",
        tpu_config=tf.estimator.tpu.TPUConfig(iterations_per_loop=100, num_shards=8),
    )
    estimator = tf.estimator.tpu.TPUEstimator(
        model_fn,
        config=config,
        params=Hyper(keep=0.8, rate=0.1),
        train_batch_size=64,
        eval_batch_size=64,
    )
    return estimator, get_input_fn(256, True), {"eval_input_fn": get_input_fn(128, False)}


FAULTS = [
    ("TPU201", "    optimizer = tf.tpu.CrossShardOptimizer(optimizer)\n", ""),
    ("TPU215", "optimizer.minimize(loss, step)", "optimizer.minimize(loss)"),
    ("TPU101", "dataset.batch(params[\"batch_size\"], drop_remainder=True)", "dataset.batch(params[\"batch_size\"])"),
    ("TPU223", "        if is_training:\n            states = tf", "        if True:\n            states = tf"),
    ("TPU111", "[losses, labels, logits])", "[loss, labels, logits])"),
]
