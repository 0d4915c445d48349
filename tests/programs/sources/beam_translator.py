"""Translation: encoder, decoder, and a beam search of fixed length for predictions (keys and values are kept)."""
import collections

import numpy as np
import tensorflow as tf

v1 = tf.compat.v1
INF = 1e7
State = collections.namedtuple("State", "i alive_seq alive_log cache_k cache_v done_seq done_score done_flags")


class Hyper(dict):
    __getattr__ = dict.__getitem__


HP = Hyper(vocab=40, width=16, heads=2, layers=1, source=10, target=8, beam=3, alpha=0.6, eos=1, dropout=0.1, rate=2.0, warmup=400)


def dense(x, units, name, use_bias=False, act=None):
    return v1.layers.dense(x, units, use_bias=use_bias, name=name, activation=act)


def norm(x, name):
    with v1.variable_scope(name, reuse=v1.AUTO_REUSE):
        s = v1.get_variable("scale", [HP.width], initializer=v1.ones_initializer())
        b = v1.get_variable("bias", [HP.width], initializer=v1.zeros_initializer())
    m = tf.reduce_mean(x, [-1], keepdims=True)
    return (x - m) * tf.math.rsqrt(tf.reduce_mean((x - m) ** 2, [-1], True) + 1e-6) * s + b


