"""Recurrent keyword spotting put together from bindings, in the way of a configuration library."""
import functools
import inspect
import os

import numpy as np
import tensorflow.compat.v1 as tf
from absl import flags, logging

_REGISTRY, _BINDINGS = {}, {}
_flags = flags.FlagValues()
flags.DEFINE_multi_string("binding", ["Recurrent.units = 12", "train_config.batch = 64"], "name = value", flag_values=_flags)
flags.DEFINE_enum("cell", "gru", ["gru", "lstm"], "", flag_values=_flags)
flags.DEFINE_string("out", "/tmp/keywords", "", flag_values=_flags)
_flags(["prog", "--cell=lstm", "--binding=rate.base = 0.02", "--binding=Recurrent.units = 16"])


def configurable(thing):
    names = set(inspect.signature(thing.__init__ if inspect.isclass(thing) else thing).parameters)
    _REGISTRY[thing.__name__] = thing

    def fill(kwargs):
        bound = _BINDINGS.get(thing.__name__, {})
        assert set(bound) <= names, "no such parameter: %s" % (set(bound) - names)
        return {**bound, **kwargs}

    if inspect.isclass(thing):
        init = thing.__init__
        thing.__init__ = functools.wraps(init)(lambda self, *a, **k: init(self, *a, **fill(k)))
        return thing

    @functools.wraps(thing)
    def wrapper(*a, **k):
        return thing(*a, **fill(k))

    return wrapper


def parse_bindings(lines):
    for line in lines:
        left, right = line.split(" = ")
        scope, name = left.split(".")
        _BINDINGS.setdefault(scope, {})[name] = eval(right)


FRAMES, BINS, WORDS = 20, 8, 6


@configurable
class Recurrent:
    def __init__(self, units=8, layers=2, keep=0.9, cell="gru"):
        self.units, self.layers, self.keep, self.cell = units, layers, keep, cell

    def _step(self, x, state, scope):
        with tf.variable_scope(scope, reuse=tf.AUTO_REUSE):
            h = state[0]
            n = 4 if self.cell == "lstm" else 3
            w = tf.get_variable("w", [x.shape[-1] + self.units, n * self.units], initializer=tf.orthogonal_initializer())
            b = tf.get_variable("b", [n * self.units], initializer=tf.zeros_initializer())
            if self.cell == "lstm":
                i, f, g, o = tf.split(tf.concat([x, h], 1) @ w + b, 4, 1)
                c = tf.sigmoid(f + 1.0) * state[1] + tf.sigmoid(i) * tf.tanh(g)
                return tf.sigmoid(o) * tf.tanh(c), c
            r, z = tf.split(tf.sigmoid(tf.concat([x, h], 1) @ w[:, : 2 * self.units] + b[: 2 * self.units]), 2, 1)
            new = tf.tanh(tf.concat([x, r * h], 1) @ w[:, 2 * self.units :] + b[2 * self.units :])
            return ((1.0 - z) * h + z * new,)

    def __call__(self, x, lengths, training):
        mask = tf.sequence_mask(lengths, FRAMES, dtype=tf.float32)
        for layer in range(self.layers):
            scope = "rnn%d" % layer
            zeros = tf.zeros([x.shape[0], self.units])
            state = (zeros, zeros) if self.cell == "lstm" else (zeros,)
            self._step(x[:, 0], state, scope)  # makes the variables outside the loop
            outs = tf.TensorArray(tf.float32, FRAMES, element_shape=[x.shape[0], self.units])

            def body(t, state, outs):
                on = mask[:, t, None]
                new = self._step(x[:, t], state, scope)
                new = tuple(on * n + (1.0 - on) * s for n, s in zip(new, state))
                return t + 1, new, outs.write(t, new[0])

            _, state, outs = tf.while_loop(lambda t, *_: t < FRAMES, body, (0, state, outs), maximum_iterations=FRAMES, parallel_iterations=1)
            x = tf.transpose(outs.stack(), [1, 0, 2])
            if training:
                x = tf.nn.dropout(x, keep_prob=self.keep)
        scores = tf.squeeze(tf.layers.dense(x, 1, use_bias=False), 2) + (1.0 - mask) * -1e9
        return tf.einsum("bt,btd->bd", tf.nn.softmax(scores), x)


@configurable
def rate(step, base=0.1, half_life=500.0):
    return base * tf.pow(0.5, tf.cast(step, tf.float32) / half_life)


@configurable
def train_op_of(loss, optimizer=tf.train.MomentumOptimizer, momentum=0.9, use_tpu=True, log_norms=True):
    step = tf.train.get_or_create_global_step()
    opt = optimizer(rate(step), momentum)
    if use_tpu:
        opt = tf.tpu.CrossShardOptimizer(opt)
    grads = opt.compute_gradients(loss)
    norms = tf.stack([tf.norm(g) for g, _ in grads])
    clipped, total = tf.clip_by_global_norm([g for g, _ in grads], 1.0, use_norm=tf.linalg.global_norm([g for g, _ in grads]))
    return opt.apply_gradients(zip(clipped, [v for _, v in grads]), global_step=step), (norms if log_norms else total)  # <- TPU201


