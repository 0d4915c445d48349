"""The checks of lab 09: lines of a report, memory, float64, loops."""

from collections.abc import Callable, Mapping
from numbers import Integral, Real
from typing import Any

import numpy as np

from lab_utils.check.labs.decisions import expect_decisions
from lab_utils.check.same import a
from lab_utils.check.todos import Cases, Slip, todo
from lab_utils.check.tools import as_wrong, expect, expect_dataset, returns
from lab_utils.common.source import Place
from lab_utils.dry_run.inspect import LineCost
from lab_utils.estimator import tf

_LINES = [
    LineCost(Place(file="cell In [5]", line=line, code=code), cycles, bytes_, flops=7 * cycles)
    for line, code, cycles, bytes_ in (
        (3, "x = conv2d(images, 10, 5)", 500_000, 1e6),
        (5, "x = dense(x, 300)", 300_000, 9e9),
        (4, "x = max_pooling2d(x, 2, 2)", 100_000, 5e6),
        (8, "y = max_pooling2d(y, 2, 2)", 60_000, 5e6),
        (9, "", 40_000, 1e6),
    )
]


@todo(
    "9a",
    hints=(
        "How many cycles does a change save? It saves only on lines whose code contains its piece.",
        "A small saving on an expensive line may be more than a large one on a cheap line.",
        "The speed-up is all cycles divided by the cycles that remain after the change.",
    ),
    why="A change saves no more than the share of the lines that it touches.",
    slips=(
        Slip(
            "sum(each.cycles for each in lines if",
            "sum(each.bytes for each in lines if",
            "Count the cycles of the lines that a change touches, not their bytes.",
        ),
        Slip(
            "(1 - left) * sum",
            "left * sum",
            "`left` is the share that remains: the change saves 1 - left.",
        ),
        Slip("(1 - left) * ", "", "The change does not save the whole line: `left` of it remains."),
        Slip(
            "total / (total - saved[best])",
            "total / saved[best]",
            "The speed-up is all cycles divided by those that remain, not by those that are saved.",
        ),
        Slip(
            ", total / (total - saved[best])",
            "",
            "best_change should return a pair: the name and the speed-up.",
        ),
        Slip("lines)\n", "lines if each.place.code)\n", "The line without code counts as well."),
    ),
)
def change(best_change: Callable) -> Cases:
    """The most cycles saved, and the whole before over the whole after."""
    poolings = {"drop both pooling layers": ("max_pooling2d", 0.0)}
    label = "Dropping the pooling layers saves 160,000 of 1,000,000 cycles, and the faster convolution saves 200,000"
    yield label, best_change(list(_LINES), poolings | {"a faster convolution": ("conv2d", 0.6)})
    label = (
        "A tenth of the convolution, the most expensive line, is 50,000 of 1,000,000 cycles; nine tenths of the head "
        "are 270,000"
    )
    changes = {
        "half the convolution": ("conv2d(images", 0.9),
        "a small head": ("dense(x, 300)", 0.1),
    }
    yield label, best_change(list(_LINES), changes)
    label = "No line sorts, so a faster sort saves nothing. Dropping both pooling layers saves 160,000 of 1,000,000 cycles"
    yield label, best_change(list(_LINES), {"a faster sort": ("tf.sort", 0.0)} | poolings)
    return "Your function finds the change that saves most cycles of the whole step."


_LARGEST = 4096 * 1444 * 1444 * 4 / 2**30  # GiB of the scores
_LINE = {
    1: "Line 1 makes 4,096 x 38 x 38 x 64 numbers. Does another line make more?",
    2: "Line 2 only renames the axes: it has as many numbers as line 1.",
    4: "The softmax in line 4 has the shape of an array from another line, and the result of line 4 is small.",
    5: "The mean of line 5 leaves 64 numbers for each picture.",
}
_CHANGE = {
    "change": "Which change leaves less than half of the product in line 3?",
    "change A": "Half of the largest array is left, but the step still needs 19.5 GiB, and 15.75 GiB are usable "
    "(computed by the TPU compiler): a smaller type is not enough.",
    "change C": "The largest array has no axis of filters: the product sums over them.",
    "change D": "The pictures take only a gigabyte; the temporaries fill the memory.",
}


