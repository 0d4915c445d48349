"""The checks of lab 03, static shapes."""

from collections.abc import Callable, Mapping
from numbers import Integral

import numpy as np

from lab_utils.check.labs.decisions import expect_decisions
from lab_utils.check.labs.treatment import enter_patient
from lab_utils.check.todos import Cases, Slip, todo
from lab_utils.check.tools import a, as_wrong, expect, expect_dataset, returns, several
from lab_utils.estimator import tf, v1


@todo(
    "3a",
    hints=(
        "One step takes batch = per_core * cores examples. How many full batches do all examples make?",
        "steps is rounded up: use math.ceil, or floor division of the negative number.",
        "padding is the difference between steps * batch and examples.",
    ),
    why="Rounding down gives the full batches; rounding up gives the batches that all examples need.",
    slips=(
        Slip(
            "batch = per_core * cores",
            "batch = per_core",
            "One step takes per_core * cores examples.",
        ),
        Slip(
            "examples // batch * batch",
            "examples // batch",
            "`seen` should count examples, not batches.",
        ),
        Slip(
            "examples // batch * batch",
            "examples % batch",
            "The evaluation drops that many: `seen` counts the rest.",
        ),
        Slip(
            "return seen, steps,",
            "return steps, seen,",
            "These are the right numbers in the wrong order: return (seen, steps, padding).",
        ),
        Slip(
            "-(-examples // batch)",
            "examples // batch + 1",
            "Where the batches divide evenly, yours adds a step that has only padding.",
        ),
        Slip(
            "-(-examples // batch)",
            "examples // batch",
            "The steps are rounded down: the last batch is missing.",
        ),
    ),
)
def plan(eval_plan: Callable) -> Cases:
    """What full batches leave out, and what padding brings it back."""
    for examples, per_core, cores, words in (
        (370, 16, 8, "8 cores with 16 each"),
        (384, 16, 8, "8 cores with 16 each, which divides evenly: no batch needs padding"),
        (50, 7, 1, "one core with 7"),
    ):
        parts = eval_plan(examples, per_core, cores)
        returns(parts, several(parts, 3), "eval_plan", "three numbers, (seen, steps, padding)")
        whole = all(isinstance(number, Integral) for number in parts)
        expect(whole, f"seen, steps and padding should be whole numbers, int; yours are {parts!r}.")
        label = f"(seen, steps, padding) of {examples} examples, {words}"
        yield label, [int(number) for number in parts]
    return "Your plan is right in each of our cases."


_TYPES = (
    "A row of padding needs the types and shapes of an example: float32 [8, 8], float32, int32. (0 is int32, 0.0 is "
    "float32, and NumPy's zeros are float64.)"
)


@todo(
    "3b",
    hints=(
        "dataset.concatenate(other) puts one dataset after another, if their elements have the "
        "same types and shapes.",
        "tf.data.Dataset.from_tensors has one element, and repeat() repeats it for ever. Which image, weight and "
        "label make it padding? Nest them as weighted_examples does.",
        "With endless padding no batch is smaller than the others. drop_remainder=True tells TensorFlow so, and drops "
        "nothing.",
    ),
    why="The padding never ends, so it suits every batch size, and drop_remainder only makes the shape static.",
    slips=(
        Slip(
            "examples.concatenate(padding)",
            "examples",
            "There is no padding: drop_remainder leaves the last examples out.",
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
        with tf.Graph().as_default(), v1.Session() as session:
            with as_wrong("Incompatible dataset elements", _TYPES):
                dataset = input_fn({"batch_size": batch})
            expect_dataset(dataset, "input_fn")
            spec = dataset.element_spec
            kinds = [f"{part.dtype.name} {part.shape}" for part in tf.nest.flatten(spec)]
            static = f"{where}: the shapes of image, weight and label, made static by params['batch_size'] and drop_remainder"
            yield static, kinds
            fits = isinstance(spec, tuple) and isinstance(spec[0], Mapping)
            expect(fits, 'Elements should be ({"image": ..., "weight": ...}, label).')
            iterator = v1.data.make_one_shot_iterator(dataset).get_next()
            batches = []
            try:
                for _ in range(-(-count // batch)):
                    batches.append(session.run(iterator))
            except tf.errors.OutOfRangeError:
                pass
        yield f"{where}: the number of batches, the last one filled up with padding", len(batches)
        image, weight, label = (
            np.concatenate([tf.nest.flatten(arrays)[n] for arrays in batches]) for n in range(3)
        )
        yield f"{where}: the different weights", sorted({float(value) for value in weight})
        real = weight == 1.0
        numbers = image[real, 4, 4].astype(int)
        yield f"{where}: the numbers of the examples with weight 1, each once", np.sort(numbers)
        yield f"{where}: each image has its own label", bool((label[real] == numbers % 10).all())
        classes = set(label) <= set(range(10))
        yield f"{where}: the label of padding is a class, 0 to 9", classes
        finite = bool(np.isfinite(image).all())
        yield f"{where}: all pixels are finite (nan * 0 is nan), in padding too", finite
    return "Each of 50 examples comes once, in full batches; the padding has weight 0."


_FIXES = {  # the letter of each line, and what is asked of another letter
    "train": ("A", "The stream is endless. What tells TensorFlow that each batch is full, and what does it drop?"),
    "eval": ("B", "How many of 370 photographs does this evaluation, in batches of 256, never see?"),
    "predict": ("F", "Who pads the last batch of a prediction, and takes the padding off again?"),
    "jpeg": ("C", "Files really differ in size: would a static shape alone change them?"),
    "contrast": ("D", "The size is right, but TensorFlow does not know it. Which fix also compares the two?"),
    "loss": ("E", "XLA compiles it with a bounded shape. Would a weight cost less than gathering rows?"),
    "metric": ("F", "Where does metric_fn run, and does XLA see it?"),
}  # fmt: skip


@todo(
    "3c",
    hints=(
        "Where must shapes be static: in the input pipeline on the host, in the compiled step, or in metric_fn on the "
        "host?",
        "Two lines need no fix. Each of the other answers fits one line.",
    ),
    why="The compiled step and its inputs need static shapes; code on the host does not.",
)
def which_fix(fixes: Mapping) -> str:
    """A letter for each line."""
    expect_decisions(fixes, _FIXES, "ABCDEF")
    return "Each unknown size is fixed where it arises, and two lines need no fix."


enter_patient(
    "3d",
    "messages",
    (
        "Follow the words of one message: after which line is their number the same in each batch?",
        "A cut only limits the length. To which length does padded_batch pad where the shape says None?",
    ),
    "The words are cut to a bound and padded to the same bound, so each batch has one shape.",
)