def summaries(out, step, loss, norms):
    with tf.compat.v2.summary.create_file_writer(out).as_default(), tf.compat.v2.summary.record_if(True):
        tf.compat.v2.summary.scalar("loss", tf.reduce_mean(loss), step=step[0])
        tf.compat.v2.summary.histogram("norms", norms, step=step[0])
        return tf.summary.all_v2_summary_ops()


def model_fn(features, labels, mode, params, config):
    net = Recurrent(cell=_flags.cell)
    hidden = net(features["mel"], features["frames"], mode == "train")
    logits = tf.layers.dense(hidden, WORDS, kernel_initializer=tf.zeros_initializer())
    if mode == "infer":
        return tf.estimator.tpu.TPUEstimatorSpec(mode, predictions={"word": tf.argmax(logits, 1), "p": tf.nn.softmax(logits)})
    loss = tf.losses.sparse_softmax_cross_entropy(labels, logits, weights=features.get("real", 1.0))
    if mode == "eval":
        count = lambda labels, logits, real: {
            "accuracy": tf.metrics.accuracy(labels, tf.argmax(logits, 1), real),
            "per_word": tf.metrics.mean_per_class_accuracy(labels, tf.argmax(logits, 1), WORDS, real),
        }
        return tf.estimator.tpu.TPUEstimatorSpec(mode, loss=loss, eval_metrics=(count, [labels, logits, features["real"]]))
    train_op, norms = train_op_of(loss)
    tensors = [tf.train.get_global_step()[None], loss[None], norms]
    return tf.estimator.tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op, host_call=(functools.partial(summaries, config.model_dir), tensors))  # <- TPU111


def write(path, count, seed):
    r = np.random.RandomState(seed)
    with tf.io.TFRecordWriter(path) as out:
        for _ in range(count):
            n = r.randint(5, FRAMES + 1)
            mel = tf.train.Feature(float_list=tf.train.FloatList(value=r.randn(n * BINS)))
            word = tf.train.Feature(int64_list=tf.train.Int64List(value=[r.randint(WORDS)]))
            out.write(tf.train.Example(features=tf.train.Features(feature={"mel": mel, "word": word})).SerializeToString())


def parse(serialized):
    row = tf.io.parse_single_example(serialized, {"mel": tf.io.VarLenFeature(tf.float32), "word": tf.io.FixedLenFeature((), tf.int64)})
    mel = tf.reshape(tf.sparse.to_dense(row["mel"]), [-1, BINS])  # <- TPU102
    frames = tf.shape(mel)[0]
    mel = tf.pad(mel, [(0, FRAMES - frames), (0, 0)])
    return {"mel": tf.ensure_shape(mel, (FRAMES, BINS)), "frames": frames, "real": tf.constant(1.0)}, tf.cast(row["word"], tf.int32)


class Records:
    def __init__(self, files, training, total=None):
        self.files, self.training, self.total = files, training, total

    def __call__(self, params):
        size = params["batch_size"]
        files = tf.data.Dataset.from_tensor_slices(self.files)
        ds = files.apply(tf.data.experimental.parallel_interleave(tf.data.TFRecordDataset, cycle_length=2, sloppy=self.training))
        if self.training:
            ds = ds.repeat().shuffle(256)
        ds = ds.map(parse, num_parallel_calls=tf.data.experimental.AUTOTUNE)
        if not self.training:
            nothing = ds.take(1).map(lambda f, l: (dict(f, real=tf.constant(0.0)), l)).repeat()
            ds = ds.concatenate(nothing).take(-(-self.total // params["whole"]) * params["whole"])
        return ds.batch(size, drop_remainder=True).prefetch(4)


@configurable
def train_config(out, batch=32, loop=20):
    tpu = tf.estimator.tpu.TPUConfig(iterations_per_loop=loop, per_host_input_for_training=tf.estimator.tpu.InputPipelineConfig.PER_HOST_V2)
    return tf.estimator.tpu.RunConfig(tpu_config=tpu, model_dir=out, save_checkpoints_steps=10 * loop), batch


def main(data_dir):
    parse_bindings(_flags.binding)
    paths = [os.path.join(data_dir, "words-%d" % i) for i in range(3)]
    for i, path in enumerate(paths):
        if not os.path.exists(path):
            write(path, 70, i)
    config, batch = train_config(_flags.out)
    logging.info("units %d", Recurrent().units)
    est = tf.estimator.tpu.TPUEstimator(
        model_fn=model_fn, config=config, params={"whole": batch}, train_batch_size=batch, eval_batch_size=batch, predict_batch_size=batch
    )
    return est, Records(paths[:2], True), {"eval_input_fn": Records(paths[2:], False, 70)}


FAULTS = [
    ("TPU201", "    if use_tpu:\n        opt = tf.tpu.CrossShardOptimizer(opt)\n    grads", "    grads"),
    ("TPU102", "tf.ensure_shape(mel, (FRAMES, BINS))", "mel"),
    ("TPU223", "            if training:\n                x = tf.nn.dropout(x, keep_prob=self.keep)", "            x = tf.nn.dropout(x, keep_prob=self.keep)"),
    ("TPU111", "tensors = [tf.train.get_global_step()[None], loss[None], norms]", "tensors = [tf.train.get_global_step()[None], tf.reduce_mean(loss), norms]"),
]
