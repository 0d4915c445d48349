"""What goes into the model: TODO 1a, input_fn, and TODO 1f, serving."""

from collections.abc import Callable

import numpy as np

from lab_utils.check.todos import todo
from lab_utils.check.tools import a, expect, translated
from lab_utils.estimator import tf, v1

COUNT, BATCH = 200, 16


def batches(input_fn: Callable, most: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """The first `most` batches of an input_fn, called in a graph of its own as an Estimator does."""
    with tf.Graph().as_default(), v1.Session() as session:
        dataset = input_fn()
        expect(
            isinstance(dataset, tf.data.Dataset),
            f"input_fn should return a tf.data.Dataset; yours returns {a(dataset)}.",
        )
        spec = dataset.element_spec
        expect(
            isinstance(spec, tuple) and len(spec) == 2,
            f"Each element should be a pair (images, labels); yours is {spec}.",
        )
        expect(
            all(isinstance(part, tf.TensorSpec) for part in spec),
            f"Each element should be a pair of two tensors, images and labels; yours is {spec}.",
        )
        following = _following(dataset)
        taken = []
        while len(taken) < most:
            try:
                taken.append(session.run(following))
            except tf.errors.OutOfRangeError:
                break
        return taken


def _following(dataset: tf.data.Dataset) -> tuple[tf.Tensor, ...]:
    outside = (
        "The dataset belongs to another graph than the Estimator's: make all of it inside input_fn, which the "
        "Estimator calls in a graph of its own."
    )
    with translated("graph|EagerTensor", outside, (ValueError, RuntimeError)):
        return v1.data.make_one_shot_iterator(dataset).get_next()


@todo(
    "1a",
    hints=(
        "tf.data.Dataset.from_tensor_slices takes a pair of arrays and has one element for each"
        " digit.",
        "Order matters: what shuffles and repeats single examples comes before what makes "
        "batches. How many examples must the buffer of shuffle hold to mix all of them?",
        "A function in map gets image and label as two arguments and returns a pair. By default"
        " batch keeps the last, smaller batch, which evaluation needs.",
    ),
    why="shuffle and repeat come before batch, so that each epoch mixes single examples; evaluation"
    " has neither, and keeps its last, smaller batch.",
)
def input_fn_of_digits(make_input_fn: Callable) -> str:
    """A dataset of pairs: shuffled and endless for training, each example once for evaluation."""
    # The n-th image is full of n % 17, with n // 17 at its corner: any image tells its number.
    numbers = np.arange(COUNT)
    pixels = np.tile((numbers % 17.0)[:, None, None], (1, 8, 8))
    pixels[:, 0, 0] = numbers // 17

    made = {mode: make_input_fn(pixels, numbers, BATCH, mode) for mode in (True, False)}
    expect(
        not isinstance(made[True], tf.data.Dataset) and callable(made[True]),
        "make_input_fn should return a function; the Estimator calls it inside its own graph, and a "
        f"dataset made outside belongs to another. Yours returns {a(made[True])}.",
    )
    evaluation = batches(made[False], 2 * COUNT)
    training = batches(made[True], 3 * COUNT // BATCH)

    expect(
        len(evaluation) < 2 * COUNT, "Evaluation does not end: repeat() belongs to training alone."
    )
    for images, labels in (evaluation[0], training[0]):
        expect(
            images.shape[1:] == (8, 8) and labels.ndim == 1,
            f"A batch should be images [B, 8, 8] and labels [B]; yours are {images.shape}, {labels.shape}.",
        )
        counts = images * 16.0
        expect(
            images.dtype == np.float32 and images.max() <= 1.0 and np.allclose(counts, np.rint(counts)),
            f"Images should go through scaled, once: float32, a count of 16 becomes 1. Yours are "
            f"{images.dtype} up to {images.max():.3g}, {np.unique(images)[1]:.3g} where the count is 1.",
        )
        expect(labels.dtype == np.int32, f"Labels should be int32; yours are {labels.dtype}.")
        shown = np.rint(counts[:, 4, 4] + 17 * np.rint(counts[:, 0, 0])).astype(int)
        expect(
            np.array_equal(shown, labels),
            "Images come with the labels of other images: shuffle pairs, rather than images and labels separately.",
        )
    order = np.concatenate([labels for _, labels in training])
    expect(
        not np.array_equal(order[:COUNT], numbers),
        "Training gives the examples in the same order as the arrays hold them: shuffle.",
    )
    expect(
        any(np.ptp(labels) >= len(labels) for _, labels in training),
        "Training shuffles batches: the same examples stand together in every epoch. Shuffle single examples, "
        "before batch.",
    )
    for images, _ in (evaluation[0], training[0]):
        expect(
            len(images) == BATCH,
            f"With batch_size={BATCH} a batch of yours holds {len(images)} images: use batch_size.",
        )

    seen = np.concatenate([labels for _, labels in evaluation])
    expect(
        sorted(seen) == list(numbers),
        f"Evaluation should give each of {COUNT} examples exactly once; yours gives {len(set(seen))} of "
        f"them, in {len(seen)} rows. Does batch drop the last, smaller one?",
    )

    expect(
        _endless(made[True]),
        f"Training ends after {'some epochs' if len(order) > 2 * COUNT else f'{len(order)} examples'}; the "
        "Estimator decides when to stop: repeat() without a number.",
    )
    first, second = order[:COUNT], order[COUNT : 2 * COUNT]
    moved = np.abs(first - numbers).mean()
    expect(
        moved > COUNT / 5,
        f"Training hardly shuffles: an example of {COUNT} moves by {moved:.0f} places on average, where "
        f"{COUNT / 3:.0f} would do. The buffer of shuffle should hold the whole set.",
    )
    expect(
        not np.array_equal(first, second),
        "Shuffle again in every epoch; yours repeats one order.",
    )
    return f"Pairs stay together; training goes on and shuffles again; evaluation gives {COUNT} of {COUNT}."


def _endless(input_fn: Callable) -> bool:
    """Whether the dataset goes on for ever, or cannot say how long."""
    with tf.Graph().as_default(), v1.Session() as session:
        endless = (tf.data.INFINITE_CARDINALITY, tf.data.UNKNOWN_CARDINALITY)
        return session.run(input_fn().cardinality()) in endless


@todo(
    "1f",
    hints=(
        "Any number of images: None is a size that is not known yet.",
        "Two sides of the same input: what the caller sends, and what the model gets. Which of "
        "them goes through scaled?",
        "receiver_tensors is a dict from the name to the placeholder itself.",
    ),
    why="The caller sends what it has, and scaled, the function of training, makes of it what the "
    "model was trained on.",
)
def serving(serving_input_fn: Callable) -> str:
    """Raw pixels in, what training saw out."""
    with tf.Graph().as_default(), v1.Session() as session:
        receiver = serving_input_fn()
        expect(
            isinstance(receiver, tf.estimator.export.TensorServingInputReceiver),
            f"Return a TensorServingInputReceiver; yours is {a(receiver)}. A plain ServingInputReceiver "
            "makes a dict of a single tensor, which inference does not take.",
        )
        sent = receiver.receiver_tensors
        expect(
            isinstance(sent, dict) and list(sent) == ["pixels"],
            f'receiver_tensors should be a dict with the one name "pixels"; yours holds {list(sent)}.',
        )
        pixels = sent["pixels"]
        expect(
            pixels.op.type == "Placeholder",
            'receiver_tensors["pixels"] should be the placeholder itself, which the caller fills.',
        )
        expect(
            pixels.dtype == tf.float32, f"Pixels should come as float32, not {pixels.dtype.name}."
        )
        expect(
            pixels.shape.as_list() == [None, 8, 8],
            f"Take any number of images, [None, 8, 8]; yours takes {pixels.shape}.",
        )
        counts = np.random.default_rng(1).integers(0, 15, (3, 8, 8)).astype(np.float32)
        features = session.run(receiver.features, {pixels: counts})
    expect(
        isinstance(features, np.ndarray) and features.shape == counts.shape,
        f"From {list(counts.shape)} pixels the model should get {list(counts.shape)} features, as in training; "
        f"yours are {list(np.shape(features))}.",
    )
    expect(
        np.allclose(features, counts / 16.0),
        f"A count of {counts[0, 0, 0]:.0f} should reach the model as {counts[0, 0, 0] / 16:.4g}, as in "
        f"training: scaled, once, whatever the other pixels are. Yours is {features[0, 0, 0]:.4g}.",
    )
    return "Counts from 0 to 16 come in; the model gets what it was trained on."