@todo(
    "9b",
    hints=(
        "A picture has 38 by 38 positions after line 1. How many numbers does the result of each line have?",
        "Line 3 multiplies [B, 1444, 64] with [B, 64, 1444]. And a GiB is 2**30 bytes.",
    ),
    why="An array with two axes of positions grows with the square of their number: a quarter of the positions leaves "
    "a sixteenth of the array.",
)
def memory_culprit(memory_diagnosis: Any) -> str:
    """The line, the size of its result, and a change that makes it fit."""
    keys = ("line", "GiB", "change")
    message = f"Expected a dict with the keys {', '.join(keys)}; yours is {a(memory_diagnosis)}."
    expect(isinstance(memory_diagnosis, Mapping) and set(memory_diagnosis) == {*keys}, message)
    line, size = memory_diagnosis["line"], memory_diagnosis["GiB"]
    expect(line == 3, _LINE.get(line, f"{line!r} is not the number of a line that makes an array."))
    expect(
        isinstance(size, Real) and abs(size / _LARGEST - 1) < 0.01,
        "The line is right. Its result has 4,096 x 1,444 x 1,444 numbers of 4 bytes; a GiB is 2**30 bytes. "
        f"Yours is {size!r}.",
    )
    expect_decisions(memory_diagnosis, {"change": ("B", _CHANGE["change"])}, "ABCD", _CHANGE)
    return f"{size:.1f} GiB of scores, one for each pair of positions; a quarter of the positions leaves a sixteenth."


_TOO_MANY = "do not fit. Count all four parts, and round down to a multiple of 128."
_FAR_MORE = "Far more images fit. How many bytes does one image take? (`available` counts bytes that are free.)"


@todo(
    "9c",
    hints=(
        "How many bytes does one image take? Four entries are bytes in use; `available` is the memory that there is.",
        "How many such images fit into the available memory? Round that down to a multiple of 128.",
    ),
    why="Bytes grow in proportion to the batch, so one measurement is enough for an estimate.",
    slips=(
        Slip(
            '("arguments", "temporaries", "outputs", "code")',
            '("temporaries",)',
            "Yours counts only the temporaries: arguments and outputs grow with the batch too.",
        ),
        Slip('"arguments", ', "", f"Yours leaves out the arguments: that many images {_TOO_MANY}"),
        Slip(
            '"temporaries", ', "", f"Yours leaves out the temporaries: that many images {_TOO_MANY}"
        ),
        Slip('"outputs", ', "", f"Yours leaves out the outputs: that many images {_TOO_MANY}"),
        Slip(
            "// 128 * 128", "// 128 * 128 + 128", f"Yours rounds up: that many images {_TOO_MANY}"
        ),
        Slip(
            " // 128 * 128",
            "",
            "That is not a multiple of 128: the last images would need padding.",
        ),
        Slip("(used / per_core)", "used", _FAR_MORE),
        Slip('("arguments", ', '("available", "arguments", ', _FAR_MORE),
    ),
)
def memory(largest_batch: Callable) -> Cases:
    """As many whole 128s as fit."""
    in_use = {"arguments": 3e6, "temporaries": 7e6, "outputs": 2e6, "code": 2e3}
    parts = in_use | {"available": 1.005e9}
    result = largest_batch(dict(parts), 128)
    yield "12.002 MB for 128 images, 1.005 GB available: 83 times 128 images fit", result
    label = "12.002 MB for 256 images, half as much for each: 167 times 128 images fit"
    yield label, largest_batch(dict(parts), 256)
    message = f"A batch size is a whole number, int(...); yours is {result!r}."
    expect(isinstance(result, Integral), message)
    return "Your batch is the largest multiple of 128 that fits."


_CAST, ROWS = " if tensor.dtype == tf.float64 else tensor", 6


