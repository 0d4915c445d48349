"""TODO 8k: float64 out of a dataset."""

from collections.abc import Callable

import numpy as np

from lab_utils.check.outcome import Wrong
from lab_utils.check.todos import todo
from lab_utils.check.tools import a, expect, expect_dataset
from lab_utils.estimator import tf

ROWS = 6


@todo(
    "8k",
    hints=(
        "A batch may be a tuple, a dict, or a dict in a tuple: which function of tf.nest goes through all of it?",
        "What do you do with a tensor of another type than float64?",
    ),
    why="Only float64 changes: labels stay integers, names stay names, and so does the structure.",
)
def narrow(narrowed: Callable) -> str:
    """Other structures, values and shapes than the lab's own."""
    values = np.arange(ROWS * 4).reshape(ROWS, 4) / 3
    plain = (values, np.arange(ROWS))
    named = (
        {
            "pixels": np.arange(ROWS * 4, dtype=np.uint8).reshape(ROWS, 4),
            "age": values[:, 0],
            "half": values.astype(np.float16),
            "name": np.array([b"rose"] * ROWS),
            "weight": np.ones(ROWS, np.float32),
            "more": {"spread": values * 2},
        },
        np.arange(ROWS, dtype=np.int64),
    )
    for structure in (plain, named, values):
        before = tf.data.Dataset.from_tensor_slices(structure).batch(2, drop_remainder=True)
        made = narrowed(lambda params, dataset=before: dataset.take(params["taken"]))
        expect(callable(made), f"narrowed should return an input_fn, a function; yours returns {a(made)}.")
        try:
            after = made({"taken": 3})
        except TypeError as error:
            if "argument" not in str(error):
                raise
            raise Wrong(f"TPUEstimator calls input_fn(params): {error}.") from None
        expect_dataset(after, "the input_fn that narrowed returns")
        _compare(before, after)
    return "float64 becomes float32, and all else stays."


def _compare(before: tf.data.Dataset, after: tf.data.Dataset) -> None:
    """The same structure, shapes, types but for float64, and values."""
    was, now = before.element_spec, after.element_spec
    try:
        tf.nest.assert_same_structure(was, now)
    except (ValueError, TypeError):
        raise Wrong(f"The structure should stay: {_shown(was)}; yours has {_shown(now)}.") from None
    for old, new in zip(tf.nest.flatten(was), tf.nest.flatten(now), strict=True):
        right = tf.float32 if old.dtype == tf.float64 else old.dtype
        expect(
            new.dtype == right,
            f"{old.dtype.name} should become {right.name}; yours is {new.dtype.name}."
            if right != old.dtype
            else f"{old.dtype.name} should stay {old.dtype.name}; yours becomes {new.dtype.name}.",
        )
        expect(new.shape == old.shape, f"The shape {old.shape} should stay; yours is {new.shape}.")
    first, second = list(before.as_numpy_iterator()), list(after.as_numpy_iterator())
    expect(len(first) == len(second), f"{len(first)} batches went in, and {len(second)} come out: pass params on, and keep each batch.")
    for old, new in zip(tf.nest.flatten(first), tf.nest.flatten(second), strict=True):
        same = old == new if old.dtype == object else np.isclose(old, new, rtol=1e-6)
        expect(bool(np.all(same)), "The values should stay as they were, up to float32's digits.")


def _shown(spec: object) -> str:
    return str(tf.nest.map_structure(lambda each: each.dtype.name, spec))
