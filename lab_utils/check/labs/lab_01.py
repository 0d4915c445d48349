"""The checks of lab 01, the Estimator baseline: input_fn, a program of somebody else, and what to rewrite."""

from collections.abc import Callable

import numpy as np

from lab_utils.check.labs.decisions import expect_decisions
from lab_utils.check.labs.treatment import enter_program
from lab_utils.check.todos import Cases, Slip, todo
from lab_utils.check.tools import as_wrong, expect, expect_dataset, returns
from lab_utils.estimator import tf, v1

COUNT, BATCH = 200, 16


@todo(
    "1a",
    hints=(
        "tf.data.Dataset.from_tensor_slices takes a pair of arrays and has one element for each digit.",
        "Order matters: shuffle and repeat single examples before you make batches. How many examples must the buffer "
        "of shuffle hold to mix all of them?",
        "The function in map gets image and label as two arguments and returns a pair. By default batch keeps the "
        "last, smaller batch, which evaluation needs.",
    ),
    why="shuffle and repeat come before batch, so that each epoch mixes single examples; evaluation has "
    "neither, and keeps its last, smaller batch.",
    slips=(
        Slip(
            ".batch(batch_size)",
            ".batch(batch_size, drop_remainder=True)",
            "Evaluation should give each example exactly "
            "once, but batch drops the last, smaller batch.",
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
        yield f"In {run}, a batch: images [B, 8, 8] and labels [B] with B from batch_size", shapes
        yield f"In {run}, the types, float32 and int32", [array.dtype.name for array in batches[0]]
        images, labels = (np.concatenate(parts) for parts in zip(*batches, strict=True))
        counts = 16 * images
        yield f"In {run}, images are scaled once: 16 becomes", images.max(), 1e-4
        numbers_of_images = np.rint(counts[:, 4, 4] + 17 * np.rint(counts[:, 0, 0]))
        pairs = np.array_equal(numbers_of_images, labels)
        yield f"In {run}, images come with their own labels, not those of other images", pairs
    examples = np.concatenate([labels for _, labels in ends])
    yield "Evaluation gives every example exactly once, in any order", sorted(examples.tolist())
    first, second = labels[:COUNT], labels[COUNT : 2 * COUNT]
    label = "Training shuffles: its order differs from that of the arrays"
    yield label, not np.array_equal(first, numbers)
    mixes = any(np.ptp(labels) >= len(labels) for _, labels in endless)
    yield "Training shuffles single examples, before batch, and does not keep them together", mixes
    with tf.Graph().as_default(), v1.Session() as session:
        count = session.run(training().cardinality())
    endless_kinds = (tf.data.INFINITE_CARDINALITY, tf.data.UNKNOWN_CARDINALITY)
    yield "Training never ends: repeat() without a number", count in endless_kinds
    far = np.abs(first - numbers).mean() > COUNT / 5
    yield "Training shuffles well: the buffer of shuffle holds the whole set", bool(far)
    yield "Training shuffles again in every epoch", not np.array_equal(first, second)
    return f"Images keep their labels; training reshuffles without end; evaluation gives {COUNT} of {COUNT}."


def _batches(input_fn: Callable, most: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """The first `most` batches of an input_fn, called in a graph of its own as an Estimator does."""
    outside = (
        "The dataset belongs to a different graph from the Estimator's: make all of it inside input_fn, which the "
        "Estimator calls in a graph of its own."
    )
    with tf.Graph().as_default(), v1.Session() as session:
        dataset = input_fn()
        expect_dataset(dataset, "input_fn")
        spec = dataset.element_spec
        pair = isinstance(spec, tuple) and [type(part) for part in spec] == 2 * [tf.TensorSpec]
        expect(pair, f"Each element should be a pair of tensors (images, labels); yours is {spec}.")
        with as_wrong("graph|EagerTensor", outside, (ValueError, RuntimeError)):
            following = v1.data.make_one_shot_iterator(dataset).get_next()
        batches = []
        while len(batches) < most:
            try:
                batches.append(session.run(following))
            except tf.errors.OutOfRangeError:
                break
        return batches


enter_program(
    "1b",
    "plateau",
    hints=(
        "A cross-entropy of 1.46 nats means that the right class gets a probability of 23 %. What keeps it so low?",
        "Follow the ten numbers from the last layer to the loss: what range does each step's output have?",
    ),
    why="inference returns logits. The loss applies a softmax itself, and PREDICT applies one for its callers.",
)


@todo(
    "1c",
    hints=(
        "The TPU's host does not run your Python. Which of these datasets can it read without Python?",
        "A constant is part of the graph, and a graph is sent as one message of 2 GB at most.",
    ),
    why="A port needs a model_fn of its own, and a dataset that runs in the graph without Python and without all "
    "the data in it.",
)
def decision(first: dict) -> str:
    """What each of six programs needs before its port."""
    right = {
        "own model_fn; tf.data over TFRecords": ("port", "A dataset in the graph and a model_fn: what is missing?"),
        "own model_fn; 300 kB by from_tensor_slices": ("port", "The arrays become small constants, which the host "
         "gets with the graph."),
        "own model_fn; 6 GB by from_tensor_slices": ("input", "All data become constants of the graph, and a graph "
         "has at most 2 GB."),
        "own model_fn; from_generator, with OpenCV": ("input", "The model can stay. But the generator is Python, and "
         "the TPU's host may be another machine."),
        "DNNClassifier; tf.data over TFRecords": ("model", "The dataset can stay. But a pre-made Estimator hides its "
         "model_fn."),
        "a loop around session.run with feed_dict": ("both", "The loop, the input and the step are all in Python "
         "here. Which of them may stay there?"),
    }  # fmt: skip
    expect_decisions(first, right, ("port", "input", "model", "both"))
    return "Two programs can be ported now. The others must first replace their input, their model_fn or both."
