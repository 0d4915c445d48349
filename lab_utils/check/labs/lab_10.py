"""The checks of lab 10, today's API: the loss of a replica, a model that a TPU supports, the Estimator's Adam."""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

import numpy as np

from lab_utils.check.todos import Cases, Slip, todo
from lab_utils.check.tools import a, expect, expect_dataset, other_names, returns, same, several
from lab_utils.estimator import tf

# isort: split
import keras

RATE = 3e-3


@todo(
    "10a",
    hints=(
        "The replicas' gradients are summed. What must each return, so that the sum is the mean over all examples?",
        "Sum over this replica's examples, and divide. By which number?",
    ),
    why="The parts of one mean sum to that mean; a sum of several means is too large.",
    slips=(
        Slip(
            "tf.reduce_sum(losses) / global_batch",
            "tf.reduce_mean(losses)",
            "That is 4 times the mean: a mean over the "
            "replica's own examples makes the step larger, the more replicas there are.",
        ),
        Slip(
            "tf.reduce_sum(losses) / global_batch",
            "tf.reduce_sum(losses)",
            "That is 32 times the mean: the sum is not divided by global_batch.",
        ),
        Slip(
            "tf.reduce_sum(losses) / global_batch",
            "tf.reduce_mean(losses) / global_batch",
            "That is an eighth of the mean: the mean over a replica is divided twice.",
        ),
        Slip(
            "with_logits(labels, logits)",
            "with_logits(labels, tf.nn.softmax(logits))",
            "That is the cross-entropy of softmax(logits): pass the logits themselves.",
        ),
    ),
)
def replica_loss(replica_loss: Callable) -> Cases:
    """The parts of all replicas sum to the mean over the global batch."""
    random = np.random.default_rng(7)
    logits = tf.constant(random.normal(size=(32, 10)), tf.float32)
    labels = tf.constant(random.integers(0, 10, 32), tf.int32)
    pairs = zip(tf.split(labels, 4), tf.split(logits, 4), strict=True)
    parts = [replica_loss(*pair, 32) for pair in pairs]
    message = f"A replica's part should be a tensor, through which gradients flow; yours is {a(parts[0])}."
    expect(tf.is_tensor(parts[0]), message)
    same(parts[0].shape, [], "The shape of a replica's part, which should be a scalar")
    total = tf.add_n([tf.cast(part, tf.float32) for part in parts])
    label = "Four replicas of 8 examples each: their parts should sum to the mean over all 32"
    yield label, total, 1e-3
    with tf.GradientTape() as tape:
        tape.watch(logits)
        part = replica_loss(labels, logits, 32)
    message = "No gradient reaches the logits: compute the part with TensorFlow's ops."
    expect(tape.gradient(part, logits) is not None, message)
    return "The parts sum to the global mean: the step is the same for any number of replicas."


@todo(
    "10b",
    hints=(
        "The finding names ImageProjectiveTransformV3. Which two layers move and rotate pictures?",
        "The dataset's map runs on the host. A layer can be called there like a function, with training=True.",
    ),
    why="Random changes of pictures belong to the input: the host makes them, and the exported model has none.",
)
def host_and_core(portable: Callable) -> str:
    """No random layer in the model; the dataset changes pictures at random, in full batches."""
    python: list[str] = []
    scope = {
        "pixels": {"train": _SPOTS, "eval": _SPOTS},
        "classes": {"train": _CLASSES, "eval": _CLASSES},
    }
    with other_names(portable, **scope), _python_noted(python):
        answer = portable()
    returns(answer, several(answer, 2), "portable", "(model, dataset)")
    model, dataset = answer
    returns(model, keras.Model, "portable", "a Keras model first")
    random = [
        layer.name for layer in _all_layers(model) if type(layer).__name__.startswith("Random")
    ]
    message = f"The model still holds {', '.join(random)}: a layer of the model runs on the core."
    expect(not random, message)
    expect(getattr(model, "optimizer", None) is not None, "The model is not compiled.")
    expect_dataset(dataset, "portable")
    spec = [part.shape.as_list() for part in dataset.element_spec]
    same(spec, [[512, 8, 8, 1], [512]], "The shapes of pictures and labels in a batch")
    message = (
        f"The pictures go through {', '.join(python)}: Python runs them in one process, one batch after another. Use "
        "TensorFlow's ops, or layers, which are ops too."
    )
    expect(not python, message)
    batches = list(dataset.take(8).as_numpy_iterator())
    images, labels = batches[0]
    _expect_moves(np.concatenate([pictures for pictures, _ in batches]))
    expect(images.min() >= 0 and images.max() <= 1.001, "The pictures should stay within 0 and 1.")
    logits = model(images[:16], training=True)
    same(list(logits.shape), [16, 10], "The shape of the logits of 16 pictures")
    again = model(images[:16], training=True)
    expect(np.allclose(logits, again), "The model itself still draws at random in training.")
    counts = np.bincount(labels, minlength=10)
    message = "Each of the ten classes should be in a batch: are labels paired with pictures?"
    expect(counts.min() > 20, message)
    return "The core computes the model, and the host moves and rotates the pictures."


