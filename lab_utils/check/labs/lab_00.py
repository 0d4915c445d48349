"""The checks of lab 00, the whole game: a diagnosis, a count of FLOP, and what a dry run can say."""

from collections.abc import Callable

from lab_utils.check.labs.decisions import expect_decisions
from lab_utils.check.todos import Cases, todo


@todo(
    "0a",
    hints=(
        "Which of the two does TensorFlow have to know before it compiles? What happens if it does not?",
        "An optimizer that knows of no other cores applies the gradients that it has. Whose pictures made them?",
    ),
    why="A step is compiled for fixed shapes, so an open batch stops the job. Nothing compares the cores, so a "
    "missing all-reduce goes unnoticed.",
)
def effects(on_a_tpu: dict) -> str:
    """What each of the two faults would have done on a TPU."""
    right = {
        "TPU101": ("A", "The whole step is compiled for one shape, before a single picture is read."),
        "TPU201": ("B", "Each core has its own eighth of the batch, and updates its weights by that. Nothing "
         "compares cores."),
    }  # fmt: skip
    expect_decisions(on_a_tpu, right, "ABCDE")
    return (
        'TPU101 ends in "must have a fixed size for dimension 0". TPU201 costs a whole training and gives no '
        "message: each core trains a model of its own, and the checkpoint holds one of the eight."
    )


@todo(
    "0b",
    hints=(
        "How many entries has the result, and what is each of them a sum of?",
        "m * n entries, each the sum of k products. By custom that is k multiplications and k additions.",
    ),
    why="Each of the m * n entries takes k multiplications and k additions.",
    slips={
        "2 * m * k * n -> m * k * n": "That is half of it: an addition goes with each multiplication.",
        "2 * m * k * n -> m * n * (2 * k - 1)": "That counts k - 1 additions for each entry. By custom it is k "
        "additions, as many as multiplications.",
        "2 * m * k * n -> 2 * m * k * n / 1e9": "That is GFLOP: return FLOP.",
        "2 * m * k * n -> 2 * m * n": "Each entry is the sum of k products: k is missing.",
    },
)
def product(matmul_flop: Callable) -> Cases:
    """Two FLOP for each of m * k * n multiply-adds."""
    for m, k, n in ((3, 5, 7), (11, 2, 6)):
        label = f"[{m}, {k}] times [{k}, {n}]: {m * n} entries, each the sum of {k} products"
        yield label, matmul_flop(m, k, n)
    return "Two FLOP for each of m * k * n multiply-adds."


@todo(
    "0c",
    hints=(
        "Ask of each question: does the answer hang on the data, on the program, or on the hardware's clock and arithmetic?",
        "The dry run has the compiler of the TPU and eight virtual cores. It has neither its clock nor its rounding.",
    ),
    why="Data and learning show on a CPU, the program shows in the compiler, time and rounding show on the TPU alone.",
)
def ways(cheapest: dict) -> str:
    """The cheapest way that answers each question."""
    compiler = "Training on a CPU does not see this, and the TPU's compiler does."
    right = {
        "does the loss fall on these pictures?": ("cpu", "That hangs on data and model, which are the same here."),
        "does every op exist on a TPU?": ("dry run", compiler),
        "does a step with 512 pictures per core fit into its memory?": ("dry run", compiler),
        "do the eight cores sum their gradients?": ("dry run", "A CPU is one core. But the program says it, and "
         "eight virtual cores show it."),
        "how many pictures a second does it train?": ("tpu", "The compiler gives a bound, which no step beats. How "
         "near one comes needs a clock on the real thing."),
        "does it learn as well with products in bfloat16?": ("tpu", "Neither this CPU nor the virtual cores round "
         "products as a matrix unit does."),
    }  # fmt: skip
    expect_decisions(cheapest, right, ("cpu", "dry run", "tpu"))
    return "Learning shows here, the program in the dry run; only speed and rounding need the machine that costs."
