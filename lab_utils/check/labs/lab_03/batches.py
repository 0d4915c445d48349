"""The last batch: TODO 3a, what it leaves out, 3b, padding it, and 3c, counting no padding."""

import re
from collections.abc import Callable
from numbers import Integral

import numpy as np

from lab_utils.check.labs.logits import classes_compared
from lab_utils.check.outcome import Wrong
from lab_utils.check.todos import todo
from lab_utils.check.tools import a, call, expect, expect_dataset, translated
from lab_utils.estimator import tf, v1


@todo(
    "3a",
    hints=(
        "batch = per_core * cores is what one step takes. How many whole ones fit into "
        "examples?",
        "steps is rounded up: math.ceil, or floor division of the negative number.",
        "padding is what steps * batch is more than examples.",
    ),
    why="Rounding down gives what full batches see; rounding up, what all examples need.",
)
def plan(eval_plan: Callable) -> str:
    """What full batches leave out, and what padding brings it back."""
    for examples, per_core, cores in ((370, 16, 8), (384, 16, 8), (100, 16, 8), (50, 7, 1)):
        given = eval_plan(examples, per_core, cores)
        expect(
            isinstance(given, tuple | list) and len(given) == 3,
            f"eval_plan should return three numbers, (seen, steps, padding); yours returns {given!r}.",
        )
        expect(
            all(isinstance(each, Integral) for each in given),
            f"seen, steps and padding should be whole numbers, of type int; yours are {given!r}.",
        )
        seen, steps, padding = given
        batch = per_core * cores
        whole, rest = divmod(examples, batch)
        case = f"{examples} examples, {cores} cores with {per_core} each:"
        needed = whole + (rest > 0)
        right = (whole * batch, needed, needed * batch - examples)
        expect(
            tuple(given) == right or len(set(right)) < 3 or set(given) != set(right),
            f"{case} these are the right numbers in another order: return (seen, steps, padding).",
        )
        if cores > 1 and (seen, steps) == (
            examples // per_core * per_core,
            -(-examples // per_core),
        ):
            raise Wrong(f"{case} one step takes per_core * cores, which is {batch}.")
        expect(
            seen != whole or not whole,
            f"{case} seen should be examples, not batches; yours is {seen}.",
        )
        expect(
            seen != rest or seen == whole * batch,
            f"{case} seen is {seen}, which is what the evaluation drops; the rest is what it sees.",
        )
        expect(
            seen == whole * batch,
            f"{case} there are {whole} full batches of {batch}, so {whole * batch} examples are seen; "
            f"yours says {seen}.",
        )
        hint = " It divides evenly: there is no batch to fill up." if not rest else ""
        expect(
            steps == needed,
            f"{case} {needed} steps see all of them; yours says {steps}.{hint}",
        )
        expect(
            padding == needed * batch - examples,
            f"{case} {needed} steps have {needed * batch} rows, so the padding is "
            f"{needed * batch - examples}; yours is {padding}.",
        )
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
        expect(np.array_equal(label[kept], labels[seen]), "Images come with the labels of other images: keep each image and its label in one element.")
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
    why="A weight of 0 leaves a row out of the sum and out of the count; multiplying by it would "
    "leave it in the count.",
)
def weighted_metric(metric_fn: Callable) -> str:
    """An accuracy over two batches that padding does not touch."""
    batches = (
        ([1, 0, 3, 4], [1, 0, 3, 9], [1, 1, 1, 1]),
        ([5, 0, 7, 0], [5, 0, 1, 0], [1, 0, 1, 0]),
    )
    with tf.Graph().as_default(), v1.Session() as session:
        labels = v1.placeholder(tf.int32, [4])
        said = v1.placeholder(tf.int32, [4])
        weight = v1.placeholder(tf.float32, [4])
        with classes_compared():
            given = {"labels": labels, "logits": tf.one_hot(said, 10), "weight": weight}
            made = call(metric_fn, given)
        expect(
            isinstance(made, dict) and "accuracy" in made,
            f'metric_fn should return a dict with "accuracy"; yours returns '
            f"{list(made) if isinstance(made, dict) else a(made)}.",
        )
        pair = made["accuracy"]
        expect(
            isinstance(pair, tuple) and len(pair) == 2,
            "A metric is a pair (value so far, update op), as v1.metrics.accuracy makes it.",
        )
        session.run(v1.local_variables_initializer())
        for batch in batches:
            session.run(pair[1], dict(zip((labels, said, weight), batch, strict=True)))
        with translated(
            "must feed a value",
            "The value of accuracy depends on the batch at hand; it should add up over all batches, as the "
            "pair of v1.metrics.accuracy does.",
            (tf.errors.InvalidArgumentError,),
        ):
            value = session.run(pair[0])
    told = "With 4 of 6 examples right and two rows of padding, accuracy is 4/6, 0.667; yours is"
    expect(abs(value - 4 / 8) > 1e-6, f"{told} 4/8: padding counts as wrong. Use weights=.")
    expect(
        abs(value - (3 / 4 + 1 / 2) / 2) > 1e-6,
        f"{told} {value:.3f}, the mean of two batches: one with two examples counts as much as one with four.",
    )
    expect(
        abs(value - 3 / 5) > 1e-6,
        f"{told} {value:.3f}: rows with label 0 are left out, but 0 is a class. The weight says what counts.",
    )
    expect(abs(value - 4 / 6) < 1e-6, f"{told} {value:.3f}. Do rows of weight 0 count?")
    return "4 of 6 right, and two rows of padding change nothing."
