"""The checks of lab 09: lines of a report, memory, float64, loops."""

from collections.abc import Callable, Mapping
from numbers import Integral, Real
from typing import Any

import numpy as np

from lab_utils.check.labs.decisions import expect_decisions
from lab_utils.check.same import a
from lab_utils.check.todos import Cases, todo
from lab_utils.check.tools import expect, expect_dataset, returns, translated
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
        "How many cycles does a change save? It saves only on the lines whose code holds its part.",
        "A small saving on an expensive line may be more than a large one on a cheap line.",
        "All cycles, over the cycles that remain after the change: that is how many times as fast.",
    ),
    why="A change gains no more than the share of the lines that it touches.",
    slips={
        "sum(each.cycles for each in lines if -> sum(each.bytes for each in lines if": "Count the cycles of the "
        "lines that a change touches, not their bytes.",
        "(1 - left) * sum -> left * sum": "What is left is not saved: 1 - left is.",
        "(1 - left) *  -> ": "A line is not saved whole: `left` of it remains.",
        "total / (total - saved[best]) -> total / saved[best]": "How many times as fast is the whole, before, over "
        "what remains of it, not over what is saved.",
        ", total / (total - saved[best]) -> ": "It should return a pair, the name and how many times as fast.",
        "lines)\n -> lines if each.place.code)\n": "The line without code counts as well.",
    },
)
def change(best_change: Callable) -> Cases:
    """The most cycles saved, and the whole before over the whole after."""
    poolings = {"drop both poolings": ("max_pooling2d", 0.0)}
    label = "Without the poolings 160,000 of 1,000,000 cycles are saved, with the faster convolution 200,000"
    yield label, best_change(list(_LINES), poolings | {"a faster convolution": ("conv2d", 0.6)})
    label = (
        "The convolution is the most expensive line, but a tenth of it is 50,000 cycles, and nine tenths of "
        "the head are 270,000, of 1,000,000 in all"
    )
    changes = {
        "half the convolution": ("conv2d(images", 0.9),
        "a small head": ("dense(x, 300)", 0.1),
    }
    yield label, best_change(list(_LINES), changes)
    label = "No line sorts, so that saves nothing. Two lines pool, and both are saved: 160,000 of 1,000,000 cycles"
    yield label, best_change(list(_LINES), {"a faster sort": ("tf.sort", 0.0)} | poolings)
    return "The change that saves most cycles of the whole step."


_LARGEST = 4096 * 1444 * 1444 * 4 / 2**30  # GiB of the scores
_LINE = {
    1: "Line 1 makes 4,096 x 38 x 38 x 64 numbers. Is there a line with more?",
    2: "Line 2 only renames the axes: it has as many numbers as line 1.",
    4: "The softmax of line 4 has the shape of an array that another line makes, and its result is small.",
    5: "The mean of line 5 leaves 64 numbers for each picture.",
}
_CHANGE = {
    "change": "Which change makes the product of line 3 smaller by more than half?",
    "change A": "Half of the largest array is left, and the step still needs 19.5 GiB, with 15.75 to use "
    "(computed by the TPU compiler): a smaller type is not enough.",
    "change C": "The largest array has no axis of filters: it is summed over them.",
    "change D": "The pictures are a gigabyte of the whole; the temporaries fill the memory.",
}


@todo(
    "9b",
    hints=(
        "A picture has 38 by 38 positions after line 1. How many numbers has the result of each line?",
        "Line 3 multiplies [B, 1444, 64] with [B, 64, 1444]. And a GiB is 2**30 bytes.",
    ),
    why="An array with two axes of positions grows with the square of their number: a quarter of the positions, a "
    "sixteenth of the array.",
)
def memory_culprit(memory_diagnosis: Any) -> str:
    """The line, the size of its result, and a change that makes it fit."""
    keys = ("line", "GiB", "change")
    message = f"A dict with the keys {', '.join(keys)}; yours is {a(memory_diagnosis)}."
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


_TOO_MANY = "do not fit. All four parts take room, and what does not fill a 128 is left out."
_FAR_MORE = (
    "Far more images fit. How much does one image take? (`available` is the room, and takes none.)"
)


