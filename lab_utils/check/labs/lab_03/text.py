"""Text: TODO 3f, one length for all sentences, and 3g, a mean over words alone."""

from collections.abc import Callable

import numpy as np

from lab_utils.check.outcome import Wrong
from lab_utils.check.todos import Cases, todo
from lab_utils.check.tools import expect, expect_dataset, returns, translated
from lab_utils.dry_run.inspect import CannotLower, lower_function
from lab_utils.estimator import tf

SENTENCES = ([1, 2, 3], [4, 5, 6, 7, 8, 9, 1], [2, 4, 6, 8, 1], [], [7, 7])


def _sentences() -> tf.data.Dataset:
    return tf.data.Dataset.from_generator(
        lambda: iter(SENTENCES), output_signature=tf.TensorSpec([None], tf.int32)
    )


@todo(
    "3f",
    hints=(
        "words[:length] cuts, and leaves a shorter sentence alone. Which of the two should be "
        "counted, before or after the cut?",
        "padded_batch takes a shape for each part of the pair. How long is the first, and what "
        "is the shape of a count?",
    ),
    why="Cut, then count, then pad: so the count is that of the words that are still there, and "
    "every row has one length.",
)
def padded_text(padded: Callable) -> Cases:
    """Sentences of one length with their counts, in full batches."""
    length, batch = 5, 2
    dataset = padded(_sentences(), length, batch)
    expect_dataset(dataset, "padded")
    spec = dataset.element_spec
    expect(
        isinstance(spec, tuple) and len(spec) == 2,
        f"Each element should be a pair (words, how many); yours is {spec}.",
    )
    words, counts = spec
    in_order = (words.shape.rank, counts.shape.rank) != (1, 2)
    expect(in_order, "The pair is in the other order: the words first, then how many they are.")
    told = "The static shape of the words, padded to [length] rather than the longest (drop_remainder=True)"
    yield f"{told}, with length {length} and batch {batch}", str(words.shape)
    yield "The static shape of the counts", str(counts.shape)
    yield "The types, both int32", [words.dtype.name, counts.dtype.name]
    too_long = f"A sentence of 7 words is longer than {length}: cut it before it is padded."
    with translated("", too_long, (tf.errors.OpError,)):
        taken = list(dataset.as_numpy_iterator())
    rows = [row.tolist() for words, _ in taken for row in words]
    numbers = [int(number) for _, counts in taken for number in counts]
    each = "Each sentence should become a row: cut to its first words, then filled up with 0. The sentence"
    for number, sentence in enumerate(SENTENCES[:4]):
        found = rows[number] if number < len(rows) else None
        yield f"{each} {number + 1}, {sentence}", found
    yield "How many sentences there are in full batches", len(rows)
    yield "How many words of each sentence are kept, which counts them after the cut", numbers
    return "One shape for all; words counted after the cut."


@todo(
    "3g",
    hints=(
        "The mask is [B, T] and the vectors are [B, T, D]: one of them needs another axis "
        "before they are multiplied.",
        "Divide by the number of words. Where there are none, which divisor gives zeros?",
    ),
    why="The mask has a static width and keeps the shape; the values say what counts.",
)
def mean_over_words(mean_of_words: Callable) -> Cases:
    """The mean over the words alone, in shapes that XLA knows."""
    lengths = np.array([1, 3, 4, 0], np.int32)
    random = np.random.default_rng(0).normal(size=[4, 6, 5]).astype(np.float32)
    is_word = (np.arange(6) < lengths[:, None])[:, :, None]
    vectors = np.where(is_word, random, 1e3).astype(np.float32)
    _lowers(mean_of_words, vectors, lengths)
    try:
        made = mean_of_words(tf.constant(vectors), tf.constant(lengths))
    except tf.errors.InvalidArgumentError as error:
        if "[4,6,5] vs. [4,6]" not in error.message:
            raise
        raise Wrong(
            "The mask is [B, T], the vectors are [B, T, D]: mask[:, :, None] gives it the third axis."
        ) from None
    returns(made, tf.Tensor, "mean_of_words", "a tensor")
    yield "The shape and type of the means", [made.shape.as_list(), made.dtype.name]
    made = made.numpy()
    counted = "Huge vectors of padding after the last word leave the mean as it is"
    yield counted, bool(np.abs(made[:3]).max() < 50)
    yield "The mean of no words, zeros (0 / 0 is not a number: divide by 1 at least)", made[3]
    yield "The sums of the vectors of words, divided by the number of its words", made, 1e-4
    wider = np.pad(vectors, ((0, 0), (0, 3), (0, 0)))
    with translated(
        "",
        "It takes vectors of [4, 6, 5] and not of [4, 9, 5]: the mask is as wide as they are, vectors.shape[1].",
        (tf.errors.InvalidArgumentError, ValueError),
    ):
        again = mean_of_words(tf.constant(wider), tf.constant(lengths)).numpy()
    expect(
        np.allclose(again, made, atol=1e-4),
        "Three more positions of padding change the mean: divide by the number of words, not of positions.",
    )
    return "Only words count, and XLA knows every shape."


def _lowers(mean_of_words: Callable, vectors: np.ndarray, lengths: np.ndarray) -> None:
    """Whether XLA takes it, whatever the lengths are."""
    function = lambda features, labels: mean_of_words(features, labels)  # noqa: E731
    try:
        lower_function(function, vectors, lengths, cores=1)
    except CannotLower as refused:
        found = refused.finding()
        if found is not None and found.rule == "TPU301":
            raise Wrong(
                "XLA refuses it: a size depends on the values of lengths. Give the mask a static width, "
                f"maxlen = vectors.shape[1]. XLA says: {str(refused).split('.')[0]}."
            ) from None
        if found is not None and refused.op_type:
            raise Wrong(
                f"A TPU cannot run it: there is no {refused.op_type} op. A mask will do."
            ) from None
