"""A language model whose feed-forward parts are experts: two for a token, sent there by einsums; Adafactor."""
import functools

import numpy as np
import tensorflow.compat.v1 as tf

VOCAB, LENGTH, WIDTH, EXPERTS, HIDDEN = 96, 16, 16, 4, 32
GROUPS_OF = 2  # examples that share an expert's room


def cumsum_exclusive(x, axis):
    return tf.math.cumsum(x, axis=axis, exclusive=True)


def top_2_gating(inputs, experts, capacity, training, policy="random"):
    """inputs [groups, tokens, width]; combine and dispatch are [groups, tokens, experts, capacity]."""
    w = tf.get_variable("gate", [WIDTH, experts], initializer=tf.random_normal_initializer(stddev=WIDTH ** -0.5))
    raw = tf.nn.softmax(tf.einsum("gsm,me->gse", inputs, w))
    index_1 = tf.argmax(raw, -1)
    mask_1 = tf.one_hot(index_1, experts, dtype=raw.dtype)
    gate_1 = tf.reduce_sum(raw * mask_1, -1)
    rest = raw * (1.0 - mask_1)
    index_2 = tf.argmax(rest, -1)
    mask_2 = tf.one_hot(index_2, experts, dtype=raw.dtype)
    gate_2 = tf.reduce_sum(rest * mask_2, -1)
    denom = gate_1 + gate_2 + 1e-9
    gate_1, gate_2 = gate_1 / denom, gate_2 / denom

    density = tf.reduce_mean(mask_1, 1)
    proxy = tf.reduce_mean(raw, 1)
    aux = tf.reduce_mean(density * proxy) * experts * experts

    if training and policy == "random":
        keep = tf.less(tf.random.uniform(tf.shape(gate_2)), gate_2 / 0.2)
        mask_2 *= tf.cast(keep, mask_2.dtype)[..., None]

    position_1 = cumsum_exclusive(mask_1, 1) * mask_1
    mask_1 *= tf.cast(tf.less(position_1, capacity), mask_1.dtype)
    count_1 = tf.reduce_sum(mask_1, 1, keepdims=True)
    position_2 = (cumsum_exclusive(mask_2, 1) + count_1) * mask_2
    mask_2 *= tf.cast(tf.less(position_2, capacity), mask_2.dtype)

    combine = 0.0
    for gate, mask, position in ((gate_1, mask_1, position_1), (gate_2, mask_2, position_2)):
        flat = tf.reduce_sum(mask, -1)
        where = tf.one_hot(tf.cast(tf.reduce_sum(position, -1), tf.int32), capacity)
        combine += (gate * flat)[..., None, None] * mask[..., None] * where[:, :, None, :]
    return combine, tf.cast(tf.cast(combine, tf.bool), tf.float32), aux


def experts_layer(x, name, training):
    with tf.variable_scope(name):
        shape = x.shape.as_list()
        tokens = tf.reshape(x, [-1, GROUPS_OF * LENGTH, WIDTH])
        capacity = max(4, int(GROUPS_OF * LENGTH * 2.0 / EXPERTS))
        combine, dispatch, aux = top_2_gating(tokens, EXPERTS, capacity, training)
        glorot = tf.glorot_uniform_initializer()
        w_in = tf.get_variable("wi", [EXPERTS, WIDTH, HIDDEN], initializer=glorot)
        w_out = tf.get_variable("wo", [EXPERTS, HIDDEN, WIDTH], initializer=glorot)
        sent = tf.einsum("gsec,gsm->egcm", dispatch, tokens)
        hidden = tf.nn.relu(tf.einsum("egcm,emh->egch", sent, w_in))
        back = tf.einsum("egch,ehm->egcm", hidden, w_out)
        out = tf.einsum("gsec,egcm->gsm", combine, back)
        return tf.reshape(out, shape), aux


def rms_norm(x, name):
    scale = tf.get_variable(name, [x.shape[-1]], initializer=tf.ones_initializer())
    return x * tf.math.rsqrt(tf.reduce_mean(tf.square(x), -1, keepdims=True) + 1e-6) * scale


