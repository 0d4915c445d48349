"""How it trains: TODO 9d, a replica's part of the loss, and 9e, a run that goes on where it stopped."""

import contextlib
import tempfile
from collections.abc import Callable

import numpy as np

from lab_utils.check.todos import todo
from lab_utils.check.tools import a, expect
from lab_utils.estimator import tf

# isort: split
import keras


@todo(
    "9d",
    hints=(
        "The replicas' gradients are summed. What must each give, so that the sum is the mean over all?",
        "A sum over this replica's examples, and a division: by how many?",
    ),
    why='Parts of one mean can be summed; means cannot.',
)
def replica_loss(replica_loss: Callable) -> str:
    """The parts of all replicas sum to the mean over the global batch."""
    rng = np.random.default_rng(7)
    logits = tf.constant(rng.normal(size=(32, 10)), tf.float32)
    labels = tf.constant(rng.integers(0, 10, 32), tf.int32)
    mean = float(tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)))
    parts = [
        replica_loss(label, logit, 32)
        for label, logit in zip(tf.split(labels, 4), tf.split(logits, 4), strict=True)
    ]
    expect(parts[0] is not None, f"replica_loss returns {a(parts[0])}.")
    expect(
        tf.is_tensor(parts[0]),
        f"A replica's part should be a tensor, through which gradients flow; yours is {a(parts[0])}.",
    )
    shape = parts[0].shape
    expect(shape.rank == 0, f"A replica's part should be a scalar; yours has the shape {shape}.")
    total = float(tf.add_n([tf.cast(part, tf.float32) for part in parts])) / mean
    what = "Four replicas of 8 examples each: their parts should sum to the mean over all 32"
    twice = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, tf.nn.softmax(logits))
    expect(
        abs(total - float(tf.reduce_mean(twice)) / mean) > 1e-4,
        "That is the cross-entropy of softmax(logits): it takes the logits themselves.",
    )
    expect(
        abs(total - 4) > 0.01,
        f"{what}; yours sum to 4 times that. A mean over the replica's own examples makes the step larger, "
        "the more replicas there are.",
    )
    expect(
        abs(total - 32) > 0.1,
        f"{what}; yours sum to 32 times that: the sum is not divided by global_batch.",
    )
    expect(
        abs(total - 1 / 8) > 1e-3,
        f"{what}; yours sum to an eighth of it: the mean over a replica is divided twice.",
    )
    with tf.GradientTape() as tape:
        tape.watch(logits)
        part = replica_loss(labels, logits, 32)
    expect(
        tape.gradient(part, logits) is not None,
        "No gradient comes through to the logits: compute the part with TensorFlow's ops.",
    )
    expect(abs(total - 1) < 1e-3, f"{what}; yours sum to {total:.3g} times that.")
    return "Parts that sum to the global mean: the step does not depend on the number of replicas."


@todo(
    "9e",
    hints=(
        'Look through keras.callbacks: one of them both saves and puts back.',
        'ModelCheckpoint saves, and nothing more.',
    ),
    why='Keras goes on only where a callback restores model, optimizer and epoch.',
)
def resumable(make_callbacks: Callable) -> str:
    """A run that is stopped in its third epoch goes on there."""
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as elsewhere:
        callbacks = make_callbacks(folder)
        expect(
            isinstance(callbacks, list | tuple),
            f"make_callbacks should return a list of callbacks; yours returns {a(callbacks)}.",
        )
        kinds = [each for each in callbacks if not isinstance(each, keras.callbacks.Callback)]
        expect(not kinds, f"The list should hold callbacks of Keras; it holds {kinds[:1]}.")
        with contextlib.chdir(elsewhere):
            _fit(callbacks, stop_in=2)
            saves = any(files for *_, files in tf.io.gfile.walk(folder))
            begun = _fit(make_callbacks(folder))
    if begun and begun[0] == 0:
        expect(
            not saves,
            "It saves, but nothing puts back what it saved: a run that was stopped started over.",
        )
    expect(
        saves or not begun or begun[0] == 0,
        "What the run saved does not lie in folder: two runs would mix theirs up.",
    )
    expect(
        bool(begun) and begun[0] > 0,
        "A run that was stopped in its third epoch started over from the first. What is saved has to lie "
        "in folder, at the end of each epoch.",
    )
    expect(begun[0] == 2, f"It should go on with epoch 3; yours went on with epoch {begun[0] + 1}.")
    return "Stopped in epoch 3, it goes on with epoch 3: weights, optimizer and epoch."


class _Stopped(Exception):
    """Stands for a machine that is taken away."""


def _fit(callbacks, stop_in: int | None = None) -> list[int]:
    """Fits a tiny model for four epochs; returns the epochs that began."""
    begun = []

    def begin(epoch, logs):
        begun.append(epoch)
        if epoch == stop_in:
            raise _Stopped

    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
    model.compile("adam", "mse")
    watch = keras.callbacks.LambdaCallback(on_epoch_begin=begin)
    batch = np.ones((4, 2), np.float32)
    with contextlib.suppress(_Stopped):
        model.fit(batch, batch[:, :1], epochs=4, verbose=0, callbacks=[*callbacks, watch])
    return begun
