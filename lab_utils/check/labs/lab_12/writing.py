"""What writes: TODO 12e, drawing a character, and 12f, a loop of fixed shape."""

from collections.abc import Callable

import numpy as np

from lab_utils.check.outcome import Wrong
from lab_utils.check.todos import todo
from lab_utils.check.tools import a, expect
from lab_utils.estimator import tf

DRAWS = 3000


@todo(
    "12e",
    hints=(
        'In which order: divide, softmax, draw? exp of 800 overflows.',
        'Subtracting one number from all logits leaves their shares as they are. Which one keeps exp below 1?',
        'A numpy Generator can draw by given shares.',
    ),
    why='Shares do not change when the largest logit is subtracted, and nothing overflows.',
)
def sampling(sample: Callable) -> str:
    """Draws by softmax(logits / temperature)."""
    logits = np.array([2.0, 0.0, 1.0, -9.0], np.float32)
    one = sample(logits, 1.0, np.random.default_rng(0))
    expect(one is not None, f"sample returns {a(one)}.")
    expect(
        np.ndim(one) == 0 and np.issubdtype(np.asarray(one).dtype, np.integer),
        f"sample should return the number of one kind; yours returns {one!r}.",
    )
    courses = [
        [int(sample(logits, 3.0, rng)) for _ in range(60)]
        for rng in (np.random.default_rng(5), np.random.default_rng(5))
    ]
    expect(
        courses[0] == courses[1],
        "Two generators of the same seed draw different characters: draw with the rng that is given, and "
        "nothing else.",
    )
    for temperature in (1.0, 0.5, 3.0):
        drawn = _shares(sample, logits, temperature)
        wanted = np.exp(logits / temperature)
        wanted /= wanted.sum()
        if np.allclose(drawn, wanted, atol=0.05):
            continue
        expect(np.max(drawn) < 1, _always_one(sample, logits))
        expect(
            temperature == 1.0,
            f"At a temperature of {temperature} the first kind is drawn {drawn[0]:.0%} of the time; "
            f"softmax(logits / temperature) says {wanted[0]:.0%}.",
        )
        raise Wrong(
            f"At a temperature of 1 the kinds are drawn {_told(drawn)} of the time; how often "
            f"softmax says: {_told(wanted)}."
        )
    many, rng = np.array([3.0] + 11 * [0.0]), np.random.default_rng(9)
    missing = set(range(12)) - {int(sample(many, 1.0, rng)) for _ in range(600)}
    expect(
        not missing,
        f"Kinds with a share of 3 % are never drawn in 600 draws ({sorted(missing)}): any kind may come.",
    )
    try:
        with np.errstate(all="ignore"):
            rng = np.random.default_rng(0)
            large = {int(sample(np.array([4000.0, 5000.0]), 0.5, rng)) for _ in range(40)}
    except ValueError:
        large = {None}
    expect(
        large == {1},
        "Of logits of 4000 and 5000 the second comes always: exp overflows unless the largest is taken off "
        "first, after the division.",
    )
    return "Drawn as softmax(logits / temperature) says, also of large logits."


def _told(shares: np.ndarray) -> str:
    return ", ".join(f"{share:.0%}" for share in shares)


def _shares(sample: Callable, logits: np.ndarray, temperature: float) -> np.ndarray:
    rng = np.random.default_rng(7)
    drawn = [int(sample(logits, temperature, rng)) for _ in range(DRAWS)]
    return np.bincount(drawn, minlength=len(logits)) / DRAWS


def _always_one(sample: Callable, logits: np.ndarray) -> str:
    """What is wrong with draws that never vary."""
    always = {int(sample(logits, 1.0, np.random.default_rng(seed))) for seed in range(40)}
    if len(always) > 1 or int(np.argmax(logits)) not in always:
        return "The same kind comes from a rng each time: draw with the rng that is given."
    return "The likeliest kind comes each time: draw with the rng that is given."


@todo(
    "12f",
    hints=(
        "What changes from round to round? The count, the last character, the line: those are the loop's variables.",
        'Two reasons to stop: which comparison is each?',
        'A place of the line is written by tf.tensor_scatter_nd_update, with an index of shape [1, 1].',
    ),
    why='A loop may go round as often as it likes, if no tensor in it grows.',
)
def line(write_line: Callable) -> str:
    """A line of fixed shape, filled until the end or until it is full."""

    def counting_up(character: tf.Tensor) -> tf.Tensor:
        return character + 1

    def run(first: tf.Tensor, most: int) -> tuple:
        return write_line(counting_up, first, 9, most)

    for most, wanted in ((20, [4, 5, 6, 7, 8, 9]), (4, [4, 5, 6, 7])):
        program = tf.function(run).get_concrete_function(tf.TensorSpec([], tf.int32), most)
        made = program.structured_outputs
        expect(
            isinstance(made, tuple | list) and len(made) == 2,
            f"write_line should return a pair, the line and the number written; yours returns {a(made)}.",
        )
        expect(
            made[0].shape.as_list() == [most],
            f"With most of {most} the line has the shape {made[0].shape}: it should be [{most}], whatever is "
            "written.",
        )
        expect(
            made[0].dtype == made[1].dtype == tf.int32 and made[1].shape.rank == 0,
            f"The line is int32 [{most}] and what is written int32 []; yours are {made[0].dtype.name} and "
            f"{made[1].dtype.name} {made[1].shape}.",
        )
        definition = program.graph.as_graph_def()
        inner = (node for function in definition.library.function for node in function.node_def)
        expect(
            any(node.op in ("While", "StatelessWhile") for node in (*definition.node, *inner)),
            "There is no loop in the program: a loop of Python's puts one copy of its body there for each "
            "place. tf.while_loop goes round as often as is needed.",
        )
        try:
            text, written = (each.numpy() for each in program(tf.constant(3)))
        except tf.errors.InvalidArgumentError:
            raise Wrong(
                f"With a line of {most} places the loop goes on past the last of them: it ends at `end` or when "
                "the line is full, whichever comes first."
            ) from None
        begins = text[: len(wanted)].tolist()
        short = written < len(wanted) and begins[:written] == wanted[:written]
        expect(
            begins == wanted or short,
            f"From 3, counting up, the line should start {wanted}; yours starts {begins}. Each character is "
            "following(the last one).",
        )
        expect(
            written == len(wanted),
            f"From 3, counting up, with 9 the end and most of {most}, {len(wanted)} are written "
            f"({'the end is the last' if most == 20 else 'most is the limit'}); yours says {written}.",
        )
    return "One shape for every line, and a loop that ends when it should."
