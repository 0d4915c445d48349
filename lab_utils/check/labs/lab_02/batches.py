"""What a core gets: TODO 2d, full batches of the size that params names."""

import contextlib
from collections.abc import Callable

import numpy as np

from lab_utils.check.todos import todo
from lab_utils.check.tools import expect, expect_dataset, other_names, translated
from lab_utils.estimator import tf, v1


@todo(
    "2d",
    hints=(
        "Where does TPUEstimator put the size of a batch?",
        "One argument of batch leaves a smaller last batch out.",
    ),
    why="The program is compiled for one shape, and only TPUEstimator knows how the global batch is"
    " shared out.",
)
def input_fn(make_input_fn: Callable) -> str:
    """Full batches of the size that params names, of both splits; an evaluation comes to its end."""
    counts = {"train": 100, "eval": 60}
    pixels = {split: np.full([n, 8, 8], 8.0) for split, n in counts.items()}
    for each in pixels.values():
        each[:, 0, 0] = np.arange(len(each)) % 16
    classes = {split: np.arange(n, dtype=np.int32) % 16 for split, n in counts.items()}
    with other_names(make_input_fn, pixels=pixels, classes=classes):
        for split, run in (("train", "training"), ("eval", "evaluation")):
            number, taken = _batches(make_input_fn(split), run)
            endless = number in (tf.data.INFINITE_CARDINALITY, tf.data.UNKNOWN_CARDINALITY)
            if split == "train":
                expect(endless, f"The dataset of the training ends after {number} batches: repeat().")
            else:
                expect(
                    number != tf.data.INFINITE_CARDINALITY,
                    "The dataset of the evaluation never ends: repeat() is for training alone.",
                )
                expect(
                    endless or number == 2 or not _ours(taken),
                    f"An evaluation of {counts[split]} examples has 2 full batches of 24; yours has {number}.",
                )
            for images, labels in taken:
                paired = np.allclose(images[:, 0, 0] * 16, labels) or not _ours(taken)
                expect(
                    images.dtype == np.float32 and images.max() <= 1.0 and paired,
                    f"In {run} the images should be scaled, float32 from 0 to 1, each with its own label.",
                )
    return "Every batch has the shape that the program is compiled for."


def _ours(taken: list[tuple[np.ndarray, np.ndarray]]) -> bool:
    """Whether these are our pictures, all grey but for a corner; arrays may have been prepared before."""
    return all(np.ptp(images[:, 1:, 1:]) == 0 for images, _ in taken)


def _batches(input_fn: Callable, run: str) -> tuple[int, list[tuple[np.ndarray, np.ndarray]]]:
    """How many batches of 24 an input_fn gives, below 0 where that is unknown, and the first two."""
    with tf.Graph().as_default(), v1.Session() as session:
        with (
            translated(
                "positional argument",
                "input_fn should take params: TPUEstimator passes the batch size there.",
            ),
            translated(
                "EagerTensor|same graph|different graph",
                "Make the whole dataset inside input_fn, which the Estimator calls in a graph of its own.",
                (RuntimeError, ValueError),
            ),
            translated(
                "^'.*batch_size'$",
                'The batch size stands in params["batch_size"]: TPUEstimator puts it there, for training and '
                "for evaluation.",
                (KeyError,),
            ),
        ):
            dataset = input_fn({"batch_size": 24})
        expect_dataset(dataset, "input_fn")
        spec = dataset.element_spec
        expect(
            isinstance(spec, tuple) and len(spec) == 2 and isinstance(spec[0], tf.TensorSpec),
            f"Each element should be a pair (images, labels); yours is {spec}.",
        )
        shape = spec[0].shape
        expect(
            shape[0] is not None,
            f"In {run} the batch's shape is {shape}: the last batch may be smaller, so a TPU program cannot "
            "be compiled for it. drop_remainder=True.",
        )
        expect(
            shape.as_list() == [24, 8, 8],
            f'In {run} with params["batch_size"] of 24 the batch is {shape}, not [24, 8, 8]: batch once, and '
            "take the size from params as it is. It is this input_fn's share already.",
        )
        following = v1.data.make_one_shot_iterator(dataset).get_next()
        taken = []
        with contextlib.suppress(tf.errors.OutOfRangeError):
            for _ in range(2):
                taken.append(session.run(following))
        return session.run(dataset.cardinality()), taken
