"""The last batch: TODO 3a, what it leaves out, 3b, padding it, and 3c, counting no padding."""

import re
from collections.abc import Callable
from numbers import Integral

import numpy as np

from lab_utils.check.labs.logits import classes_compared
from lab_utils.check.outcome import Wrong
from lab_utils.check.todos import Cases, todo
from lab_utils.check.tools import a, call, expect, expect_dataset, returns, translated
from lab_utils.estimator import tf, v1


@todo(
    "3a",
    hints=(
        "batch = per_core * cores is what one step takes. How many whole ones fit into examples?",
        "steps is rounded up: math.ceil, or floor division of the negative number.",
        "padding is what steps * batch is more than examples.",
    ),
    why="Rounding down gives what full batches see; rounding up, what all examples need.",
    slips={
        (
            "batch = per_core * cores",
            "batch = per_core",
        ): "One step takes per_core * cores examples.",
        ("examples // batch * batch", "examples // batch"): "seen should be examples, not batches.",
        (
            "examples // batch * batch",
            "examples % batch",
        ): "seen is what the evaluation drops; the rest is what it sees.",
        (
            "return seen, steps,",
            "return steps, seen,",
        ): "These are the right numbers in another order: return (seen, steps, padding).",
    },
)
def plan(eval_plan: Callable) -> Cases:
    """What full batches leave out, and what padding brings it back."""
    for examples, per_core, cores, told in (
        (370, 16, 8, ""),
        (384, 16, 8, ", which divides evenly: there is no batch to fill up"),
        (100, 16, 8, ""),
        (50, 7, 1, ""),
    ):
        found = eval_plan(examples, per_core, cores)
        three = isinstance(found, tuple | list) and len(found) == 3
        noun = "three numbers, (seen, steps, padding)"
        returns(found, lambda _, three=three: three, "eval_plan", noun)
        whole = all(isinstance(each, Integral) for each in found)
        expect(whole, f"seen, steps and padding should be whole numbers, int; yours are {found!r}.")
        label = f"(seen, steps, padding) of {examples} examples, {cores} cores with {per_core} each{told}"
        yield label, [int(each) for each in found]
    return "Right for each of our cases."


