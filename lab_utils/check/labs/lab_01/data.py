"""What goes into the model, and the model: TODO 1a, input_fn, 1b, inference, and 1f, serving."""

from collections.abc import Callable

import numpy as np

from lab_utils.check.labs import logits as of_logits
from lab_utils.check.todos import Cases, todo
from lab_utils.check.tools import expect, expect_dataset, returns, translated
from lab_utils.estimator import tf, v1

COUNT, BATCH, CLASSES = 200, 16, 10


@todo(
    "1a",
    hints=(
        "tf.data.Dataset.from_tensor_slices takes a pair of arrays and has one element for each digit.",
        "Order matters: what shuffles and repeats single examples comes before what makes batches. How many "
        "examples must the buffer of shuffle hold to mix all of them?",
        "A function in map gets image and label as two arguments and returns a pair. By default batch keeps "
        "the last, smaller batch, which evaluation needs.",
    ),
    why="shuffle and repeat come before batch, so that each epoch mixes single examples; evaluation has "
    "neither, and keeps its last, smaller batch.",
    slips={
        (
            ".batch(batch_size)",
            ".batch(batch_size, drop_remainder=True)",
        ): "Evaluation should give each example exactly once: batch drops the last, smaller one.",
    },
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
    returns(training, lambda _: is_function, "make_input_fn", noun)
    ends, endless = _batches(evaluation, 2 * COUNT), _batches(training, 3 * COUNT // BATCH)
    expect(len(ends) < 2 * COUNT, "Evaluation does not end: repeat() belongs to training alone.")
    for run, taken in (("evaluation", ends), ("training", endless)):
        shapes = [list(each.shape) for each in taken[0]]
        yield f"A batch of {run}, images [B, 8, 8] and labels [B] with B from batch_size", shapes
        yield f"The types of {run}, float32 and int32", [each.dtype.name for each in taken[0]]
        images, labels = (np.concatenate(each) for each in zip(*taken, strict=True))
        counts = 16 * images
        yield f"Images of {run} go through scaled, once: 16 becomes", images.max(), 1e-4
        shown = np.rint(counts[:, 4, 4] + 17 * np.rint(counts[:, 0, 0]))
        paired = np.array_equal(shown, labels)
        yield f"Images of {run} come with their own labels, not those of other images", paired
    seen = np.concatenate([labels for _, labels in ends])
    yield "Evaluation gives every example exactly once, in any order", sorted(seen.tolist())
    first, second = labels[:COUNT], labels[COUNT : 2 * COUNT]
    yield (
        "Training shuffles: not in the same order as the arrays",
        not np.array_equal(first, numbers),
    )
    mixed = any(np.ptp(labels) >= len(labels) for _, labels in endless)
    yield "Training shuffles single examples, before batch, and does not keep them together", mixed
    yield "Training never ends: repeat() without a number", _endless(training)
    far = np.abs(first - numbers).mean() > COUNT / 5
    yield "Training shuffles well: the buffer of shuffle holds the whole set", bool(far)
    yield "Training shuffles again in every epoch", not np.array_equal(first, second)
    return f"Pairs stay together; training goes on and shuffles again; evaluation gives {COUNT} of {COUNT}."


def _batches(input_fn: Callable, most: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """The first `most` batches of an input_fn, called in a graph of its own as an Estimator does."""
    outside = (
        "The dataset belongs to another graph than the Estimator's: make all of it inside input_fn, which the "
        "Estimator calls in a graph of its own."
    )
    with tf.Graph().as_default(), v1.Session() as session:
        dataset = input_fn()
        expect_dataset(dataset, "input_fn")
        spec = dataset.element_spec
        pair = isinstance(spec, tuple) and [type(each) for each in spec] == 2 * [tf.TensorSpec]
        expect(pair, f"Each element should be a pair of tensors (images, labels); yours is {spec}.")
        with translated("graph|EagerTensor", outside, (ValueError, RuntimeError)):
            following = v1.data.make_one_shot_iterator(dataset).get_next()
        taken = []
        while len(taken) < most:
            try:
                taken.append(session.run(following))
            except tf.errors.OutOfRangeError:
                break
        return taken


def _endless(input_fn: Callable) -> bool:
    """Whether the dataset goes on for ever, or cannot say how long."""
    with tf.Graph().as_default(), v1.Session() as session:
        endless = (tf.data.INFINITE_CARDINALITY, tf.data.UNKNOWN_CARDINALITY)
        return bool(session.run(input_fn().cardinality()) in endless)


@todo(
    "1b",
    hints=(
        "images has no axis for channels, and a convolution wants one: None in an index adds it.",
        "Convolution with an activation, pooling, flatten, dense: each takes what the one before returned.",
        "Logits may have any sign. What does that say about an activation of the last layer?",
    ),
    why="The hidden layers have activations, so that the whole is more than a linear map; the last one has "
    "none, since the loss does the softmax.",
)
def logits_of_digits(inference: Callable) -> str:
    """Ten logits for each image, whatever the batch."""
    any_number = "inference should take any number of images; is a batch size written into it?"
    with tf.Graph().as_default(), v1.Session() as session:
        v1.set_random_seed(1)
        images = v1.placeholder(tf.float32, [None, 8, 8])
        logits = inference(images)
        returns(logits, tf.Tensor, "inference", "a tensor of logits")
        fits = logits.dtype == tf.float32 and logits.shape.rank == 2 and logits.shape[1] == CLASSES
        told = f"Logits should be float32 [B, 10]; yours are {logits.dtype.name} {logits.shape}."
        expect(fits, told)
        of_logits.expect_bare(logits)
        has_variables = bool(v1.trainable_variables())
        expect(has_variables, "There are no trainable variables: use layers of v1.layers.")
        session.run(v1.global_variables_initializer())
        probe = np.random.default_rng(3).random((24, 8, 8), np.float32)
        few, others = probe[:5], probe[5:10]
        with translated(".", any_number, (tf.errors.InvalidArgumentError,)):
            whole, again, part, both, zero = (
                session.run(logits, {images: batch})
                for batch in (probe, probe, few, few + others, 0 * few)
            )
    expect(len(whole) == 24, f"24 images gave {len(whole)} rows: keep the batch axis first.")
    of_logits.expect_logits(whole)
    expect(whole.min() < 0, "None is negative: the last layer should have no activation.")
    expect(
        np.allclose(whole, again, rtol=1e-3, atol=1e-5),
        "The same image gives other logits at each call. inference takes no mode, so leave dropout and other "
        "chance out of it.",
    )
    expect(
        np.allclose(whole[:5], part, rtol=1e-3, atol=1e-5),
        "An image's logits depend on the other images of the batch; serving will send them one by one.",
    )
    expect(
        not np.allclose(both + zero, whole[:5] + whole[5:10], rtol=1e-3, atol=1e-4),
        "The whole is one linear map: put a hidden layer with an activation in it.",
    )
    return "Ten logits for each image, whatever the batch size."


@todo(
    "1f",
    hints=(
        "Any number of images: None is a size that is not known yet.",
        "Two sides of the same input: what the caller sends, and what the model gets. Which of them goes "
        "through scaled?",
        "receiver_tensors is a dict from the name to the placeholder itself.",
    ),
    why="The caller sends what it has, and scaled, the function of training, makes of it what the model was "
    "trained on.",
)
def serving(serving_input_fn: Callable) -> Cases:
    """Raw pixels in, what training saw out."""
    noun = "a TensorServingInputReceiver (a plain ServingInputReceiver makes a dict of a single tensor)"
    counts = np.random.default_rng(1).integers(0, 15, (3, 8, 8)).astype(np.float32)
    with tf.Graph().as_default(), v1.Session() as session:
        receiver = serving_input_fn()
        kind = tf.estimator.export.TensorServingInputReceiver
        returns(receiver, kind, "serving_input_fn", noun)
        sent = receiver.receiver_tensors
        named = isinstance(sent, dict) and list(sent) == ["pixels"]
        expect(named, f'receiver_tensors should be a dict with the one name "pixels", not {sent}.')
        pixels = sent["pixels"]
        found = [pixels.op.type, pixels.dtype.name, str(pixels.shape)]
        yield (
            "The caller fills a placeholder with any number of images, float32 [None, 8, 8]",
            found,
        )
        features = session.run(receiver.features, {pixels: counts})
    yield "What the model gets of three images: scaled, once, as in training", features
    return "Counts from 0 to 16 come in; the model gets what it was trained on."
