"""TODO 8k: float64 out of a dataset."""

from collections.abc import Callable

import numpy as np

from lab_utils.check.todos import Cases, todo
from lab_utils.check.tools import expect_dataset, returns, translated
from lab_utils.estimator import tf

ROWS = 6


@todo(
    "8k",
    hints=(
        "A batch may be a tuple, a dict, or a dict in a tuple: which function of tf.nest goes through all of it?",
        "What do you do with a tensor of another type than float64?",
    ),
    why="Only float64 changes: labels stay integers, names stay names, and so does the structure.",
    slips={
        (
            "if tensor.dtype == tf.float64 else tensor",
            "if tensor.dtype.is_floating else tensor",
        ): "Only float64 becomes float32: float16 should stay float16.",
        (
            "tf.cast(tensor, tf.float32) if tensor.dtype == tf.float64 else tensor",
            "tf.cast(tensor, tf.float32)",
        ): "Only float64 becomes float32; yours casts all types, also integers and text, which should stay.",
        (
            "parts if len(parts) > 1 else parts[0])",
            "parts)",
        ): "The structure should stay: an element that "
        "is not a tuple becomes a tuple of one in yours.",
    },
)
def narrow(narrowed: Callable) -> Cases:
    """Other structures, values and shapes than the lab's own."""
    values = np.arange(ROWS * 4).reshape(ROWS, 4) / 3
    named = {
        "pixels": np.arange(ROWS * 4, dtype=np.uint8).reshape(ROWS, 4),
        "age": values[:, 0],
        "half": values.astype(np.float16),
        "name": np.array([b"rose"] * ROWS),
        "weight": np.ones(ROWS, np.float32),
        "more": {"spread": values * 2},
    }
    for told, structure in (
        ("an array and labels", (values, np.arange(ROWS))),
        ("a dict and labels", (named, np.arange(ROWS, dtype=np.int64))),
        ("an array alone", values),
    ):
        before = tf.data.Dataset.from_tensor_slices(structure).batch(2, drop_remainder=True)
        made = narrowed(lambda params, dataset=before: dataset.take(params["taken"]))
        returns(made, callable, "narrowed", "an input_fn, a function")
        with translated(
            "argument", "TPUEstimator calls input_fn(params); yours takes other arguments."
        ):
            after = made({"taken": 3})
        expect_dataset(after, "the input_fn that narrowed returns")
        spec = tf.nest.map_structure(
            lambda each: f"{each.dtype.name} {each.shape}", after.element_spec
        )
        yield f"The structure should stay, with types and shapes, of {told}", spec
        yield f"The values of {told}", list(after.as_numpy_iterator())
    return "float64 becomes float32, and all else stays."
