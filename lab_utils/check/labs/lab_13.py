"""The checks of lab 13, text: rows that continue, a loop of fixed shape, and attention."""

from collections.abc import Callable

import numpy as np

from lab_utils.check.outcome import Wrong
from lab_utils.check.todos import Cases, Slip, todo
from lab_utils.check.tools import a, as_wrong, expect, returns, several
from lab_utils.dry_run.inspect import all_nodes
from lab_utils.estimator import tf

_APART = {
    "a": "In cut_a, the second row continues the first row of the same batch. Row 0 of the next batch continues the "
    "last row, but gets the state of row 0.",
    "c": "In cut_c, the rows start one character apart, so row 0 of the next batch begins inside the text that row 0 "
    "has read already.",
}


@todo(
    "13a",
    hints=(
        "Read row 0 of the first batch, then row 0 of the second: is the text continuous?",
        "The state of row k stands for the text that row k has read so far. Which text does row k read next?",
    ),
    why="Row k of each batch continues row k of the batch before, so its state belongs to its text.",
)
def rows_that_continue(continues: str) -> str:
    """The cut in which row k of each batch continues row k of the batch before."""
    letter = str(continues).strip().lower().removeprefix("cut_")
    expect(
        letter in ("a", "b", "c"), f"continues must be 'a', 'b' or 'c'; yours is {a(continues)}."
    )
    if letter in _APART:
        raise Wrong(_APART[letter])
    return "Each row has its own part of the text, and continues where it ended."


@todo(
    "13b",
    hints=(
        "The count, the last character and the line change in each iteration, so these are the loop's variables.",
        "The loop has two reasons to stop. Which comparison tests each?",
        "tf.tensor_scatter_nd_update writes one position of the line; its index has the shape [1, 1].",
    ),
    why="A compiled loop may have any number of iterations, as long as no tensor in it grows.",
)
def line(write_line: Callable) -> Cases:
    """A line of fixed shape, filled until the end or until it is full."""

    def run(first: tf.Tensor, most: int) -> tuple:
        return write_line(lambda character: character + 1, first, 9, most)

    for most in (20, 4):
        program = tf.function(run).get_concrete_function(tf.TensorSpec([], tf.int32), most)
        outputs = program.structured_outputs
        returns(
            outputs, several(outputs, 2), "write_line", "a pair, the line and the number written"
        )
        kinds = [(output.shape, output.dtype) for output in outputs]
        yield f"With most={most}, the shapes and types of the line and of the number", kinds
        expect(
            any(
                node.op in ("While", "StatelessWhile")
                for node in all_nodes(program.graph.as_graph_def())
            ),
            "There is no loop in the program: a Python loop puts one copy of its body there for each position, "
            "while tf.while_loop runs as often as needed.",
        )
        past = (
            f"With a line of {most} positions, the loop goes on past the last position: it should end at `end` or when the "
            "line is full, whichever comes first."
        )
        with as_wrong("", past, (tf.errors.InvalidArgumentError,)):
            text, count = (output.numpy() for output in program(tf.constant(3)))
        reason = "the loop reaches `end`" if most == 20 else "the line is full first"
        label = f"`following` counts up from 3, with end=9 and most={most} ({reason}): the first four characters, and "
        yield label + "how many were written", (text[:4].tolist(), int(count))
    return "Every line has one shape, and the loop ends when it should."


@todo(
    "13c",
    hints=(
        "Which shape do the scores have? Row i has the scores of position i, and column j says how much of position j it sees.",
        "Hide the later positions before the softmax: which score gives a weight of 0?",
        "tf.linalg.band_part can keep the part of a matrix on and below its diagonal, and keras.ops.tri makes such a mask.",
    ),
    why="One matmul computes all positions, and the mask keeps each position from looking ahead.",
    slips=(
        Slip(
            "scores = tf.where(earlier, scores, -1e9)",
            "",
            "Each position looks at all positions, even at later ones, which hold the answer.",
        ),
        Slip(
            "tf.where(earlier,",
            "tf.where(tf.transpose(earlier),",
            "The mask lets positions look ahead, and hides the earlier positions.",
        ),
        Slip(
            "tf.where(earlier,",
            "tf.where(keras.ops.tri(query.shape[1], k=1, dtype='bool'),",
            "The mask lets each position look one position ahead.",
        ),
        Slip(
            "tf.where(earlier,",
            "tf.where(keras.ops.tri(query.shape[1], k=-1, dtype='bool'),",
            "A position has to see itself too, so the mask must keep the diagonal.",
        ),
        Slip(
            " / query.shape[-1] ** 0.5",
            "",
            "The scores are not divided by the square root of the width.",
        ),
        Slip(
            " / query.shape[-1] ** 0.5",
            " / query.shape[-1]",
            "The scores are divided by the width, not by its square root.",
        ),
        Slip(
            "scores, -1e9)\n    return tf.matmul(tf.nn.softmax(scores),",
            "tf.nn.softmax(scores), 0.0)\n    return tf.matmul(scores,",
            "The weights of a row do not add up to 1: set the mask before the softmax.",
        ),
        Slip(
            "tf.nn.softmax(scores)",
            "tf.nn.softmax(scores, axis=1)",
            "The weights of a row do not add up to 1: the softmax belongs to the last axis.",
        ),
        Slip(
            "return tf.matmul(tf.nn.softmax(scores), value)",
            "return tf.nn.softmax(scores)",
            "Yours returns the weights: multiply them by the values.",
        ),
    ),
)
def causal_attention(attend: Callable) -> Cases:
    """Softmax-weighted values of the positions so far, for several shapes."""
    draw = np.random.default_rng(4).standard_normal
    for shape in ((3, 5, 4), (2, 9, 16)):
        values = attend(*(tf.constant(draw(shape), tf.float32) for _ in range(3)))
        returns(values, hasattr(values, "shape"), "attend", "a tensor")
        yield (
            f"The result for values of the shape {list(shape)}, where a position sees itself and those before it",
            values,
            1e-3,
        )
    return "Each position sees itself and the positions before it, in one matmul for all."
