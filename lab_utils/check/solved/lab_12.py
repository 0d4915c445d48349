"""Made from solutions/source/12_char_lstm.ipynb by `python -m lab_utils.build`: change it there."""

from lab_utils import datasets, runtime

runtime.quiet()  # before TensorFlow is imported

import keras
import matplotlib.pyplot as plt
import numpy as np
import tensorflow as tf
from keras import layers

from lab_utils.dry_run import dry_run
from lab_utils.notebook import wrapped

tf.get_logger().setLevel("ERROR")
BATCH, LENGTH, UNITS = 32, 32, 128  # streams, characters of each in a step, LSTM cells


text = datasets.play()
characters = sorted(set(text))
ids = np.searchsorted(characters, list(text)).astype(np.int32)
training, held_out = np.split(ids, [len(ids) * 9 // 10])


def bigram_bits(train, held, kinds):
    """int [N], int [M], both below `kinds` -> mean bits of a character of `held`, given the last one."""
    # TODO 12a: pairs -> shares -> bits
    counts = np.ones((kinds, kinds))
    np.add.at(counts, (train[:-1], train[1:]), 1)
    shares = counts / counts.sum(axis=1, keepdims=True)
    return -np.log2(shares[held[:-1], held[1:]]).mean()


def make_dataset(ids, batch, length):
    """int32 [N] -> a dataset of (int32 [batch, length], the same one character on), row by row in order."""
    # TODO 12b: streams side by side, each batch `length` further on
    steps = (len(ids) - 1) // (batch * length)

    def windows(first):
        part = ids[first : first + batch * steps * length]
        return part.reshape(batch, steps, length).swapaxes(0, 1)

    return tf.data.Dataset.from_tensor_slices((windows(0), windows(1)))


def make_model(batch, length, stateful):
    """A model from int32 [batch, length] to logits, float32 [batch, length, kinds]."""
    # TODO 12c: Input with its batch, Embedding, LSTM, Dense
    read = keras.Input(batch_shape=(batch, length), dtype="int32")
    net = layers.Embedding(len(characters), 32)(read)
    net = layers.LSTM(UNITS, return_sequences=True, stateful=stateful)(net)
    return keras.Model(read, layers.Dense(len(characters))(net))


class FromTheTop(keras.callbacks.Callback):
    """Lets each epoch start with an empty state."""

    def on_epoch_begin(self, epoch, logs=None):
        # TODO 12d: reset the layers that have a state
        for layer in self.model.layers:
            if hasattr(layer, "reset_state"):
                layer.reset_state()


def sample(logits, temperature, rng):
    """float [kinds] -> the number of a kind, drawn by rng (a numpy Generator) from softmax(logits / T)."""
    # TODO 12e: draw a kind by its share
    scaled = np.asarray(logits, np.float64) / temperature
    shares = np.exp(scaled - scaled.max())
    return rng.choice(len(shares), p=shares / shares.sum())


def write_line(following, first, end, most):
    """Characters after `first` (int32 []), each following(the last) -> (int32 [most], int32 [] written)."""

    # TODO 12f: a loop over a line of fixed size
    def goes_on(count, last, line):
        return (count < most) & (last != end)

    def put(count, last, line):
        last = following(last)
        return count + 1, last, tf.tensor_scatter_nd_update(line, [[count]], [last])

    start = (tf.constant(0), first, tf.fill([most], end))
    count, _, line = tf.while_loop(goes_on, put, start)
    return line, count


def attend(query, key, value):
    """float [batch, length, width], three times -> the values that each place sees, weighed, same shape."""
    # TODO 12g: scores, mask, softmax, weighed values
    scores = tf.matmul(query, key, transpose_b=True) / query.shape[-1] ** 0.5
    earlier = keras.ops.tri(query.shape[1], dtype="bool")
    scores = tf.where(earlier, scores, -1e9)
    return tf.matmul(tf.nn.softmax(scores), value)
