"""Encoder and decoder trained on packed text, Adafactor written by hand, decoding step by step in prediction.

The dataset holds features alone, model_fn has no labels, and positions and segments keep packed texts apart.
"""

import collections

import numpy as np
import tensorflow.compat.v1 as tf

VOCAB, LENGTH, MODEL, HEADS, FF = 40, 16, 32, 2, 64

Attention = collections.namedtuple("Attention", ["q", "k", "v", "o"])


def get_variable(name, shape, dtype=tf.bfloat16):
    scale = 1.0 / np.sqrt(shape[0])
    var = tf.get_variable(name, shape, tf.float32, tf.random_normal_initializer(stddev=scale))
    return tf.cast(var, dtype)


def rms_norm(x, name):
    scale = tf.get_variable(name + "_scale", [MODEL], tf.float32, tf.ones_initializer())
    wide = tf.cast(x, tf.float32)
    wide *= tf.rsqrt(tf.reduce_mean(tf.square(wide), -1, keepdims=True) + 1e-6)
    return tf.cast(wide * scale, x.dtype)


def attention(x, memory, bias, name):
    with tf.variable_scope(name):
        w = Attention(*[get_variable(each, [MODEL, HEADS, MODEL // HEADS]) for each in Attention._fields])
        q = tf.einsum("blm,mhd->bhld", x, w.q)
        k = tf.einsum("blm,mhd->bhld", memory, w.k)
        v = tf.einsum("blm,mhd->bhld", memory, w.v)
        logits = tf.cast(tf.einsum("bhqd,bhkd->bhqk", q, k), tf.float32) + bias
        weights = tf.cast(tf.nn.softmax(logits), x.dtype)
        return tf.einsum("bhqd,mhd->bqm", tf.einsum("bhqk,bhkd->bhqd", weights, v), w.o)


def feed_forward(x, rate, name):
    with tf.variable_scope(name):
        h = tf.nn.relu(tf.einsum("blm,mf->blf", x, get_variable("wi", [MODEL, FF])))
        if rate:
            h = tf.nn.dropout(h, rate=rate, noise_shape=[h.shape[0], 1, h.shape[2]])
        return tf.einsum("blf,fm->blm", h, get_variable("wo", [FF, MODEL]))


def relative_bias(length, causal):
    context = tf.range(length)[:, None]
    distance = tf.minimum(tf.abs(context - tf.range(length)[None, :]), 7)
    table = tf.get_variable("relative_attention_bias", [8, HEADS])
    bias = tf.transpose(tf.gather(table, distance), [2, 0, 1])[None]
    if causal:
        bias += tf.cast(tf.linalg.band_part(tf.ones([length, length]), -1, 0) - 1.0, tf.float32) * 1e9
    return bias


def encode(table, features, rate):
    with tf.variable_scope("encoder", reuse=tf.AUTO_REUSE):
        segments = features["inputs_segmentation"]
        same = tf.equal(segments[:, None, :, None], segments[:, None, None, :])
        bias = relative_bias(LENGTH, False) + tf.where(same, tf.zeros_like(same, tf.float32), tf.cast(same, tf.float32) - 1e9)
        x = tf.gather(table, features["inputs"])
        x += attention(rms_norm(x, "n1"), rms_norm(x, "n1b"), bias, "self")
        return x + feed_forward(rms_norm(x, "n2"), rate, "ff")


def decode(table, ids, memory, cross, rate):
    with tf.variable_scope("decoder", reuse=tf.AUTO_REUSE):
        x = tf.gather(table, ids)
        n = rms_norm(x, "n1")
        x += attention(n, n, relative_bias(LENGTH, True), "self")
        x += attention(rms_norm(x, "n2"), memory, cross, "cross")
        x += feed_forward(rms_norm(x, "n3"), rate, "ff")
        x = tf.cast(rms_norm(x, "n4"), tf.float32) * MODEL**-0.5
        return tf.einsum("blm,vm->blv", x, tf.cast(table, tf.float32))


class Adafactor(tf.train.Optimizer):
    """Second moments of matrices as a row and a column; no first moment."""

    def __init__(self, learning_rate, decay, clip=1.0, use_locking=False, name="Adafactor"):
        super(Adafactor, self).__init__(use_locking, name)
        self._rate, self._decay, self._clip = learning_rate, decay, clip

    def _factored(self, shape):
        return len(shape) >= 2

    def _create_slots(self, var_list):
        for var in var_list:
            shape = var.get_shape().as_list()
            if self._factored(shape):
                self._get_or_make_slot(var, tf.zeros(shape[:-1]), "vr", self._name)
                self._get_or_make_slot(var, tf.zeros(shape[:-2] + shape[-1:]), "vc", self._name)
            else:
                self._get_or_make_slot(var, tf.zeros(shape), "v", self._name)

    def _apply_dense(self, grad, var):
        return self._resource_apply_dense(grad, var)

    def _resource_apply_dense(self, grad, handle):
        var, updates = handle, []
        squared = tf.square(tf.to_float(grad)) + 1e-30
        step_rate, mixing = self._rate, 1.0 - self._decay
        if self._factored(var.shape.as_list()):
            vr, vc = self.get_slot(var, "vr"), self.get_slot(var, "vc")
            new_vr = self._decay * vr + mixing * tf.reduce_mean(squared, -1)
            new_vc = self._decay * vc + mixing * tf.reduce_mean(squared, -2)
            updates = [tf.assign(vr, new_vr), tf.assign(vc, new_vc)]
            mean = tf.reduce_mean(new_vr, -1, keepdims=True)
            x = grad * tf.expand_dims(tf.rsqrt(new_vr / mean), -1) * tf.expand_dims(tf.rsqrt(new_vc), -2)
        else:
            v = self.get_slot(var, "v")
            new_v = self._decay * v + mixing * squared
            updates = [tf.assign(v, new_v)]
            x = grad * tf.rsqrt(new_v)
        x /= tf.maximum(1.0, tf.sqrt(tf.reduce_mean(tf.square(x))) / self._clip)
        return tf.group(tf.assign_sub(var, step_rate * x), *updates)

    def _resource_apply_sparse(self, grad, handle, indices):
        return self._resource_apply_dense(
            tf.convert_to_tensor(tf.IndexedSlices(grad, indices, tf.shape(handle))), handle
        )


def model_fn(features, mode, params, config):
    rate = 0.1 if mode == tf.estimator.ModeKeys.TRAIN else 0.0
    with tf.variable_scope("shared"):
        table = get_variable("embedding", [VOCAB, MODEL])
    features = {key: tf.cast(value, tf.int32) for key, value in features.items()}
    memory = encode(table, features, rate)
    inside = tf.cast(tf.equal(features["inputs"], 0), tf.float32)[:, None, None, :] * -1e9
    if mode == tf.estimator.ModeKeys.PREDICT:
        batch = memory.shape[0]

        def body(i, ids):
            logits = decode(table, ids, memory, inside, 0.0)
            best = tf.argmax(logits, -1, output_type=tf.int32)
            here = tf.one_hot(i, LENGTH, on_value=True, off_value=False)
            shifted = tf.concat([tf.zeros([batch, 1], tf.int32), best[:, :-1]], 1)
            return i + 1, tf.where(tf.tile(here[None], [batch, 1]), shifted, ids)

        _, ids = tf.while_loop(
            lambda i, ids: tf.logical_and(i < LENGTH, tf.reduce_any(tf.not_equal(ids, 1))),
            body,
            [tf.constant(1), tf.zeros([batch, LENGTH], tf.int32)],
        )
        return tf.estimator.tpu.TPUEstimatorSpec(mode, predictions={"inputs": features["inputs"], "outputs": ids})
    targets = features["targets"]
    shifted = tf.pad(targets, [[0, 0], [1, 0]])[:, :-1]
    starts = tf.equal(features["targets_position"], 0)
    shifted = tf.where(starts, tf.zeros_like(shifted), shifted)
    other = tf.not_equal(features["targets_segmentation"][:, :, None], features["inputs_segmentation"][:, None, :])
    logits = decode(table, shifted, memory, tf.cast(other, tf.float32)[:, None] * -1e9 + inside, rate)
    xent = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=targets, logits=logits)
    z_loss = 1e-4 * tf.square(tf.reduce_logsumexp(logits, -1))
    weights = tf.cast(targets > 0, tf.float32)
    loss = tf.reduce_sum((xent + z_loss) * weights) / (params["batch_size"] * LENGTH)
    if mode == tf.estimator.ModeKeys.EVAL:

        def eval_metrics(logits, targets, weights):
            hits = tf.equal(tf.argmax(logits, -1, output_type=tf.int32), targets)
            sequence = tf.reduce_all(tf.logical_or(hits, tf.equal(weights, 0)), -1)
            return {
                "token_accuracy": tf.metrics.mean(tf.cast(hits, tf.float32), weights),
                "sequence_accuracy": tf.metrics.mean(tf.cast(sequence, tf.float32)),
            }

        return tf.estimator.tpu.TPUEstimatorSpec(  # <- TPU112
            mode, loss=loss, eval_metrics=(eval_metrics, (logits, targets, weights))
        )
    step = tf.cast(tf.train.get_or_create_global_step(), tf.float32)
    learning_rate = tf.minimum(1e-2, tf.rsqrt(tf.maximum(step, 10.0)))
    decay = 1.0 - tf.pow(step + 1.0, -0.8)
    optimizer = Adafactor(learning_rate, decay)
    optimizer = tf.tpu.CrossShardOptimizer(optimizer)
    grads = optimizer.compute_gradients(loss)
    train_op = optimizer.apply_gradients(grads, tf.train.get_global_step())  # <- TPU201, TPU215
    return tf.estimator.tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)


def packed(is_training):
    def text(index):
        size = 2 + tf.cast(index % 6, tf.int32)
        ids = tf.random.stateless_uniform([size], tf.stack([index, 3]), 2, VOCAB, tf.int32)  # <- TPU102
        return {"inputs": ids, "targets": tf.concat([ids[::-1], [1]], 0)}

    def pack(first, second):
        out = {}
        for key in ("inputs", "targets"):
            a, b = first[key], second[key]
            ids = tf.concat([a, b], 0)
            segments = tf.concat([tf.ones_like(a), 2 * tf.ones_like(b)], 0)
            places = tf.concat([tf.range(tf.size(a)), tf.range(tf.size(b))], 0)
            for name, value in ((key, ids), (key + "_segmentation", segments), (key + "_position", places)):
                out[name] = value
        return out

    def trim_and_pad(features):
        return {
            key: tf.ensure_shape(tf.pad(value[:LENGTH], [[0, LENGTH - tf.size(value[:LENGTH])]]), [LENGTH])
            for key, value in features.items()
        }

    def input_fn(params):
        singles = tf.data.Dataset.range(300).map(text)
        if is_training:
            singles = singles.repeat().shuffle(100)
        dataset = tf.data.Dataset.zip((singles, singles.skip(1))).map(pack)
        dataset = dataset.map(trim_and_pad, num_parallel_calls=tf.data.experimental.AUTOTUNE)
        dataset = dataset.batch(params["batch_size"], drop_remainder=True)
        return dataset.prefetch(tf.data.experimental.AUTOTUNE)

    return input_fn


def main(data_dir):
    config = tf.estimator.tpu.RunConfig(
        model_dir="/tmp/text_to_text",
        save_checkpoints_steps=100,
        tpu_config=tf.estimator.tpu.TPUConfig(iterations_per_loop=100, num_cores_per_replica=1),
    )
    estimator = tf.estimator.tpu.TPUEstimator(
        model_fn=model_fn,
        config=config,
        train_batch_size=32,
        eval_batch_size=32,
        predict_batch_size=32,
    )
    return estimator, packed(True), {"eval_input_fn": packed(False), "predict_input_fn": packed(False)}


FAULTS = [
    ("TPU102", "tf.ensure_shape(tf.pad(value[:LENGTH], [[0, LENGTH - tf.size(value[:LENGTH])]]), [LENGTH])", "tf.pad(value[:LENGTH], [[0, LENGTH - tf.size(value[:LENGTH])]])"),
    ("TPU201", "    optimizer = tf.tpu.CrossShardOptimizer(optimizer)\n", ""),
    ("TPU215", "apply_gradients(grads, tf.train.get_global_step())", "apply_gradients(grads)"),
    ("TPU112", "eval_metrics=(eval_metrics, (logits, targets, weights))", "eval_metrics=(eval_metrics, (logits, targets))"),
]