@todo(
    "9c",
    hints=(
        "What does one image take? Four of the parts are used up, and one is the room.",
        "How many such images go into the room? Then leave out what fills no 128.",
    ),
    why="Bytes grow in proportion to the batch, so one measurement is enough for an estimate.",
    slips={
        '("arguments", "temporaries", "outputs", "code") -> ("temporaries",)': "Those would fit if temporaries "
        "were all that takes room: arguments and outputs grow too.",
        '"arguments",  -> ': f"Without the arguments that is too many: so many {_TOO_MANY}",
        '"temporaries",  -> ': f"Without the temporaries that is too many: so many {_TOO_MANY}",
        '"outputs",  -> ': f"Without the outputs that is too many: so many {_TOO_MANY}",
        "// 128 * 128 -> // 128 * 128 + 128": f"Rounded up that is too many: so many {_TOO_MANY}",
        " // 128 * 128 -> ": "That is not a multiple of 128: the last images would bring padding.",
        "(used / per_core) -> used": _FAR_MORE,
        '("arguments",  -> ("available", "arguments", ': _FAR_MORE,
    },
)
def memory(largest_batch: Callable) -> Cases:
    """As many whole 128s as fit."""
    used = {"arguments": 3e6, "temporaries": 7e6, "outputs": 2e6, "code": 2e3}
    parts = used | {"available": 1.005e9}
    result = largest_batch(dict(parts), 128)
    yield "12.002 MB for 128 images, 1.005 GB of room: 10,718 images fit, in whole 128s", result
    label = "12.002 MB for 256 images, half as much for each: 21,436 images fit, in whole 128s"
    yield label, largest_batch(dict(parts), 256)
    message = f"{result!r} is not a whole number; a batch size is one: int(...)."
    expect(isinstance(result, Integral), message)
    return "Bytes an image, images that fit, whole 128s."


_CAST, ROWS = " if tensor.dtype == tf.float64 else tensor", 6


@todo(
    "9d",
    hints=(
        "A batch may be a tuple, a dict, or a dict in a tuple: which function of tf.nest goes through all of it?",
        "What do you do with a tensor of another type than float64?",
    ),
    why="Only float64 changes: labels stay integers, names stay names, and so does the structure.",
    slips={
        "dtype == tf.float64 -> dtype.is_floating": "bfloat16 should stay bfloat16.",
        " if tensor.dtype == tf.float64 else tensor -> ": "Yours casts all types, also integers and text, which "
        "should stay.",
        " if len(parts) > 1 else parts[0] -> ": "An element becomes a tuple of one in yours.",
    },
)
def narrow(narrowed: Callable) -> Cases:
    """Other structures, values and shapes than the lab's own."""
    values = np.arange(ROWS * 4).reshape(ROWS, 4) / 3
    named = {
        "pixels": np.arange(ROWS * 4, dtype=np.uint8).reshape(ROWS, 4),
        "age": values[:, 0],
        "half": values.astype(tf.bfloat16.as_numpy_dtype),
        "name": np.array([b"rose"] * ROWS),
        "more": {"spread": values * 2},
    }
    for label, structure in (
        ("an array and labels", (values, np.arange(ROWS))),
        ("a dict and labels", (named, np.arange(ROWS, dtype=np.int64))),
        ("an array without labels", values),
    ):
        before = tf.data.Dataset.from_tensor_slices(structure).batch(2, drop_remainder=True)
        made = narrowed(lambda params, dataset=before: dataset.take(params["taken"]))
        returns(made, callable(made), "narrowed", "an input_fn, a function")
        with translated(
            "argument", "TPUEstimator calls input_fn(params); yours takes other arguments."
        ):
            after = made({"taken": 3})
        expect_dataset(after, "the input_fn that narrowed returns")
        spec = tf.nest.map_structure(
            lambda each: f"{each.dtype.name} {each.shape}", after.element_spec
        )
        yield f"The structure should stay, with types and shapes, of {label}", spec
        yield f"The values of {label}", list(after.as_numpy_iterator())
    return "float64 becomes float32, and all else stays."


@todo(
    "9e",
    hints=(
        "Which share of a loop's time is steps, for a loop of n?",
        "Only divisors of the steps to a checkpoint come into question: try them from the smallest on.",
        "What is left where even one loop from checkpoint to checkpoint is too short?",
    ),
    why="A longer loop than needed hides hooks and logs; one that does not divide the steps moves the checkpoints.",
    slips={
        "checkpoint % loop == 0 and  -> ": "Such a loop does not divide the steps to a checkpoint.",
        "1, checkpoint + 1 -> checkpoint, 0, -1": "A shorter loop is enough.",
        ">= share -> > share": "A shorter loop is enough: the share may be reached exactly.",
        "(loop * step + call) -> call": "The share is of the whole loop, steps and call.",
    },
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
            f"Steps of {1e3 * step:g} ms, {1e3 * call:g} ms a call, a checkpoint each {checkpoint} steps, at work "
            f"{share:.1%} of the time: the shortest loop that divides {checkpoint}, or all of it"
        )
        result = shortest_loop(step, call, checkpoint, share)
        yield label, result
        expect(
            isinstance(result, Integral), f"A loop is a whole number, an int; yours is {result!r}."
        )
    return "The shortest loop that divides the checkpoint's steps and keeps the core busy."
