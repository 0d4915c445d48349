"""The checks of lab 03, static shapes."""

import collections
import contextlib
from collections.abc import Callable, Iterator, Mapping
from numbers import Integral
from typing import Any

import numpy as np

from lab_utils.check.todos import Cases, Slip, todo
from lab_utils.check.tools import (
    a,
    as_wrong,
    expect,
    expect_dataset,
    first_batches,
    returns,
    scope_of,
    several,
)
from lab_utils.estimator import tf


@todo(
    "3a",
    hints=(
        "All hosts run the same number of steps. Which host determines this number?",
        "How many examples can one host take in a step at most? So how many steps does that host need?",
        "Once the number of steps is known, is the largest share per core still needed? Which share is just "
        "enough?",
        "Both divisions are rounded up: use math.ceil, or floor division of the negative number. How many rows do all "
        "cores of all hosts have in the end?",
    ),
    why="The host with the most examples determines the number of steps, and then the smallest share per core "
    "that is enough for it. On every host, all rows that are not examples are padding.",
    slips=(
        Slip(
            "per_core = -(-largest // (steps * cores))",
            "per_core = most",
            "The steps are as few as possible. But with so many steps, a smaller share per core leaves less padding.",
        ),
        Slip(
            "largest = max(examples)",
            "largest = -(-sum(examples) // len(examples))",
            "Yours shares all examples evenly among the hosts, but each reads only its own files.",
        ),
        Slip(
            "steps = -(-largest // (most * cores))",
            "steps = -(-largest // most)",
            "In one step, a host takes at most most * cores examples.",
        ),
        Slip(
            "return per_core, steps,",
            "return steps, per_core,",
            "These are the right numbers in the wrong order: return (per_core, steps, padding).",
        ),
        Slip(
            "steps = -(-largest // (most * cores))",
            "steps = largest // (most * cores) + 1",
            "Where the batches divide evenly, yours adds a step.",
        ),
        Slip(
            "per_core * steps * cores * len(examples) - sum(examples)",
            "per_core * steps * cores - largest",
            "That is the padding of the host with the most examples: the other hosts run the same steps.",
        ),
    ),
)
def plan(eval_plan: Callable) -> Cases:
    """Few steps first, then little padding, on every host."""
    for examples, cores, most, words in (
        ([370], 8, 16, "8 cores with at most 16 each"),
        ([384], 8, 16, "8 cores with at most 16 each, which divides evenly"),
        ([1000], 8, 60, "8 cores with at most 60 each"),
        ([10], 8, 128, "8 cores with at most 128 each"),
        ([50], 1, 7, "one core with at most 7"),
        ([400, 400], 8, 32, "two hosts, 8 cores each with at most 32"),
        ([370, 12], 8, 16, "two hosts, 8 cores each with at most 16"),
        ([100, 0, 37, 90], 4, 7, "four hosts, 4 cores each with at most 7"),
    ):
        parts = eval_plan(list(examples), cores, most)
        parts = parts.numpy() if tf.is_tensor(parts) else parts
        parts = parts.tolist() if isinstance(parts, np.ndarray) else parts
        returns(parts, several(parts, 3), "eval_plan", "three numbers, (per_core, steps, padding)")
        whole = all(isinstance(number, Integral) for number in parts)
        expect(
            whole, f"per_core, steps and padding should be whole numbers, int; yours are {parts!r}."
        )
        _expect_plan([int(number) for number in parts], examples, cores, most, words)
        label = f"(per_core, steps, padding) of {examples} examples, {words}"
        yield label, [int(number) for number in parts]
    return "Each plan takes as few steps as possible, and then as little padding, on every host."


def _expect_plan(plan: list[int], examples: list[int], cores: int, most: int, words: str) -> None:
    """Raises `Wrong` where a plan does not do what it says."""
    per_core, steps, padding = plan
    where = (
        f"{examples} examples, {words}: your plan is (per_core, steps, padding) = {tuple(plan)}."
    )
    expect(0 < per_core <= most, f"{where} A core takes 1 to {most} examples in a step.")
    rows = per_core * cores * steps
    message = (
        f"{where} In its {steps} steps a host has {per_core} * {cores} * {steps} = {rows} rows"
    )
    lost = sum(max(0, count - rows) for count in examples)
    expect(not lost, f"{message}: {lost} examples are left out.")
    unused = rows * len(examples) - sum(examples)
    hosts = "" if len(examples) == 1 else f", and all {len(examples)} hosts {rows * len(examples)}"
    expect(padding == unused, f"{message}{hosts}, so {unused} of them are padding.")