@todo(
    "3b",
    hints=(
        "dataset.concatenate(other) puts one dataset after another, if their elements have the "
        "same types and shapes.",
        "tf.data.Dataset.from_tensors has one element, and repeat() gives it for ever. Which "
        "element would be padding: an image, a weight and a label, nested as in "
        "weighted_examples?",
        "With endless padding no batch is smaller than the others. drop_remainder=True tells "
        "TensorFlow so, and drops nothing.",
    ),
    why="The padding never ends, so it suits every batch size, and drop_remainder only makes the "
    "shape static.",
)
def eval_input(make_eval_input_fn: Callable) -> str:
    """Every example once with weight 1, whatever the batch; all else has weight 0."""
    for count, batch in ((50, 16), (48, 16), (50, 200), (7, 1024)):
        steps = -(-count // batch)
        # The n-th image is full of n % 17, with n // 17 at its corner: any image tells its number.
        numbers = np.arange(count)
        images = np.tile((numbers % 17.0)[:, None, None], (1, 8, 8))
        images[:, 0, 0] = numbers // 17
        labels = (numbers * 7 % 10).astype(np.int32)
        taken = _batches(make_eval_input_fn(images, labels), batch, steps)
        expect(
            len(taken) == steps,
            f"{count} examples in batches of {batch} make {steps} with padding; yours gives {len(taken)} of "
            f"{steps} batches. Padding comes after the examples, enough to fill the last batch up: how much "
            'depends on len(images) and params["batch_size"].',
        )
        image, weight, label = (np.concatenate(part) for part in zip(*taken, strict=True))
        expect(
            set(weight) <= {0.0, 1.0},
            f"A weight should be 1 or 0; yours are {sorted(set(weight))}.",
        )
        expect(
            bool(weight.any()),
            "The first batches are all padding: put it after the examples.",
        )
        odd = label[(label < 0) | (label > 9)]
        expect(
            not len(odd),
            f"A row of padding needs a label that is a class, 0 to 9, though nobody counts it; yours is "
            f"{odd[:1]}.",
        )
        expect(
            bool(np.isfinite(image).all()),
            "A row of padding holds nan or infinity: its loss is not a number either, and nan * 0 is nan.",
        )
        kept = weight == 1.0
        number = np.rint(image[:, 4, 4] * 16 + 17 * np.rint(image[:, 0, 0] * 16)).astype(int)
        seen = number[kept]
        expect(
            kept.sum() == count and sorted(seen) == list(numbers),
            f"In {steps} batches of {batch} each of {count} examples should stand once with weight 1; yours "
            f"hold {kept.sum()} rows of weight 1, {len(set(seen) & set(numbers))} different examples. Does "
            "an example count more than once, or is there padding without weight 0?",
        )
        expect(
            np.array_equal(label[kept], labels[seen]),
            "Images come with the labels of other images: keep each image and its label in one element.",
        )
    return "50 of 50 examples once, in full batches; the padding has weight 0."


def _batches(input_fn: Callable, batch: int, most: int) -> list[tuple[np.ndarray, ...]]:
    """The first `most` batches of an input_fn as (image, weight, label)."""
    expect(callable(input_fn), f"Return the function input_fn; yours returns {a(input_fn)}.")
    with tf.Graph().as_default(), v1.Session() as session:
        try:
            dataset = input_fn({"batch_size": batch})
        except TypeError as error:
            raise _other_types(error) from None
        expect_dataset(dataset, "input_fn")
        spec = dataset.element_spec
        expect(
            isinstance(spec, tuple)
            and len(spec) == 2
            and isinstance(spec[0], dict)
            and set(spec[0]) == {"image", "weight"},
            'Elements should be ({"image": ..., "weight": ...}, label), as those of weighted_examples.',
        )
        features, label = spec
        for name, each, rank in (
            ("image", features["image"], 3),
            ("weight", features["weight"], 1),
            ("label", label, 1),
        ):
            expect(
                each.shape.rank == rank and each.shape[1:].is_fully_defined(),
                f"{name} in a batch has the shape {each.shape}: a row of padding has the shape of an example, "
                "and batch gives both one more axis.",
            )
        size = features["image"].shape[0]
        expect(
            size is not None,
            "The batch has an unknown size: drop_remainder=True. With the padding there it drops nothing.",
        )
        expect(
            size == batch,
            f'With params["batch_size"] of {batch} your batch has {size} rows.',
        )
        for name, each, wanted in (
            ("image", features["image"], tf.TensorSpec([batch, 8, 8], tf.float32)),
            ("weight", features["weight"], tf.TensorSpec([batch], tf.float32)),
            ("label", label, tf.TensorSpec([batch], tf.int32)),
        ):
            expect(
                (each.dtype, each.shape) == (wanted.dtype, wanted.shape),
                f"{name} should be {wanted.dtype.name} {wanted.shape}; yours is {each.dtype.name} "
                f"{each.shape}.",
            )
        following = v1.data.make_one_shot_iterator(dataset).get_next()
        taken = []
        while len(taken) < most:
            try:
                features, label = session.run(following)
            except tf.errors.OutOfRangeError:
                break
            taken.append((features["image"], features["weight"], label))
        return taken


def _other_types(error: TypeError) -> Exception:
    """What `concatenate` says of elements of two types, in words; or the error itself."""
    parts = re.findall(r"TensorSpec\(shape=(\(.*?\)), dtype=tf\.(\w+)", str(error))
    if "Incompatible dataset elements" not in str(error) or len(parts) != 6:
        return error
    for name, example, padding in zip(("image", "weight", "label"), parts, parts[3:], strict=False):
        if example != padding:
            return Wrong(
                f"The {name} of one dataset is {padding[1]} {padding[0]}, that of the other "
                f"{example[1]} {example[0]}: padding has the types and shapes of the examples."
            )
    return error


@todo(
    "3c",
    hints=(
        "As in lab 02. What should a row of padding add to the sum, and what to the count?",
        "weights= takes one number a row, and uses it for both.",
    ),
    why="A weight of 0 leaves a row out of the sum and out of the count; multiplying by it would leave it in "
    "the count.",
    slips={
        (
            "v1.metrics.accuracy(labels, predicted, weights=weight)",
            "v1.metrics.mean(weight * tf.cast(tf.equal(labels, tf.cast(predicted, tf.int32)), tf.float32))",
        ): "Padding counts as wrong: use weights=.",
        (
            "weights=weight)",
            "weights=labels > 0)",
        ): "Rows with label 0 are left out, but 0 is a class. The weight says what counts.",
    },
)
def weighted_metric(metric_fn: Callable) -> Cases:
    """An accuracy over two batches that padding does not touch."""
    batches = (
        ([1, 0, 3, 4], [1, 0, 3, 9], [1, 1, 1, 1]),
        ([5, 0, 7, 0], [5, 0, 1, 0], [1, 0, 1, 0]),
    )
    one_batch = (
        "The value of accuracy depends on the batch at hand; it should add up over all batches, as the pair of "
        "v1.metrics.accuracy does."
    )
    with tf.Graph().as_default(), v1.Session() as session:
        labels, said = (v1.placeholder(tf.int32, [4]) for _ in range(2))
        weight = v1.placeholder(tf.float32, [4])
        with classes_compared():
            inputs = {"labels": labels, "logits": tf.one_hot(said, 10), "weight": weight}
            found = call(metric_fn, inputs)
        returns(found, lambda each: "accuracy" in each, "metric_fn", 'a dict with "accuracy"')
        pair = found["accuracy"]
        told = "A metric is a pair (value so far, update op), as v1.metrics.accuracy makes it."
        expect(isinstance(pair, tuple) and len(pair) == 2, told)
        session.run(v1.local_variables_initializer())
        for batch in batches:
            session.run(pair[1], dict(zip((labels, said, weight), batch, strict=True)))
        with translated("must feed a value", one_batch, (tf.errors.InvalidArgumentError,)):
            value = session.run(pair[0])
    label = (
        "accuracy with 4 of 6 examples right in two batches, where rows of weight 0 do not count"
    )
    yield label, value
    return "4 of 6 right, and two rows of padding change nothing."
