"""The checks of lab 00, the whole game: a diagnosis, a count of FLOP, and what a dry run can say."""

from collections.abc import Callable

from lab_utils.check.labs.decisions import expect_decisions
from lab_utils.check.todos import Cases, Slip, todo


@todo(
    "0a",
    hints=(
        "Which of the two does TensorFlow have to know before it compiles? What happens if it does not?",
        "An optimizer without an all-reduce applies the gradients of its own core. Which pictures do they come from?",
    ),
    why="A step is compiled for fixed shapes, so an unknown batch size stops the job. Nothing compares the cores, so "
    "a missing all-reduce goes unnoticed.",
)
def effects(on_a_tpu: dict) -> str:
    """What each of the two faults would have done on a TPU."""
    right = {
        "TPU101": ("A", "The whole step is compiled for one shape, before a single picture is read."),
        "TPU201": ("B", "Each core updates its weights with the gradients of its own eighth of the batch. Nothing "
         "compares the cores."),
    }  # fmt: skip
    expect_decisions(on_a_tpu, right, "ABCDE")
    return (
        'TPU101 ends in "must have a fixed size for dimension 0". TPU201 wastes a whole training without an error: '
        "each core trains a model of its own, and the checkpoint holds one of the eight."
    )


@todo(
    "0b",
    hints=(
        "How many entries does the result have, and what is each entry the sum of?",
        "Each of m * n entries is the sum of k products. By convention that is k multiplications and k additions.",
    ),
    why="Each of the m * n entries takes k multiplications and k additions.",
    slips=(
        Slip(
            "2 * m * k * n",
            "m * k * n",
            "That is half of the FLOP: count an addition for each multiplication.",
        ),
        Slip(
            "2 * m * k * n",
            "m * n * (2 * k - 1)",
            "That counts k - 1 additions for each entry. By convention it is k "
            "additions, as many as multiplications.",
        ),
        Slip("2 * m * k * n", "2 * m * k * n / 1e9", "That is the number of GFLOP: return FLOP."),
        Slip("2 * m * k * n", "2 * m * n", "Each entry is the sum of k products: k is missing."),
    ),
)
def product(matmul_flop: Callable) -> Cases:
    """Two FLOP for each of m * k * n multiply-adds."""
    for m, k, n in ((3, 5, 7), (11, 2, 6)):
        label = f"[{m}, {k}] times [{k}, {n}]: {m * n} entries, each the sum of {k} products"
        yield label, matmul_flop(m, k, n)
    return "A matmul takes two FLOP for each of its m * k * n multiply-adds."


@todo(
    "0c",
    hints=(
        "Ask of each question: does it depend on the data, on the program, or on the hardware's speed and arithmetic?",
        "The dry run has the compiler of the TPU and eight virtual cores. It does not have a TPU's speed or rounding.",
    ),
    why="A CPU shows learning, the dry run shows errors in the program, and only a TPU shows speed and rounding.",
)
def ways(cheapest: dict) -> str:
    """The cheapest way that answers each question."""
    compiler = "Training on a CPU does not show this, but the TPU's compiler does."
    right = {
        "does the loss fall on these pictures?": ("cpu", "That depends on data and model, which a CPU has too."),
        "does every op exist on a TPU?": ("dry run", compiler),
        "does a step with 512 pictures per core fit into its memory?": ("dry run", compiler),
        "do the eight cores sum their gradients?": ("dry run", "A CPU has one copy of the model and sums nothing, but "
         "the dry run has eight virtual cores."),
        "how many pictures a second does it train?": ("tpu", "The compiler computes only an upper bound. How close a "
         "step comes to it must be measured on a TPU."),
        "does it learn as well with products in bfloat16?": ("tpu", "Neither this CPU nor the virtual cores round "
         "products as a matrix unit does."),
    }  # fmt: skip
    expect_decisions(cheapest, right, ("cpu", "dry run", "tpu"))
    return "A CPU shows learning, and the dry run checks the program. Only speed and rounding need a TPU."
