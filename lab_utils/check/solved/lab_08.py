"""Made from solutions/source/08_performance.ipynb by `python -m lab_utils.build`: change it there."""

from lab_utils import estimator  # noqa: F401  (TPUEstimator, on today's TensorFlow)


import math
import tempfile

import tensorflow as tf

from lab_utils.runtime import chips
from lab_utils.dry_run import dry_run

v1 = tf.compat.v1
v1.logging.set_verbosity(v1.logging.ERROR)
tpu = v1.estimator.tpu


def convolutions(images):
    """float32 [B, S, S, 3] -> [B, S // 4, S // 4, 20]."""
    x = v1.layers.conv2d(images, 10, 5, padding="same", activation=tf.nn.relu)
    x = v1.layers.max_pooling2d(x, 2, 2)
    x = v1.layers.conv2d(x, 20, 5, padding="same", activation=tf.nn.relu)
    return v1.layers.max_pooling2d(x, 2, 2)


def inference_old(images):
    """float32 [B, S, S, 3] -> logits, float32 [B, 5]."""
    x = v1.layers.flatten(convolutions(images))
    x = v1.layers.dense(x, 300, activation=tf.nn.relu)
    return v1.layers.dense(x, 5)


def port_of(inference, side, per_core, cores):
    """A TPUEstimator around `inference`, and an input_fn of blank images."""

    def model_fn(features, labels, mode, params):
        loss = v1.losses.sparse_softmax_cross_entropy(labels, inference(features))
        optimizer = v1.train.AdamOptimizer(0.001)
        if params["use_tpu"]:
            optimizer = v1.tpu.CrossShardOptimizer(optimizer)
        train_op = optimizer.minimize(loss, v1.train.get_global_step())
        return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)

    def input_fn(params):
        batch = params["batch_size"]
        blank = tf.zeros([batch, side, side, 3]), tf.zeros([batch], tf.int32)
        return tf.data.Dataset.from_tensors(blank).repeat()

    config = tpu.RunConfig(model_dir=tempfile.mkdtemp(prefix="flowers-"))
    return tpu.TPUEstimator(
        model_fn, config=config, use_tpu=False, train_batch_size=per_core * cores
    ), input_fn


def least_seconds(flop, bytes_, peak, bandwidth):
    """The roofline bound of a step: FLOP and HBM traffic go on side by side."""
    # TODO 8a: FLOP, bytes and two peaks -> seconds
    return max(flop / peak, bytes_ / bandwidth)


def stored_bytes(shape, order, item=4):
    """Bytes of an array of two axes or more, in tiles of 8 by 128."""
    # TODO 8b: bytes of the array, its padding included
    padded = list(shape)
    padded[order[0]] = math.ceil(padded[order[0]] / 128) * 128
    padded[order[1]] = math.ceil(padded[order[1]] / 8) * 8
    return item * math.prod(padded)


def inference_pooled(images):
    """float32 [B, S, S, 3] -> logits, float32 [B, 5], with few weights."""
    x = convolutions(images)
    # TODO 8c: [B, S // 4, S // 4, 20] -> [B, 20], pooled; dense layers of 300 and of 5 as before
    x = tf.reduce_mean(x, [1, 2])
    x = v1.layers.dense(x, 300, activation=tf.nn.relu)
    return v1.layers.dense(x, 5)


def inference_fast(images):
    """float32 [B, 152, 152, 3] -> logits, float32 [B, 5]."""
    # TODO 8d: patches of pixels, convolutions, a pooled head
    x = tf.nn.space_to_depth(images, 4)
    x = v1.layers.conv2d(x, 32, 3, padding="same", activation=tf.nn.relu)
    x = v1.layers.max_pooling2d(x, 2, 2)
    x = v1.layers.conv2d(x, 128, 3, padding="same", activation=tf.nn.relu)
    return v1.layers.dense(tf.reduce_mean(x, [1, 2]), 5)


def in_bfloat16(inference):
    """The same network with bfloat16 between its layers."""

    def inference_bfloat16(images):
        # TODO 8e: the same network, in bfloat16 inside
        with v1.tpu.bfloat16_scope():
            logits = inference(tf.cast(images, tf.bfloat16))
        return tf.cast(logits, tf.float32)

    return inference_bfloat16


def best_change(lines, changes):
    """Lines of a report, {name: (piece of code, share that remains)} -> (name, times as fast)."""
    # TODO 8f: what does each change save?
    total = sum(each.cycles for each in lines)
    saved = {
        name: (1 - left) * sum(each.cycles for each in lines if part in each.place.code)
        for name, (part, left) in changes.items()
    }
    best = max(saved, key=saved.get)
    return best, total / (total - saved[best])


def largest_batch(memory, per_core):
    """Bytes by kind for a batch of `per_core` -> the largest multiple of 128 that should fit."""
    # TODO 8g: bytes an image -> images that fit -> whole 128s
    used = sum(memory[part] for part in ("arguments", "temporaries", "outputs", "code"))
    return int(memory["available"] / (used / per_core)) // 128 * 128


def pod_settings(cores, per_core, examples, batch=32, rate=0.05):
    """-> (global batch, learning rate, steps in one pass over the examples)."""
    # TODO 8h: three numbers
    global_batch = cores * per_core
    return global_batch, rate * global_batch / batch, examples // global_batch


def call_seconds(timed, steps):
    """{loop: seconds for `steps` steps}, of two loops -> seconds of one session call, without steps."""
    # TODO 8i: what do the calls cost that only one of the runs makes?
    (short, slow), (long, fast) = sorted(timed.items())
    return (slow - fast) / (steps / short - steps / long)


def shortest_loop(step, call, checkpoint, share):
    """Seconds of a step and of a call, steps to a checkpoint, a share -> iterations_per_loop."""
    # TODO 8j: the smallest divisor that is long enough
    for loop in range(1, checkpoint + 1):
        if checkpoint % loop == 0 and loop * step >= share * (loop * step + call):
            return loop
    return checkpoint


def narrowed(input_fn):
    """An input_fn(params) whose dataset has float32 where that of `input_fn` has float64."""
    # TODO 8k: float64 -> float32, and nothing else

    def narrow(tensor):
        return tf.cast(tensor, tf.float32) if tensor.dtype == tf.float64 else tensor

    def narrowed_input_fn(params):
        return input_fn(params).map(
            # A tuple arrives as several arguments, any other element as one.
            lambda *parts: tf.nest.map_structure(narrow, parts if len(parts) > 1 else parts[0])
        )

    return narrowed_input_fn
