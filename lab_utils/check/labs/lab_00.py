"""The checks of lab 00, the whole game: a fix, a diagnosis, and what a dry run can say."""

from collections.abc import Callable, Mapping
from typing import Any

from lab_utils.check.labs.decisions import expect_decisions
from lab_utils.check.todos import Cases, todo
from lab_utils.check.tools import expect, expect_dataset, other_names


@todo(
    "0a",
    hints=(
        "Which batch makes the size unknown? What does the finding's fix do with that batch?",
        "Training repeats its pictures without end, so no picture is lost for good.",
    ),
    why="The last batch may be smaller, so without drop_remainder its size is unknown until it is read.",
)
def batches_of_one_size(input_after: Callable) -> Cases:
    """The same pictures, in batches whose size is known."""
    from lab_utils.estimator import tf  # here, since the other TODOs need no TensorFlow

    def train_input(params: Mapping[str, Any]) -> Any:
        numbers = tf.data.Dataset.range(5 * params["batch_size"])
        pictures = numbers.map(lambda n: (tf.fill([2, 2], n), n))
        return pictures.batch(params["batch_size"], drop_remainder=True)

    for size in (4, 6):
        with other_names(input_after, train_input=train_input):
            dataset = input_after({"batch_size": size})
        expect_dataset(dataset, "input_after")
        shapes = [spec.shape for spec in tf.nest.flatten(dataset.element_spec)]
        expect(
            all(shape.rank and shape[0] is not None for shape in shapes),
            "The size of a batch is still unknown, as in input_before: the last batch may be smaller.",
        )
        yield f"Shapes in a batch of {size}", [shape.as_list() for shape in shapes]
        labels = [
            tf.nest.flatten(batch)[-1].tolist() for batch in dataset.take(5).as_numpy_iterator()
        ]
        yield f"Pictures in five batches of {size}", sorted(sum(labels, []))
    return "All batches have the same size, and the compiler knows it in advance."


@todo(
    "0b",
    hints=(
        "One of the two faults hides something that the compiler has to know. What happens then?",
        "Without an all-reduce, each core applies only its own gradients. From which pictures do these come?",
    ),
    why="A step is compiled for fixed shapes, so an unknown batch size stops the job. A missing all-reduce goes "
    "unnoticed, because nothing compares the weights of the cores.",
)
def effects(on_a_tpu: dict) -> str:
    """What each of the two faults would have done on a TPU."""
    right = {
        "TPU101": ("A", "The whole step is compiled for fixed shapes, before a single picture is read."),
        "TPU201": ("B", "Each core updates its weights with the gradients of its own eighth of the batch, and nothing "
         "compares the weights of the cores."),
    }  # fmt: skip
    expect_decisions(on_a_tpu, right, "ABCDE")
    return (
        'TPU101 stops the job: "must have a fixed size for dimension 0". TPU201 wastes a whole training without an '
        "error: each core trains a model of its own, and the checkpoint holds one of the eight."
    )


@todo(
    "0c",
    hints=(
        "Ask of each question: does it depend on the data, on the program, or on the hardware itself?",
        "The dry run has the TPU's compiler and eight virtual cores, and it can round matmuls as a TPU does. But it "
        "cannot measure how long a TPU takes.",
    ),
    why="A CPU shows whether the model learns, the dry run shows what a TPU would do with the program, and only a TPU "
    "shows how fast it is.",
)
def ways(cheapest: dict) -> str:
    """The cheapest way that answers each question."""
    compiler = "Training on a CPU does not show this, but the TPU's compiler does."
    rounding = (
        "The unchanged program computes matmuls in float32 on a CPU. The dry run repeats the steps with a TPU's rounding "
        "and compares the losses, still without a TPU."
    )
    right = {
        "does the loss fall on these pictures?": ("cpu", "That depends on data and model, which are the same on a CPU."),
        "does every op exist on a TPU?": ("dry run", compiler),
        "does a step with 512 pictures per core fit into its memory?": ("dry run", compiler),
        "do the eight cores sum their gradients?": ("dry run", "A CPU has one copy of the model and sums nothing, but "
         "the dry run has eight virtual cores."),
        "how many pictures a second does it train, to within 5 %?": ("tpu", "The compiler only estimates the time of a "
         "step. Published programs took up to 1.48 times as long, so the real speed must be measured on a TPU."),
        "does a TPU's rounding of matmuls spoil the training?": ("dry run", rounding),
    }  # fmt: skip
    expect_decisions(cheapest, right, ("cpu", "dry run", "tpu"))
    return (
        "A CPU shows whether the model learns, and the dry run checks the program. The dry run also estimates a step's "
        "time, and with numerics=True it shows what a TPU's rounding does to the loss (lab 08). Only measuring the "
        "speed needs a TPU."
    )
