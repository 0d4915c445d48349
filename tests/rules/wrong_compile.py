"""Mistakes that show when the step is compiled: TPU3xx. Most are one right program, made worse."""

from rules import Port, parts, wrong
from rules.parts import tf, tpu, v1

WIDTH, CLASSES = 1024, 128


def _port(batch=512, dtype=tf.bfloat16, shape=(WIDTH,), logits_of=None):
    """A wide classifier in `dtype`, with `batch` examples of `shape` a core."""

    def input_fn(params):
        example = tf.zeros(shape), tf.zeros([], tf.int32)
        data = tf.data.Dataset.from_tensors(example).repeat()
        return data.batch(params["batch_size"], drop_remainder=True)

    def dense(features):
        with v1.tpu.bfloat16_scope():
            hidden = v1.layers.dense(tf.cast(features, dtype), WIDTH, tf.nn.relu)
            return v1.layers.dense(v1.layers.dense(hidden, WIDTH, tf.nn.relu), CLASSES)

    def model_fn(features, labels, mode, params):
        logits = tf.cast((logits_of or dense)(features), tf.float32)
        loss = parts.loss_of(labels, logits)
        return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=parts.minimize(loss))

    settings = {"train_batch_size": 8 * batch, "eval_batch_size": None}
    return Port(parts.estimator(model_fn, **settings), input_fn)


def _of_a_part(features):
    return v1.layers.dense(features[:, :WIDTH], CLASSES)


def _convolved(features):
    return v1.layers.dense(tf.reduce_mean(v1.layers.conv2d(features, 8, 5), [1, 2]), CLASSES)


@wrong("TPU303")
def examples_of_a_gibibyte(wrong):
    return _port(8, shape=(2**28,), logits_of=_of_a_part) if wrong else _port()


@wrong("TPU304")
def one_picture_a_core(wrong):
    return _port(1, shape=(64, 64, 3), logits_of=_convolved) if wrong else _port()


@wrong("TPU306")
def all_in_float32(wrong):
    return _port(dtype=tf.float32 if wrong else tf.bfloat16)


def _narrow(features):
    hidden = v1.layers.dense(tf.cast(features, tf.bfloat16), 64, tf.nn.relu)
    return v1.layers.dense(hidden, CLASSES)


@wrong("TPU305")
def a_hidden_layer_of_64(wrong):
    return _port(logits_of=_narrow) if wrong else _port()


@wrong("TPU309")
def spectrum_in_double_precision(wrong):
    def spectrum(features):
        rows = tf.cast(features[:, :128], tf.float64 if wrong else tf.float32)
        powers = tf.cast(tf.abs(tf.signal.rfft(rows)), tf.bfloat16)
        with v1.tpu.bfloat16_scope():
            hidden = v1.layers.dense(tf.cast(features, tf.bfloat16), WIDTH, tf.nn.relu)
            return v1.layers.dense(tf.concat([hidden, powers], 1), CLASSES)

    return _port(logits_of=spectrum)