# A bright spot to the left and one to the right, at the same height: what moves, and what turns, can be told apart.
_SPOTS = np.zeros([640, 8, 8], np.float32)
_SPOTS[:, 3:5, 1:3] = _SPOTS[:, 3:5, 5:7] = 1.0
_CLASSES = np.arange(640, dtype=np.int32) % 10
_FEW = 200


@contextlib.contextmanager
def _python_noted(names: list[str]) -> Iterator[None]:
    """Context manager: notes which ops that run Python are made, by name."""
    with contextlib.ExitStack() as stack:
        for name in ("py_function", "numpy_function"):
            original = getattr(tf, name)

            def noted(*given: Any, name: str = name, original: Any = original, **named: Any) -> Any:
                names.append(f"tf.{name}")
                return original(*given, **named)

            stack.enter_context(mock.patch.object(tf, name, noted))
        yield


def _expect_moves(images: np.ndarray) -> None:
    """Raises `Wrong` unless pictures made of _SPOTS are moved and turned at random, each time in another way.

    Args:
        images: float32 [several epochs of pictures, 8, 8, 1].
    """
    different = len({image.tobytes() for image in images})
    few = 1 < different < _FEW  # moved by whole pixels: there are not many ways
    parts = np.unique(np.round(images * 16, 3) % 1)  # pixels of the file are whole sixteenths
    message = "The dataset's pictures are those of the file: nothing moves or rotates them."
    expect(len(parts) > 1 or few, message)
    message = (
        f"Among {len(images):,} pictures are {different:,} different ones: each epoch sees the same. The pictures have "
        "to be changed again each time that they are read."
    )
    expect(different > 0.8 * len(images) or few, message)
    heights = []
    for half in (images[:, :, :4, 0], images[:, :, 4:, 0]):
        height = (half.sum(2) * np.arange(8)).sum(1) / np.maximum(half.sum((1, 2)), 1e-3)
        heights.append(height)
    across = (images[..., 0].sum(1) * np.arange(8)).sum(1) / images.sum((1, 2, 3))
    turned, down = np.std(heights[0] - heights[1]), np.std(sum(heights) / 2)
    expect(turned > 0.05, "The pictures are moved, but none is rotated.")
    message = "The pictures are rotated, but not moved both up or down and to the sides."
    expect(down > 0.15 and np.std(across) > 0.15, message)


def _all_layers(model: keras.Model) -> list[keras.Layer]:
    """The layers of a Keras model, those of models within it too, in order."""
    layers = []
    for layer in model.layers:
        layers += _all_layers(layer) if hasattr(layer, "layers") else [layer]
    return layers


_FACTORS = (1.0, 1.0, -0.3, 0.1, 2.0, 0.1)  # times the gradients, step by step


@todo(
    "10c",
    hints=(
        "Print the configuration of both: keras.optimizers.Adam().get_config(), and "
        "help(tf.compat.v1.train.AdamOptimizer).",
        "Which default differs, apart from the learning rate?",
    ),
    why="A small number in the denominator decides how far small gradients move a variable.",
)
def same_adam(make_adam: Callable) -> Cases:
    """The same updates as AdamOptimizer(0.003), whatever the size of the gradient."""
    adam = make_adam()
    returns(adam, keras.optimizers.Optimizer, "make_adam", "a Keras optimizer")
    expect(hasattr(adam, "beta_1"), f"The Estimator trains with Adam; yours is {adam.name}.")
    for name in ("clipnorm", "clipvalue", "global_clipnorm", "weight_decay", "use_ema", "amsgrad"):
        expect(not getattr(adam, name, None), f"AdamOptimizer has no {name}: leave it out.")
    yield "beta_1 of AdamOptimizer", adam.beta_1
    yield "beta_2 of AdamOptimizer", adam.beta_2
    gradients = np.array([2.0, 1e-2, 1e-7, 1e-8, 1e-9], np.float32)
    variable, moves = keras.Variable(np.zeros_like(gradients)), []
    adam.build([variable])
    for factor in _FACTORS:
        adam.apply([factor * gradients], [variable])
        moves.append(-np.array(variable) / RATE)
    far = "How far a variable moves, in units of the learning rate 0.003,"
    yield f"{far} by a gradient of 2 (is the learning rate 0.003?)", moves[0][0], 1e-3
    label = f"{far} by {len(_FACTORS)} other gradients (how much do old gradients count?)"
    yield label, moves[-1][0], 2e-3
    small = "by small gradients, of 0.01, 1e-7, 1e-8 and 1e-9"
    label = f"{far} {small} (what is added to the root of the second moment?)"
    yield label, moves[0][1:], 1e-2
    return "Your Adam makes the same updates, for gradients from 2 down to 1e-9."