def split(x):
    return tf.transpose(tf.reshape(x, [x.shape[0], -1, HP.heads, HP.width // HP.heads]), [0, 2, 1, 3])


def attend(q, k, v, bias):
    weights = tf.nn.softmax(tf.matmul(q, k, transpose_b=True) * (HP.width // HP.heads) ** -0.5 + bias)
    out = tf.transpose(tf.matmul(weights, v), [0, 2, 1, 3])
    return tf.reshape(out, [out.shape[0], -1, HP.width])


def signal(length):
    position = np.arange(length)[:, None] / 1e4 ** (np.arange(HP.width // 2) / (HP.width // 2))[None]
    return tf.constant(np.concatenate([np.sin(position), np.cos(position)], 1), tf.float32)


class Translator:
    def __init__(self, training):
        self.training = training

    def table(self):
        with v1.variable_scope("shared", reuse=v1.AUTO_REUSE):
            return v1.get_variable("table", [HP.vocab, HP.width], initializer=v1.random_normal_initializer(0.0, HP.width**-0.5))

    def drop(self, x):
        return tf.nn.dropout(x, HP.dropout) if self.training else x

    def embed(self, ids):
        x = tf.gather(self.table(), ids)
        return x * tf.cast(tf.not_equal(ids, 0), tf.float32)[..., None] * HP.width**0.5

    def encode(self, ids):
        with v1.variable_scope("encoder", reuse=v1.AUTO_REUSE):
            bias = tf.cast(tf.equal(ids, 0), tf.float32)[:, None, None] * -1e9
            x = self.drop(self.embed(ids) + signal(HP.source))
            y = norm(x, "ln0")
            x += self.drop(dense(attend(split(dense(y, HP.width, "q")), split(dense(y, HP.width, "k")), split(dense(y, HP.width, "v")), bias), HP.width, "o"))
            x += self.drop(dense(dense(norm(x, "ln1"), 32, "f1", True, tf.nn.relu), HP.width, "f2", True))
            return norm(x, "ln2"), bias

    def decode(self, x, encoded, bias, self_bias, cache=None, i=None):
        """x [batch, length, width]; with a cache a single position, and (keys, values) come back."""
        with v1.variable_scope("decoder", reuse=v1.AUTO_REUSE):
            y = norm(x, "ln0")
            q, k, v = (split(dense(y, HP.width, n)) for n in "qkv")
            if cache is not None:
                here = tf.one_hot(i, HP.target)[None, None, :, None]
                k, v = cache[0] + here * k, cache[1] + here * v
            x += self.drop(dense(attend(q, k, v, self_bias), HP.width, "o"))
            y = norm(x, "ln1")
            x += dense(attend(split(dense(y, HP.width, "cq")), split(dense(encoded, HP.width, "ck")), split(dense(encoded, HP.width, "cv")), bias), HP.width, "co")
            x += self.drop(dense(dense(norm(x, "ln2"), 32, "f1", True, tf.nn.relu), HP.width, "f2", True))
            return tf.einsum("btd,vd->btv", norm(x, "ln3"), self.table()), k, v

    def teach(self, inputs, targets):
        encoded, bias = self.encode(inputs)
        shifted = tf.pad(self.embed(targets), [[0, 0], [1, 0], [0, 0]])[:, :-1]
        self_bias = (1.0 - tf.linalg.band_part(tf.ones([HP.target, HP.target]), -1, 0)) * -1e9
        return self.decode(self.drop(shifted + signal(HP.target)), encoded, bias, self_bias)[0]

    def search(self, inputs):
        batch = inputs.shape[0]
        beams, vocab = HP.beam, HP.vocab
        encoded, bias = self.encode(inputs)
        encoded, bias = (tf.repeat(t, beams, 0) for t in (encoded, bias))
        shape = [batch * beams, HP.heads, HP.target, HP.width // HP.heads]
        start = State(
            tf.constant(0),
            tf.zeros([batch, beams, HP.target], tf.int32),
            tf.tile(tf.constant([[0.0] + [-INF] * (beams - 1)]), [batch, 1]),
            tf.zeros(shape),
            tf.zeros(shape),
            tf.zeros([batch, beams, HP.target], tf.int32),
            tf.fill([batch, beams], -INF),
            tf.zeros([batch, beams], tf.bool),
        )

        def keep_going(s):
            best = s.alive_log[:, 0] / tf.pow((5.0 + HP.target) / 6.0, HP.alpha)
            worst = tf.reduce_min(s.done_score + (1.0 - tf.cast(s.done_flags, tf.float32)) * -INF, 1)
            return tf.logical_and(s.i < HP.target, tf.logical_not(tf.reduce_all(worst > best)))

        def body(s):
            last = tf.gather(s.alive_seq, tf.maximum(s.i - 1, 0), axis=2)
            last = tf.where(s.i > 0, last, tf.zeros_like(last))
            x = self.embed(tf.reshape(last, [-1, 1])) + tf.gather(signal(HP.target), s.i)
            self_bias = tf.cast(tf.range(HP.target) > s.i, tf.float32) * -1e9
            logits, k, v = self.decode(x, encoded, bias, self_bias, (s.cache_k, s.cache_v), s.i)
            log = tf.nn.log_softmax(tf.reshape(logits, [batch, beams, vocab])) + s.alive_log[..., None]
            top, flat = tf.nn.top_k(tf.reshape(log, [batch, beams * vocab]), 2 * beams)
            which, word = flat // vocab, flat % vocab
            seq = tf.gather(s.alive_seq, which, batch_dims=1)
            seq += word[..., None] * tf.one_hot(s.i, HP.target, dtype=tf.int32)
            ended = tf.equal(word, HP.eos)
            _, chosen = tf.nn.top_k(top + tf.cast(ended, tf.float32) * -INF, beams)
            pick = lambda t: tf.gather(t, chosen, batch_dims=1)
            rows = tf.reshape(tf.range(batch)[:, None] * beams + pick(which), [-1])
            score = top / tf.pow((6.0 + tf.cast(s.i, tf.float32)) / 6.0, HP.alpha) + (1.0 - tf.cast(ended, tf.float32)) * -INF
            score = tf.concat([s.done_score, score], 1)
            best_score, best = tf.nn.top_k(score, beams)
            done_seq = tf.gather(tf.concat([s.done_seq, seq], 1), best, batch_dims=1)
            done_flags = tf.gather(tf.concat([s.done_flags, ended], 1), best, batch_dims=1)
            return [State(s.i + 1, pick(seq), pick(top), tf.gather(k, rows), tf.gather(v, rows), done_seq, best_score, done_flags)]

        [final] = tf.while_loop(lambda s: keep_going(s), body, [start], maximum_iterations=HP.target)
        any_done = tf.reduce_any(final.done_flags, 1)
        return {
            "outputs": tf.where(any_done[:, None], final.done_seq[:, 0], final.alive_seq[:, 0]),
            "scores": tf.where(any_done, final.done_score[:, 0], final.alive_log[:, 0]),
        }


def smoothed(logits, targets):
    high, low = 0.9, 0.1 / (HP.vocab - 1)
    soft = tf.one_hot(targets, HP.vocab, high, low)
    normalizing = -(high * np.log(high) + (HP.vocab - 1) * low * np.log(low + 1e-20))
    losses = tf.nn.softmax_cross_entropy_with_logits(soft, logits) - normalizing
    weights = tf.cast(targets > 0, tf.float32)
    return losses * weights, weights


def model_fn(features, labels, mode, params):
    net = Translator(mode == v1.estimator.ModeKeys.TRAIN)
    if mode == v1.estimator.ModeKeys.PREDICT:
        predictions = net.search(features["inputs"])
        predictions["inputs"] = features["inputs"]
        return v1.estimator.tpu.TPUEstimatorSpec(mode, predictions=predictions)
    logits = net.teach(features["inputs"], labels)
    losses, weights = smoothed(logits, labels)
    loss = tf.reduce_mean(tf.reduce_sum(losses, 1) / tf.reduce_sum(weights, 1))
    if mode == v1.estimator.ModeKeys.EVAL:
        def metric_fn(losses, weights, hits):
            return {"neg_log_perplexity": v1.metrics.mean(-losses, weights), "accuracy": v1.metrics.mean(hits, weights)}

        hits = tf.cast(tf.equal(tf.argmax(logits, -1, tf.int32), labels), tf.float32)
        return v1.estimator.tpu.TPUEstimatorSpec(mode, loss=loss, eval_metrics=(metric_fn, [losses, weights, hits]))
    step = v1.train.get_or_create_global_step()
    now = tf.cast(step, tf.float32) + 1.0
    rate = HP.rate * HP.width**-0.5 * tf.minimum(now * HP.warmup**-1.5, tf.math.rsqrt(now))
    adam = v1.tpu.CrossShardOptimizer(v1.train.AdamOptimizer(rate, 0.9, 0.98, 1e-9))
    gradients, variables = zip(*adam.compute_gradients(loss))
    gradients, _ = tf.clip_by_global_norm(gradients, 5.0)
    train_op = adam.apply_gradients(list(zip(gradients, variables)), step)  # <- TPU201
    return v1.estimator.tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)


def pairs(training, with_targets=True):
    def generate():
        random = np.random.RandomState(5)
        for _ in range(512):
            n = random.randint(3, HP.target - 1)
            words = random.randint(2, HP.vocab, n)
            yield words, np.append(words[::-1], HP.eos)

    def input_fn(params):
        d = tf.data.Dataset.from_generator(generate, (tf.int32, tf.int32), ([None], [None]))
        if training:
            d = d.cache().shuffle(512).repeat()
        if with_targets:
            d = d.map(lambda s, t: ({"inputs": s}, t))
            shapes = ({"inputs": [HP.source]}, [HP.target])
        else:
            d = d.map(lambda s, t: {"inputs": s})
            shapes = {"inputs": [HP.source]}
        return d.padded_batch(params["batch_size"], shapes, drop_remainder=with_targets)  # <- TPU102

    return input_fn


def main(data_dir):
    config = v1.estimator.tpu.RunConfig(master="", model_dir="/tmp/beam", tpu_config=v1.estimator.tpu.TPUConfig(50), save_checkpoints_steps=500)
    est = v1.estimator.tpu.TPUEstimator(model_fn, config=config, params={}, train_batch_size=32, eval_batch_size=32, predict_batch_size=32)
    return est, pairs(True), {"eval_input_fn": pairs(False), "predict_input_fn": pairs(False, False)}


FAULTS = [
    ("TPU201", "    adam = v1.tpu.CrossShardOptimizer(v1.train.AdamOptimizer(rate, 0.9, 0.98, 1e-9))", "    adam = v1.train.AdamOptimizer(rate, 0.9, 0.98, 1e-9)"),
    ("TPU102", "({\"inputs\": [HP.source]}, [HP.target])", "({\"inputs\": [HP.source]}, [None])"),
    ("TPU205", "            ended = tf.equal(word, HP.eos)", "            ended = tf.numpy_function(lambda w: w == HP.eos, [word], tf.bool)\n            ended = tf.ensure_shape(ended, word.shape)"),
]
