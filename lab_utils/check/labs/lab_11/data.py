"""What a Keras model is fed: TODO 11a, the training data, and 11d, the evaluation's."""

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np

from lab_utils.check.labs.calls import Call, recorded
from lab_utils.check.todos import todo
from lab_utils.check.tools import a, expect, other_names
from lab_utils.estimator import tf

IMAGES = np.random.default_rng(1).integers(0, 17, [130, 8, 8, 1]).astype(np.uint8)
LABELS = np.arange(130, dtype=np.int32)  # each picture known by its label


@todo(
    "11a",
    hints=(
        'What should be shuffled, examples or batches? And what should repeat, so that no example is lost?',
        'augmented takes a batch of images, and the labels stay as they are. What comes last?',
    ),
    why='Everything random is on the host, and done again in each pass.',
)
def train_dataset(make_train_dataset: Callable) -> str:
    """Shuffled without end, full batches, augmented on the host."""
    early = []

    def negative(images: tf.Tensor) -> tf.Tensor:
        """Stands for augmented, and can be undone."""
        if tf.executing_eagerly():
            early.append(True)
        return 16 - tf.cast(images, tf.uint8)

    with other_names(make_train_dataset, augmented=negative), recorded() as calls:
        dataset = make_train_dataset(IMAGES, LABELS, 24)
    _check_batches(dataset, 2, 24)
    expect(
        not early,
        "augmented is called once, on all pictures, before training begins: every pass would bring the same "
        "changes. Call it in dataset.map.",
    )
    labels, pictures = [], []
    for images, classes in dataset.take(13):  # 312 examples of 130
        pictures += list(images.numpy())
        labels += classes.numpy().tolist()
    expect(
        len(labels) == 312,
        f"The data end after {len(labels) // 24} batches, and training goes on for longer: repeat().",
    )
    following = [(after - before) % 130 == 1 for before, after in pairwise(labels)]
    expect(not all(following[:23]) or not all(following[24:47]), _order(labels))
    expect(
        not all(picture.tobytes() in _GIVEN for picture in pictures),
        "The pictures come as they are: send each batch through augmented(images).",
    )
    expect(
        all(np.array_equal(16 - image, IMAGES[label]) for image, label in zip(pictures, labels, strict=True)),
        "A picture comes with the label of another one, or went through more than augmented: shuffle pairs, "
        "and change the images alone.",
    )
    _check_order(calls)
    expect(
        max(labels[:24]) > 70,
        "A small shuffle buffer hands over the first examples first: take one of the size of the data, or "
        "of a thousand and more.",
    )
    few = make_train_dataset(IMAGES[:10], LABELS[:10], 24)
    expect(
        sum(1 for _ in few.take(2)) == 2,
        "repeat stands below batch(drop_remainder=True): each pass loses what does not fill a batch. Repeat "
        "the examples, then batch them.",
    )
    return "Full batches of moved pictures, without end; the host does the moving."


_GIVEN = {image.tobytes() for image in IMAGES}


def _check_order(calls: list[Call]) -> None:
    """Raises Wrong where the steps of the training data keep what should be new, or end without prefetch."""
    names = [call.name for call in calls]
    expect(
        not any(call.arguments.get("reshuffle_each_iteration") is False for call in calls),
        "With reshuffle_each_iteration=False every pass brings the same order.",
    )
    expect(
        "cache" not in names or names.index("cache") < min(names.index("repeat"), names.index("map")),
        "cache() keeps what stands above it: changed pictures would be the same in each pass, and a dataset "
        "without end never fits.",
    )
    expect(
        names[-1] == "prefetch",
        "One batch should be prepared ahead, while the device works: prefetch, as the last step.",
    )


def _order(labels: list[int]) -> str:
    """What is wrong where each batch has its examples in the order of the data."""
    if labels[:48] == LABELS[:48].tolist():
        return "The examples come in the order of the data: shuffle them."
    return "Batches are shuffled, not examples: shuffle before batch."


def _check_batches(dataset: Any, parts: int, batch: int) -> None:
    """Fixed shapes and the types that were given, `parts` to a batch."""
    expect(
        isinstance(dataset, tf.data.Dataset),
        f"A dataset should be returned; yours returns {a(dataset)}.",
    )
    spec = dataset.element_spec
    expect(
        isinstance(spec, tuple) and len(spec) == parts,
        f"Each element should have {parts} parts; yours is {spec}.",
    )
    shape = spec[0].shape
    expect(
        shape.rank == 4,
        f"The images of an element should be [batch, 8, 8, 1]; yours are {shape}.",
    )
    expect(
        shape[0] is not None,
        f"The images have the shape {shape}: the last batch may be smaller, and a TPU program has one "
        "shape. drop_remainder=True.",
    )
    expect(
        shape[0] == batch,
        f"With a global_batch of {batch} the images have the shape {shape}: batch by global_batch.",
    )
    expect(
        spec[0].dtype == tf.uint8 and spec[1].dtype == tf.int32,
        f"Images should stay uint8 and labels int32; yours are {spec[0].dtype.name} and "
        f"{spec[1].dtype.name}.",
    )


@todo(
    "11d",
    hints=(
        "How many examples are missing to the next multiple of global_batch? -n % m tells, in Python.",
        'Three arrays get as many more entries: which values may be anything, and which may not?',
    ),
    why='Full batches without losing a picture: what fills them up weighs nothing.',
)
def eval_dataset(make_eval_dataset: Callable) -> str:
    """Each picture once with weight 1, the rest with weight 0."""
    for count, batch, batches in ((130, 100, 2), (96, 48, 2), (5, 8, 1)):
        dataset = make_eval_dataset(IMAGES[:count], LABELS[:count], batch)
        _check_batches(dataset, 3, batch)
        expect(
            dataset.element_spec[2].dtype == tf.float32,
            f"The weights should be float32; yours are {dataset.element_spec[2].dtype.name}.",
        )
        taken = list(dataset.take(batches + 3).as_numpy_iterator())
        expect(
            len(taken) < batches + 3,
            "The evaluation does not end: each picture once, so without repeat().",
        )
        expect(bool(taken), f"Of {count} pictures in batches of {batch}, all are left out.")
        parts = [np.concatenate(part) for part in zip(*taken, strict=True)]
        images, labels, weights = parts
        counted = weights.ravel() > 0
        expect(
            counted.sum() >= count or not len(labels) < count,
            f"Of {count} pictures in batches of {batch}, {count - int(counted.sum())} are left out.",
        )
        expect(
            set(np.unique(weights)) <= {0.0, 1.0} and counted.sum() == count,
            f"{count} pictures, and {int(counted.sum())} examples of a weight above 0: a picture has "
            "weight 1, the filling weight 0.",
        )
        expect(
            np.array_equal(images[counted], IMAGES[:count])
            and np.array_equal(labels[counted], LABELS[:count]),
            "The pictures of weight 1 are not the given ones in their order, each with its label.",
        )
        expect(
            counted[:count].all(),
            "The filling stands before the pictures or between them: it fills up the last batch.",
        )
        expect(
            len(labels) == batches * batch,
            f"{count} pictures fill {batches} batches of {batch}; yours has {len(labels) // batch}: "
            "a needless one.",
        )
    return "Each picture once; the filling weighs nothing."