def attention(x, name):
    with tf.variable_scope(name):
        qkv = tf.get_variable("qkv", [3, WIDTH, 2, WIDTH // 2], initializer=tf.glorot_normal_initializer())
        q, k, v = tf.unstack(tf.einsum("btd,cdhk->cbthk", x, qkv))
        logits = tf.einsum("bqhd,bkhd->bhqk", q, k) * (WIDTH // 2) ** -0.5
        causal = tf.linalg.band_part(tf.ones([LENGTH, LENGTH]), -1, 0)
        logits = tf.where(tf.broadcast_to(causal > 0, logits.shape), logits, tf.fill(logits.shape, -1e9))
        o = tf.get_variable("o", [2, WIDTH // 2, WIDTH], initializer=tf.glorot_normal_initializer())
        return tf.einsum("bqhd,hdo->bqo", tf.einsum("bhqk,bkhd->bqhd", tf.nn.softmax(logits), v), o)


class Adafactor(tf.train.Optimizer):
    """Second moments of a matrix as those of its rows and columns."""

    def __init__(self, rate, decay=0.8, clip=1.0):
        super().__init__(use_locking=False, name="Adafactor")
        self.rate, self.decay, self.clip = rate, decay, clip

    def _factored(self, shape):
        return len(shape) >= 2

    def _create_slots(self, var_list):
        for var in var_list:
            shape = var.shape.as_list()
            if self._factored(shape):
                self._get_or_make_slot(var, tf.zeros(shape[:-1]), "vr", self._name)
                self._get_or_make_slot(var, tf.zeros(shape[:-2] + shape[-1:]), "vc", self._name)
            else:
                self._get_or_make_slot(var, tf.zeros(shape), "v", self._name)

    def _resource_apply_dense(self, grad, var):
        squared = tf.square(grad) + 1e-30
        step = tf.cast(tf.train.get_or_create_global_step(), tf.float32) + 1.0
        decay = 1.0 - tf.pow(step, -self.decay)
        updates = []
        if self._factored(var.shape.as_list()):
            vr, vc = self.get_slot(var, "vr"), self.get_slot(var, "vc")
            new_r = decay * vr + (1.0 - decay) * tf.reduce_mean(squared, -1)
            new_c = decay * vc + (1.0 - decay) * tf.reduce_mean(squared, -2)
            updates += [vr.assign(new_r), vc.assign(new_c)]
            long_mean = tf.reduce_mean(new_r, -1, keepdims=True)
            x = grad * tf.math.rsqrt(new_r / long_mean)[..., None] * tf.math.rsqrt(new_c)[..., None, :]
        else:
            v = self.get_slot(var, "v")
            new_v = decay * v + (1.0 - decay) * squared
            updates.append(v.assign(new_v))
            x = grad * tf.math.rsqrt(new_v)
        x /= tf.maximum(1.0, tf.sqrt(tf.reduce_mean(tf.square(x))) / self.clip)
        return tf.group(var.assign_sub(self.rate * x), *updates)

    _resource_apply_sparse = None


def lm(features, mode):
    training = mode == "train"
    table = tf.get_variable("table", [VOCAB, WIDTH], initializer=tf.random_normal_initializer())
    x = tf.gather(table, features["inputs"]) * WIDTH ** 0.5
    x += tf.get_variable("positions", [1, LENGTH, WIDTH], initializer=tf.zeros_initializer())
    losses = []
    for n in range(2):
        x += attention(rms_norm(x, "norm_a%d" % n), "attention%d" % n)
        y, aux = experts_layer(rms_norm(x, "norm_m%d" % n), "moe%d" % n, training)
        losses.append(aux)
        if training:
            y = tf.nn.dropout(y, rate=0.1, noise_shape=[y.shape[0], 1, WIDTH])
        x += y
    return tf.einsum("btd,vd->btv", rms_norm(x, "norm"), table) * WIDTH ** -0.5, 1e-2 * tf.add_n(losses)


def moe_model(features, mode, params, config, labels=None):
    del config
    logits, extra = lm(features, mode)
    targets = features["targets"] if labels is None else labels
    weights = tf.to_float(tf.not_equal(targets, 0))
    xent = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=targets, logits=logits)
    z = tf.reduce_logsumexp(logits, -1)
    xent += 1e-4 * tf.square(z)
    loss = tf.reduce_sum(xent * weights) / tf.maximum(tf.reduce_sum(weights), 1.0) + extra
    if mode == "train":
        step = tf.train.get_or_create_global_step()
        rate = params["rate"] * tf.rsqrt(tf.maximum(tf.cast(step, tf.float32), 100.0))
        opt = tf.tpu.CrossShardOptimizer(Adafactor(rate))
        return tf.estimator.tpu.TPUEstimatorSpec(mode, loss=loss, train_op=opt.minimize(loss, step))  # <- TPU201
    if mode == "eval":
        def metrics(xent, weights, logits, targets):
            return dict(
                log_ppl=tf.metrics.mean(xent, weights),
                acc=tf.metrics.accuracy(targets, tf.argmax(logits, -1, output_type=tf.int32), weights),
            )
        return tf.estimator.tpu.TPUEstimatorSpec(mode, loss=loss, eval_metrics=(metrics, dict(xent=xent, weights=weights, logits=logits, targets=targets)))
    raise ValueError("mode %s" % mode)


def packed(mode, params):
    rows = np.random.RandomState(3).randint(1, VOCAB, (2048, LENGTH + 1)).astype(np.int32)
    rows[:, -3:] *= np.random.RandomState(4).randint(0, 2, (2048, 1))
    d = tf.data.Dataset.from_tensor_slices(rows)
    if mode == "train":
        d = d.repeat().shuffle(2048)
    d = d.map(lambda row: {"inputs": row[:-1], "targets": row[1:]}, num_parallel_calls=tf.data.AUTOTUNE)
    return d.padded_batch(params["batch_size"], {"inputs": [LENGTH], "targets": [LENGTH]}, drop_remainder=True)


def main(data_dir):
    run = tf.estimator.tpu.RunConfig(model_dir="/tmp/moe", tf_random_seed=1,
                                     tpu_config=tf.estimator.tpu.TPUConfig(iterations_per_loop=10),
                                     save_checkpoints_secs=None, save_checkpoints_steps=100)
    est = tf.estimator.tpu.TPUEstimator(moe_model, None, run, {"rate": 0.3}, True, 32, 32)
    return est, functools.partial(packed, "train"), {"eval_input_fn": functools.partial(packed, "eval")}


FAULTS = [
    ("TPU102", "    return d.padded_batch(params[\"batch_size\"], {\"inputs\": [LENGTH], \"targets\": [LENGTH]}, drop_remainder=True)", "    d = d.map(lambda it: {k: tf.boolean_mask(v, v < VOCAB) for k, v in it.items()})\n    return d.padded_batch(params[\"batch_size\"], {\"inputs\": [None], \"targets\": [None]}, drop_remainder=True)"),
    ("TPU201", "opt = tf.tpu.CrossShardOptimizer(Adafactor(rate))", "opt = Adafactor(rate)"),
    ("TPU112", "        def metrics(xent, weights, logits, targets):", "        def metrics(xent, weight, logits, targets):"),
]