_TYPES = (
    "A row of padding needs the types and shapes of an example: float32 [8, 8], float32, int32. (0 is int32, 0.0 is "
    "float32, and NumPy's zeros are float64.)"
)


def _has_features(spec: Any, *names: str) -> bool:
    """Whether elements are pairs of a dict with these features, and labels."""
    return several(spec, 2) and isinstance(spec[0], Mapping) and set(spec[0]) == set(names)


def expect_rows(spec: tuple) -> None:
    """Raises `Wrong` where the rows of a batch, whatever their number, are not those of the examples."""
    shapes = {"image": [8, 8], "weight": [], "label": []}
    for (name, shape), part in zip(shapes.items(), tf.nest.flatten(spec), strict=True):
        known = part.shape.rank is not None and part.shape[1:].is_fully_defined()
        given = part.shape[1:].as_list() if known else f"of the unknown shape {part.shape}"
        expect(
            known and part.shape[1:].as_list() == shape,
            f"In a batch each {name} is {given}, not {shape}. {_TYPES}",
        )


def expect_each_once(numbers: np.ndarray, real: np.ndarray, count: int, where: str) -> None:
    """Raises `Wrong` unless the rows of weight 1 are all examples, each once.

    Args:
        numbers: int [rows of weight 1], which example each of them is.
        real: bool [rows], whether a row has weight 1, in the order of the batches.
        count: of all examples.
        where: of what, in words, for the message.
    """
    found = len(set(numbers.tolist()))
    steps = f"The first {len(real)} rows"
    between = bool(real.any()) and not real[: np.flatnonzero(real)[-1]].all()
    expect(
        found == count or not between,
        f"{where}: {steps} hold {found} of the {count} examples, and padding between them. Padding comes after the last "
        "example: do not shuffle the two together.",
    )
    expect(
        found == count,
        f"{where}: {steps} hold {found} of the {count} examples. The others are lost: is something dropped before the "
        "padding is added?",
    )
    most, times = collections.Counter(numbers.tolist()).most_common(1)[0]
    expect(
        len(numbers) == count,
        f"{where}: some examples count more than once, as number {most}, which counts {times} times.",
    )


