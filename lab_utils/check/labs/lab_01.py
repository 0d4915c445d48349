"""The checks of lab 01, the Estimator baseline: input_fn, and a program of somebody else."""

from collections.abc import Callable

import numpy as np

from lab_utils.check.labs.treatment import enter_program
from lab_utils.check.todos import Cases, Slip, todo
from lab_utils.check.tools import as_wrong, expect, expect_dataset, first_batches, returns
from lab_utils.estimator import tf, v1

COUNT, BATCH = 200, 16
_DIGITS = 1437  # examples of training, in the lab


enter_program(
    "1a",
    "plateau",
    hints=(
        "A cross-entropy of 1.46 nats means that the right class gets a probability of 23 %. What keeps it so low?",
        "Follow the ten numbers from the last layer to the loss: what range does each step's output have?",
    ),
    why="inference returns logits, since the loss applies a softmax itself, and mode PREDICT applies one for callers.",
)


@todo(
    "1b",
    hints=(
        "tf.data.Dataset.from_tensor_slices takes a pair of arrays and has one element for each digit.",
        "Order matters: which of shuffle, repeat and batch must come first, so that an epoch has each example "
        "once? How many examples must the buffer of shuffle hold to mix all of them?",
        "The function that you pass to map gets the image and the label as two arguments, and returns a pair. "
        "By default, batch keeps the last, smaller batch, which evaluation needs.",
    ),
    why="shuffle comes first, so that it mixes the examples of one epoch; repeat and batch follow. Evaluation needs "
    "neither shuffle nor repeat, and keeps its last, smaller batch.",
    slips=(
        Slip(
            ".batch(batch_size)",
            ".batch(batch_size, drop_remainder=True)",
            "Evaluation should give each example exactly "
            "once, but drop_remainder drops the last, smaller batch.",
        ),
    ),
)
def input_fn_of_digits(make_input_fn: Callable) -> Cases:
    """A dataset of pairs: shuffled and endless for training, each example once for evaluation."""
    # The n-th image is full of n % 17, with n // 17 at its corner: any image tells its number.
    numbers = np.arange(COUNT)
    pixels = np.tile((numbers % 17.0)[:, None, None], (1, 8, 8))
    pixels[:, 0, 0] = numbers // 17
    training, evaluation = (make_input_fn(pixels, numbers, BATCH, mode) for mode in (True, False))
    noun = "a function, which the Estimator calls inside its own graph"
    is_function = callable(training) and not isinstance(training, tf.data.Dataset)
    returns(training, is_function, "make_input_fn", noun)
    ends, endless = _batches(evaluation, 2 * COUNT), _batches(training, 3 * COUNT // BATCH)
    expect(len(ends) < 2 * COUNT, "Evaluation does not end: call repeat() only in training.")
    for run, batches in (("evaluation", ends), ("training", endless)):
        # Of shuffled batches the last, smaller one may come first.
        largest = max(batches, key=lambda batch: batch[0].size)
        shapes = [list(array.shape) for array in largest]
        label = f"In {run}, the shapes of a batch: images [B, 8, 8] and labels [B] with B from batch_size"
        yield label, shapes
        yield f"In {run}, the types of a batch", [array.dtype.name for array in batches[0]]
        images, labels = (np.concatenate(parts) for parts in zip(*batches, strict=True))
        plain = np.ptp(images[:, 1:].reshape(len(images), -1), axis=1).max() < 1e-3
        why = "The images are not those that make_input_fn was called with."
        expect(plain, f"{why} Does input_fn use the parameters `pixels` and `labels`?")
        counts = 16 * images
        yield f"In {run}, images are scaled once: 16 becomes", images.max(), 1e-4
        numbers_of_images = np.rint(counts[:, 4, 4] + 17 * np.rint(counts[:, 0, 0]))
        pairs = np.array_equal(numbers_of_images, labels)
        yield f"In {run}, images come with their own labels, not those of other images", pairs
    examples = np.concatenate([labels for _, labels in ends])
    yield f"Different examples in an evaluation of {COUNT}", len(set(examples.tolist()))
    yield f"Examples in an evaluation of {COUNT}", len(examples)
    place = "Predictions are compared with labels by position"
    yield f"{place}: an evaluation keeps the order of the arrays", np.array_equal(examples, numbers)
    first, second = labels[:COUNT], labels[COUNT : 2 * COUNT]
    label = "Training shuffles: its order differs from that of the arrays"
    yield label, not np.array_equal(first, numbers)
    mixes = any(np.ptp(labels) >= len(labels) for _, labels in endless)
    yield "Training shuffles single examples before batch, and not whole batches", mixes
    share = len(set(first.tolist()))
    yield (
        f"Different examples among the first {COUNT} of training, where each epoch has every example once",
        share,
    )
    with tf.Graph().as_default(), v1.Session() as session:
        count = session.run(training().cardinality())
    endless_kinds = (tf.data.INFINITE_CARDINALITY, tf.data.UNKNOWN_CARDINALITY)
    yield "Training never ends: repeat() without a number", count in endless_kinds
    far = np.abs(first - numbers).mean() > COUNT / 5
    yield "Training shuffles well: the buffer of shuffle holds the whole set", bool(far)
    yield "Training shuffles again in every epoch", not np.array_equal(first, second)
    _expect_whole_buffer(make_input_fn)
    return f"Images keep their labels, training reshuffles without end, and evaluation gives {COUNT} of {COUNT}."


def _expect_whole_buffer(make_input_fn: Callable) -> None:
    """Raises Wrong where the last of the lab's 1,437 digits are never among the first in training."""
    pixels, numbers = np.zeros([_DIGITS, 8, 8]), np.arange(_DIGITS)
    (first, *_) = _batches(make_input_fn(pixels, numbers, _DIGITS // 10, True), 1)
    expect(
        first[1].max() > 0.95 * _DIGITS,
        f"Of {_DIGITS:,} digits (as in the lab), the first {_DIGITS // 10} that training gives are all among the first "
        f"{first[1].max():,}: the buffer of shuffle does not hold all of them. How many must it hold?",
    )


def _batches(input_fn: Callable, most: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """The first `most` batches of an input_fn, called in a graph of its own as an Estimator does."""
    outside = (
        "The dataset belongs to a different graph from the Estimator's: make all of it inside input_fn, which the "
        "Estimator calls in its own graph."
    )
    with tf.Graph().as_default():
        dataset = input_fn()
        expect_dataset(dataset, "input_fn")
        spec = dataset.element_spec
        pair = isinstance(spec, tuple) and [type(part) for part in spec] == 2 * [tf.TensorSpec]
        expect(pair, f"Each element should be a pair of tensors (images, labels); yours is {spec}.")
        with as_wrong("graph|EagerTensor", outside, (ValueError, RuntimeError)):
            return first_batches(dataset, most)
