"""The checks of lab 13, text: rows that continue, a loop of fixed shape, and attention."""

from collections.abc import Callable

import numpy as np

from lab_utils.check.outcome import Wrong
from lab_utils.check.todos import Cases, todo
from lab_utils.check.tools import a, expect, returns, several, translated
from lab_utils.estimator import tf

_APART = {
    "a": "In cut_a the second row continues the first one of the same batch. Row 0 of the next batch goes on where "
    "the last row ended, and gets the state of row 0.",
    "c": "In cut_c the rows start one character apart, so row 0 of the next batch begins inside the text that row "
    "0 has read, and gets a state that has read further.",
}


@todo(
    "13a",
    hints=(
        "Read row 0 of the first batch, then row 0 of the second: is that one text?",
        "The state of row k after a batch is what it has read; what does row k read next?",
    ),
    why="Row k goes on in row k, so a state that is carried over belongs to its text.",
)
def rows_that_continue(continues: str) -> str:
    """The cut in which row k of each batch continues row k of the batch before."""
    letter = str(continues).strip().lower().removeprefix("cut_")
    expect(letter in ("a", "b", "c"), f"continues is 'a', 'b' or 'c'; yours is {a(continues)}.")
    if letter in _APART:
        raise Wrong(_APART[letter])
    return "Each row is a part of the text of its own, and goes on where it ended."


@todo(
    "13b",
    hints=(
        "What changes from round to round? The count, the last character, the line: those are the loop's variables.",
        "Two reasons to stop: which comparison is each?",
        "A place of the line is written by tf.tensor_scatter_nd_update, with an index of shape [1, 1].",
    ),
    why="A loop may go round as often as it likes, if no tensor in it grows.",
)
def line(write_line: Callable) -> Cases:
    """A line of fixed shape, filled until the end or until it is full."""

    def run(first: tf.Tensor, most: int) -> tuple:
        return write_line(lambda character: character + 1, first, 9, most)

    for most in (20, 4):
        program = tf.function(run).get_concrete_function(tf.TensorSpec([], tf.int32), most)
        made = program.structured_outputs
        pair = "a pair, the line and the number written"
        returns(made, several(made, 2), "write_line", pair)
        kinds = [(each.shape, each.dtype) for each in made]
        yield f"With most of {most} the shapes and types of the line and of the number", kinds
        definition = program.graph.as_graph_def()
        inner = (node for function in definition.library.function for node in function.node_def)
        expect(
            any(node.op in ("While", "StatelessWhile") for node in (*definition.node, *inner)),
            "There is no loop in the program: a loop of Python's puts one copy of its body there for each "
            "place. tf.while_loop goes round as often as is needed.",
        )
        past = (
            f"With a line of {most} places the loop goes on past the last of them: it ends at `end` or when "
            "the line is full, whichever comes first."
        )
        with translated("", past, (tf.errors.InvalidArgumentError,)):
            text, written = (each.numpy() for each in program(tf.constant(3)))
        reason = "the end is the last" if most == 20 else "most is the limit"
        label = f"From 3, `following` counts up, with 9 the end and most of {most} ({reason}): four characters, and "
        yield label + "how many are written", (text[:4].tolist(), int(written))
    return "One shape for every line, and a loop that ends when it should."


@todo(
    "13c",
    hints=(
        "Which shape do the scores have? Row i of them belongs to place i, and column j to the place that it looks at.",
        "Hide the later places before the softmax: what score gives a share of 0?",
        "tf.linalg.band_part keeps the part of a matrix on and below its diagonal; keras.ops.tri makes one.",
    ),
    why="All places are computed in one matmul, and the mask keeps each from looking ahead.",
    slips={
        "scores = tf.where(earlier, scores, -1e9) -> ": "Each place looks at all places, also at those that come "
        "later. There it would read the answer.",
        "tf.where(earlier, -> tf.where(tf.transpose(earlier),": "The mask lets places look ahead, and hides what "
        "they have read.",
        "tf.where(earlier, -> tf.where(keras.ops.tri(query.shape[1], k=1, dtype='bool'),": "The mask lets each "
        "place look one place ahead.",
        "tf.where(earlier, -> tf.where(keras.ops.tri(query.shape[1], k=-1, dtype='bool'),": "Each place sees "
        "itself too: the mask keeps the diagonal.",
        " / query.shape[-1] ** 0.5 -> ": "The scores are not divided by the square root of the width.",
        " / query.shape[-1] ** 0.5 ->  / query.shape[-1]": "The scores are divided by the width, not by its square "
        "root.",
        "scores, -1e9)\n    return tf.matmul(tf.nn.softmax(scores), -> tf.nn.softmax(scores), 0.0)\n    return tf.matmul(scores,": "The "
        "shares of a row do not add up to 1: set the mask before the softmax.",
        "tf.nn.softmax(scores) -> tf.nn.softmax(scores, axis=1)": "The shares of a row do not add up to 1: the "
        "softmax goes over the last axis.",
        "return tf.matmul(tf.nn.softmax(scores), value) -> return tf.nn.softmax(scores)": "Those are the shares: "
        "weigh the values with them.",
    },
)
def causal_attention(attend: Callable) -> Cases:
    """Softmax-weighted values of the places so far, for several shapes."""
    draw = np.random.default_rng(4).standard_normal
    for shape in ((3, 5, 4), (2, 9, 16)):
        found = attend(*(tf.constant(draw(shape), tf.float32) for _ in range(3)))
        returns(found, hasattr(found, "shape"), "attend", "a tensor")
        yield f"What each place of {list(shape)} sees of itself and of those before it", found, 1e-3
    return "Each place sees itself and those before it, in one matmul for all."