@todo(
    "3b",
    hints=(
        "dataset.concatenate(other) appends another dataset, if the elements of both have the same types and "
        "shapes.",
        "tf.data.Dataset.from_tensors makes a dataset of one element, and repeat() repeats this element "
        "forever. Which image, weight and label make it padding? Nest them as weighted_examples does.",
        "With endless padding, no batch is smaller than the others. drop_remainder=True tells TensorFlow so, "
        "and drops nothing.",
    ),
    why="The padding never ends, so it suits every batch size, and drop_remainder only makes the shape static.",
    slips=(
        Slip(
            "examples.concatenate(padding)",
            "examples",
            "There is too little padding, or none: drop_remainder leaves the last examples out.",
        ),
        Slip(
            "examples.concatenate(padding)",
            "padding.concatenate(examples)",
            "The first batches are all padding: put it after the examples.",
        ),
        Slip(
            "examples.concatenate(padding)",
            "examples.repeat()",
            "The last batch is filled up with examples that count more than once.",
        ),
        Slip('"weight": 0.0}, 0)', '"weight": 1.0}, 0)', "The padding has weight 1, so it counts."),
        Slip(
            '"weight": 0.0}, 0)',
            '"weight": 0.0}, -1)',
            "The loss of class -1 is an error or nan, and nan * 0 is nan.",
        ),
        Slip(
            "from_tensors(nothing).repeat()",
            "from_tensors(nothing).repeat(14)",
            "How much padding is needed depends "
            "on the examples and on the batch; endless padding always suffices.",
        ),
    ),
)
def eval_input(make_eval_input_fn: Callable) -> Cases:
    """Every example once with weight 1, whatever the batch; all else has weight 0."""
    for count, batch in ((50, 16), (48, 16), (7, 1024)):
        # The n-th image is full of n, so any image tells its number.
        images = np.tile(np.arange(count, dtype=np.float32)[:, None, None], (1, 8, 8))
        labels = np.arange(count, dtype=np.int32) % 10
        where = f"{count} examples in batches of {batch}"
        input_fn = make_eval_input_fn(images, labels)
        expect(callable(input_fn), f"Return the function input_fn; yours returns {a(input_fn)}.")
        with tf.Graph().as_default():
            with as_wrong("Incompatible dataset elements", _TYPES):
                dataset = input_fn({"batch_size": batch})
            expect_dataset(dataset, "input_fn")
            spec = dataset.element_spec
            expect(
                _has_features(spec, "image", "weight"),
                'Elements should be ({"image": ..., "weight": ...}, label).',
            )
            expect_rows(spec)
            kinds = [f"{part.dtype.name} {part.shape}" for part in tf.nest.flatten(spec)]
            static = f"{where}: the shapes of image, weight and label, made static by params['batch_size'] and drop_remainder"
            yield static, kinds
            batches = first_batches(dataset, -(-count // batch))
        yield f"{where}: the number of batches, the last one filled up with padding", len(batches)
        image, weight, label = (
            np.concatenate([tf.nest.flatten(arrays)[n] for arrays in batches]) for n in range(3)
        )
        yield f"{where}: the different weights", sorted({float(value) for value in weight})
        real = weight == 1.0
        numbers = image[real, 4, 4].astype(int)
        expect_each_once(numbers, real, count, where)
        yield f"{where}: each image has its own label", bool((label[real] == numbers % 10).all())
        classes = set(label) <= set(range(10))
        yield f"{where}: the label of padding is a class, 0 to 9", classes
        finite = bool(np.isfinite(image).all())
        yield f"{where}: all pixels are finite (nan * 0 is nan), in padding too", finite
    return "Each of 50 examples comes once, in full batches; the padding has weight 0."


_REVIEWS = (  # each with the number of stars that is its own
    "film was good",
    "the film was bad",
    "",
    "very very very good",
    "the film was not bad not good not long",
    "not the very long film the",
    "the",
)
_OF_A_BATCH = 3
_RUNS = (  # what an error says while batches are read, and what is told
    (
        "pad to a smaller size",
        "A review has more words than LENGTH, and padded_batch cuts none: cut each review before it.",
    ),
    (
        "not compatible with expected shape",
        "You declared more of the words than is true: each review has a number of words of its own.",
    ),
    (
        "number of elements does not match",
        "The reviews of a batch differ in length: each has to be padded before batch() can join them.",
    ),
)
_NO_RANK = (
    "What numpy_function returns has no shape, not even a number of axes, and a later line needs one. Declare what you "
    "know of it."
)


@todo(
    "3c",
    hints=(
        "Three sizes are unknown: the number of axes, the number of words, and the size of the last batch. "
        "Which line fixes each of them?",
        "A review may have any number of words. Which shape says that there is exactly one axis, of any "
        "length?",
        "How many words does a review have after the cut? Make a tensor of ones of that length, and pad it "
        "together with the words. With which value must it be padded?",
        "padded_batch takes the shapes to which it pads, nested as the elements are.",
    ),
    why="ensure_shape says that there is one axis; the cut is an upper bound, and padded_batch brings each review up to it. "
    "Word 0 is a word, so the weights come from the number of words, and not from their values.",
)
def words_and_weights(review_batches: Callable) -> str:
    """Static batches, cut and padded, with a weight for each word, whatever its number."""
    scope = scope_of(review_batches)
    length, words_of = scope["LENGTH"], scope["words_of"]
    stars = np.arange(len(_REVIEWS), dtype=np.int32)
    with as_wrong("unknown rank", _NO_RANK):
        reviews = tf.data.Dataset.from_tensor_slices((list(_REVIEWS), stars)).repeat()
        batches = review_batches(reviews, _OF_A_BATCH)
    expect_dataset(batches, "review_batches")
    _expect_static_reviews(batches.element_spec, length)
    rows = _rows(batches.take(2 * len(_REVIEWS)))
    for star, text in enumerate(_REVIEWS):
        expect(
            star in rows,
            f"The review {text!r} never comes, in {2 * len(_REVIEWS)} batches: is it filtered out?",
        )
        _expect_row(rows[star], text, words_of(text.encode())[:length].tolist())
    return "Batches have one shape: reviews are cut and padded, and each word has weight 1, also the one of number 0."


def _expect_static_reviews(spec: Any, length: int) -> None:
    """Raises `Wrong` unless the batches of reviews have the types and the static shapes that are asked for."""
    expect(
        _has_features(spec, "words", "weight"),
        f'Elements should be ({{"words": ..., "weight": ...}}, stars); yours are {spec}.',
    )
    size = _OF_A_BATCH
    parts = (
        ("words", spec[0]["words"], tf.int32, [size, length]),
        ("weight", spec[0]["weight"], tf.float32, [size, length]),
        ("the stars", spec[1], tf.int32, [size]),
    )
    for name, part, kind, shape in parts:
        message = f"The static shape of {name} is {part.shape}, and a TPU needs {tuple(shape)}."
        if part.shape.rank == len(shape) and part.shape[0] is None:
            message += " Without drop_remainder=True, the last batch may be smaller."
        elif part.shape.rank == 2 and part.shape[1] is None:
            message += (
                " By default, padded_batch pads to the longest review of each batch, and what is cut after that may "
                "be shorter than LENGTH."
            )
        known = part.shape.rank is not None and part.shape.as_list() == shape
        expect(known, message)
        expect(part.dtype == kind, f"{name} is {part.dtype.name}, and should be {kind.name}.")


def _rows(batches: tf.data.Dataset) -> dict[int, tuple[list[int], list[float]]]:
    """By its stars the words and the weights of each review."""
    rows = {}
    errors = (tf.errors.InvalidArgumentError, tf.errors.DataLossError)
    with contextlib.ExitStack() as stack:
        for part, message in _RUNS:
            stack.enter_context(as_wrong(part, message, errors))
        for features, stars in batches.as_numpy_iterator():
            columns = features["words"].tolist(), features["weight"].tolist(), stars.tolist()
            rows |= {star: (words, weight) for words, weight, star in zip(*columns, strict=True)}
    return rows


def _expect_row(row: tuple[list[int], list[float]], text: str, expected: list[int]) -> None:
    """Raises `Wrong` unless a row holds the `expected` words of the review, and the weights that fit them."""
    words, weight = row
    count = len(expected)
    expect(
        words[:count] == expected,
        f"Of {text!r} the batch holds the words {words}, and the first LENGTH words are {expected}.",
    )
    message = (
        f"The words {words} of {text!r} have the weights {weight}: the word of number 0 is a word, too. A number does "
        "not tell a word from padding."
    )
    wanted = [1.0] * count + [0.0] * (len(words) - count)
    by_number = 0 in expected and weight == [float(word != 0) for word in words]
    expect(not by_number, message)
    expect(
        weight == wanted,
        f"The words {words} of {text!r} have the weights {weight}. It has {count} words within LENGTH, so the weights "
        f"are {wanted}.",
    )


_reads: list[str] = []  # of datasets of which only the shapes should be looked at


def _no_rows() -> Iterator[np.ndarray]:
    _reads.append("once")
    yield from ()


def _part(*shape: int | None) -> tf.TensorSpec:
    """A part of a batch, of that static shape."""
    return tf.TensorSpec(shape, tf.int32)


def _pair(words: tf.TensorSpec, count: tf.TensorSpec, label: tf.TensorSpec) -> tuple:
    """What batches hold: ({name: part, ...}, label)."""
    return {"words": words, "count": count}, label


_IN_WORDS = "Lea's, whose batches have (16, None) words"
_IN_LABELS = "an unknown size only in the labels"
_SETS = (  # in words, the batches, and what is asked where the test does not fail; "" for static ones
    ("batches of 16 sentences of 12 words", _pair(_part(16, 12), _part(16), _part(16)), ""),
    ("batch(16), which gives (None, 12)", _pair(_part(None, 12), _part(None), _part(None)),
     "Which size is unknown without drop_remainder?"),
    (_IN_WORDS, _pair(_part(16, None), _part(16), _part(16)),
     "Which sizes does a shape have besides the first?"),
    ("an unknown size only in the last part of the features", _pair(_part(16, 12), _part(16, None), _part(16)),
     "Does your function look at every part of the features?"),
    (_IN_LABELS, _pair(_part(16, 12), _part(16), _part(None)),
     "Labels go through the infeed, too."),
    ("the result of Python code, which has no shape at all", _pair(tf.TensorSpec(None, tf.int32), _part(16), _part(16)),
     "Its shape has not even a number of axes."),
    ("one tensor without a name, (16, None)", _part(16, None), "Elements need not be dicts or tuples."),
    ("one tensor without a name, (16, 8, 8)", _part(16, 8, 8), ""),
    ("features in a dict within a dict, (16, None)", {"a": {"b": _part(16, None)}},
     "Elements may be nested to any depth: what does tf.nest.flatten do?"),
    ("a sparse tensor of the shape (16, 12)", (tf.SparseTensorSpec([16, 12], tf.float32), _part(16)),
     "This shape says nothing of how many values there are. What is such a tensor made of?"),
    ("batches of 16 numbers, (16,)", ({"number": _part(16)}, _part(16)), ""),
)  # fmt: skip


def _raised(test: Callable, dataset: tf.data.Dataset) -> Exception | None:
    """What a learner's test raises for a dataset, if anything."""
    try:
        test(dataset)
    except NotImplementedError:  # of a TODO that is open
        raise
    except Exception as error:
        return error
    return None


@todo(
    "3d",
    hints=(
        "Which attribute of a dataset holds the shapes and types of its elements, without reading one?",
        "It is nested as the elements are. tf.nest.flatten makes a list of any such structure.",
        "Ask the tf.TensorShape itself whether all its sizes are known.",
        "A sparse tensor is a composite of three tensors. tf.nest.flatten has an argument for such "
        "composites.",
    ),
    why="The static shapes are all that the TPU's infeed is compiled for, and they are known without any data.",
    slips=(
        Slip(
            "if not part.shape.is_fully_defined()",
            "if part.shape.is_fully_defined()",
            "The test fails where it should pass, and passes where it should fail.",
        ),
        Slip(
            "not part.shape.is_fully_defined()",
            "part.shape.rank is None",
            "You look only for shapes that are unknown as a whole: a single size may be unknown, too.",
        ),
        Slip(
            "not part.shape.is_fully_defined()",
            "part.shape.rank is None or part.shape[0] is None",
            "You look only at the first size, that of the batch.",
        ),
    ),
)
def the_test(expect_static: Callable) -> str:
    """Fails for each unknown size, wherever it stands, and for nothing else."""
    said = {}
    for words, spec, reason in _SETS:
        _reads.clear()
        error = _raised(
            expect_static, tf.data.Dataset.from_generator(_no_rows, output_signature=spec)
        )
        expect(not _reads, "Your test reads the data. The static shapes are known without them.")
        expect(
            error is not None or not reason,
            f"A dataset passes that a TPU would refuse: {words}. {reason}",
        )
        kind = f"For {words}, your test raised {type(error).__name__}, not ValueError: {error}. {reason}".rstrip()
        expect(error is None or isinstance(error, ValueError), kind)
        expect(
            bool(reason) or error is None,
            f"A dataset that is static does not pass: {words}. Your test said: {error}",
        )
        said[words] = str(error)
    expect(
        said[_IN_LABELS] != said[_IN_WORDS],
        f'Your error says "{said[_IN_LABELS]}" of the labels and of the words: name the part that is not static, by '
        "its name, its place or its shape.",
    )
    return "Your test fails for each unknown size, wherever it stands, and reads no data."