@todo(
    "9d",
    hints=(
        "A batch may be a tuple, a dict, or a dict in a tuple: which function of tf.nest goes through all of it?",
        "What do you do with a tensor that is not float64?",
    ),
    why="Only float64 changes: integers, strings and the structure stay as they are.",
    slips=(
        Slip("dtype == tf.float64", "dtype.is_floating", "bfloat16 should stay bfloat16."),
        Slip(
            " if tensor.dtype == tf.float64 else tensor",
            "",
            "Yours casts all types, but integers and strings should stay.",
        ),
        Slip(
            " if len(parts) > 1 else parts[0]",
            "",
            "Yours returns a single tensor as a tuple of one.",
        ),
    ),
)
def narrow(narrowed: Callable) -> Cases:
    """Other structures, values and shapes than the lab's own."""
    values = np.arange(ROWS * 4).reshape(ROWS, 4) / 3
    features = {
        "pixels": np.arange(ROWS * 4, dtype=np.uint8).reshape(ROWS, 4),
        "age": values[:, 0],
        "half": values.astype(tf.bfloat16.as_numpy_dtype),
        "name": np.array([b"rose"] * ROWS),
        "more": {"spread": values * 2},
    }
    for label, structure in (
        ("an array and labels", (values, np.arange(ROWS))),
        ("a dict and labels", (features, np.arange(ROWS, dtype=np.int64))),
        ("an array without labels", values),
    ):
        before = tf.data.Dataset.from_tensor_slices(structure).batch(2, drop_remainder=True)
        input_fn = narrowed(lambda params, dataset=before: dataset.take(params["taken"]))
        returns(input_fn, callable(input_fn), "narrowed", "an input_fn, a function")
        with as_wrong(
            "argument", "TPUEstimator calls input_fn(params); yours takes other arguments."
        ):
            after = input_fn({"taken": 3})
        expect_dataset(after, "the input_fn that narrowed returns")
        spec = tf.nest.map_structure(
            lambda tensor: f"{tensor.dtype.name} {tensor.shape}", after.element_spec
        )
        yield f"The structure, shapes and types (only float64 changes) of {label}", spec
        yield f"The values of {label}", list(after.as_numpy_iterator())
    return "float64 becomes float32, and everything else stays."


@todo(
    "9e",
    hints=(
        "Which share of a loop's time do its n steps take?",
        "Only divisors of the steps between checkpoints are possible: try the smallest first.",
        "What should you return if even one loop from checkpoint to checkpoint is too short?",
    ),
    why="A loop longer than needed delays hooks and logs; one that does not divide the steps delays checkpoints.",
    slips=(
        Slip(
            "checkpoint % loop == 0 and ",
            "",
            "Your loop does not divide the steps between checkpoints.",
        ),
        Slip("1, checkpoint + 1", "checkpoint, 0, -1", "A shorter loop is enough."),
        Slip(">= share", "> share", "A shorter loop is enough: the share may be reached exactly."),
        Slip(
            "(loop * step + call)",
            "call",
            "The share refers to the whole loop: its steps and its call.",
        ),
    ),
)
def loop(shortest_loop: Callable) -> Cases:
    """The shortest divisor that keeps the core busy."""
    for step, call, checkpoint, share in (
        (0.001, 0.005, 1000, 0.95),  # 95 would do, and does not divide
        (0.001, 0.005, 1000, 0.5),  # exactly a half
        (0.1, 0.001, 500, 0.9),
        (0.0001, 0.01, 200, 0.99),  # none is enough
        (0.001, 0.002, 7, 0.6),  # a prime
    ):
        label = (
            f"Steps of {1e3 * step:g} ms, {1e3 * call:g} ms a call, a checkpoint every {checkpoint} steps, busy "
            f"{share:.1%} of the time: the shortest loop that divides {checkpoint}, or {checkpoint} if none does"
        )
        result = shortest_loop(step, call, checkpoint, share)
        yield label, result
        expect(
            isinstance(result, Integral), f"A loop is a whole number, an int; yours is {result!r}."
        )
    return "Your loop is the shortest that divides the checkpoint's steps and keeps the core busy."
