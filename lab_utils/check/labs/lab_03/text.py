"""Text: TODO 3f, one length for all sentences, and 3g, a mean over words alone."""

from collections.abc import Callable

import numpy as np

from lab_utils.check.outcome import Wrong
from lab_utils.check.todos import todo
from lab_utils.check.tools import a, expect, expect_dataset, translated
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
def padded_text(padded: Callable) -> str:
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
    expect(
        (words.shape.rank, counts.shape.rank) != (1, 2),
        "The pair is in the other order: the words first, then how many they are.",
    )
    expect(
        words.shape.rank == 2 and words.shape[1] is not None,
        f"The words have the static shape {words.shape}: padded to the longest of each batch. Pad to "
        "[length].",
    )
    expect(
        words.shape[0] is not None,
        f"The words have the static shape {words.shape}: the last batch may be smaller. drop_remainder=True.",
    )
    expect(
        words.shape.as_list() == [batch, length] and counts.shape.as_list() == [batch],
        f"With length {length} and batch {batch} the shapes should be [{batch}, {length}] and [{batch}]; "
        f"yours are {words.shape} and {counts.shape}.",
    )
    expect(
        words.dtype == counts.dtype == tf.int32,
        f"Both should be int32; yours are {words.dtype.name} and {counts.dtype.name}.",
    )
    try:
        taken = list(dataset.as_numpy_iterator())
    except tf.errors.OpError as error:
        raise Wrong(
            f"A sentence of 7 words is longer than {length}: cut it before it is padded. TensorFlow says: "
            f"{error.message.split('}} ')[-1].split(' [Op')[0]}"
        ) from None
    rows, numbers = (np.concatenate(part) for part in zip(*taken, strict=True))
    given = [(list(row), int(number)) for row, number in zip(rows, numbers, strict=True)]
    cut = [each[:length] for each in SENTENCES[:4]]
    wanted = [(each + [0] * (length - len(each)), len(each)) for each in cut]
    rows = [row for row, _ in given]
    for number, (row, _) in enumerate(wanted):
        found = [int(each) for each in rows[number]] if number < len(rows) else "missing"
        expect(
            found == row,
            f"Sentence {number + 1}, {SENTENCES[number]}, should become {row}; yours is {found}. Each sentence "
            "stays, in its place: cut to its first words, then filled up with 0 at its end.",
        )
    expect(
        given == wanted,
        f"Of {list(SENTENCES[:4])}, {[n for _, n in wanted]} words are kept; yours counts "
        f"{[n for _, n in given]}.",
    )
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
def mean_over_words(mean_of_words: Callable) -> str:
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
    expect(made is not None, f"mean_of_words returns {a(made)}.")
    expect(
        made.shape.as_list() == [4, 5],
        f"From [4, 6, 5] the means should be [4, 5]; yours are {made.shape}.",
    )
    expect(
        made.dtype == tf.float32,
        f"The means should be float32, as the vectors are; yours are {made.dtype.name}.",
    )
    made = made.numpy()
    total = np.where(is_word, random, 0.0).sum(axis=1)
    expect(
        np.abs(made[:3]).max() < 50,
        "The padding counts: huge vectors after the last word should not change the mean. Multiply by the mask before you add up.",
    )
    expect(
        bool(np.isfinite(made).all()) and not np.abs(made[3]).max() > 1e-6,
        f"A sentence of no words should give zeros; yours gives {made[3, 0]:.3g}. (0 / 0 is not a number: divide by 1 at least.)",
    )
    expect(
        np.allclose(made, total / np.maximum(lengths, 1)[:, None], atol=1e-4),
        "The mean of a sentence should be its sum divided by the number of its words.",
    )
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
