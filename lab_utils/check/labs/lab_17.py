"""Lab 17, the capstone: nine faults, and a Keras twin."""

from collections.abc import Callable, Sequence

import numpy as np

from lab_utils.check.labs.treatment import enter_fixing
from lab_utils.check.todos import todo
from lab_utils.check.tools import a, expect

enter_fixing(
    "17a",
    "questions",
    hints=(
        "Go through the program from the input to the metrics, and ask for each line what it does on eight cores.",
        "Four faults raise an error, but five do not. The dry run finds all but one: to find that one, count the examples of the evaluation.",
    ),
    why="Each fault is fixed at its own line. The silent ones concern the wrapper, the global step, the type, the mode and the weights.",
)


@todo(
    "17b",
    hints=(
        "Follow create_model line by line: each tf.layers.dense has a keras.layers.Dense of the same name.",
        "The optimizer has a learning rate and a momentum, and the loss is computed from logits.",
        "If a rung differs, its line says where: in the variables, the outputs, the first step, or the short run.",
    ),
    why="With the same layers, mask and optimizer, the same weights give the same results.",
)
def twin(keras_twin: Callable) -> str:
    """A Keras model that is equal to the Estimator without dropout on all rungs of the ladder."""
    from lab_utils.check.clinic.examine import loaded
    from lab_utils.check.clinic.ward import ward
    from lab_utils.equivalence import ladder

    model = keras_twin()
    expect(
        hasattr(model, "trainable_weights"),
        f"keras_twin should return a compiled Keras model; yours returns {a(model)}.",
    )
    expect(getattr(model, "optimizer", None) is not None, "Your model is not compiled.")
    program = loaded("questions", ward("questions").healthy)
    estimator, *_ = program.port(dropout=0.0)
    ids, labels = program.questions(15 * 64, seed=3)
    ones = np.ones(64, np.float32)
    batches = [
        ({"input_ids": ids[at : at + 64], "is_real_example": ones}, labels[at : at + 64])
        for at in range(0, 15 * 64, 64)
    ]
    model(ids[:64])  # a model of one's own class has its weights from here on
    names = same_names([weight.path for weight in model.weights])
    result = ladder(
        estimator,
        model,
        batches,
        to_keras=lambda features, labels: (features["input_ids"], labels),
        names=names,
    )
    expect(result.holds, f"The ladder says:\n{result}")
    return f"All {len(result.rungs)} rungs hold: the Keras model is the Estimator's model."


def same_names(paths: Sequence[str]) -> dict[str, str]:
    """The Estimator's variables, and those of `paths` that belong to Keras layers of the same names."""
    dense = ("query", "key", "value", "out", "inner", "outer", "classifier")
    pairs = {f"{name}/{part}": f"{name}/{part}" for name in dense for part in ("kernel", "bias")}
    del pairs["key/bias"]  # the program has none
    pairs["words"] = "words/embeddings"
    ends = {"/".join(path.split("/")[-2:]): path for path in paths}
    return {name: ends[end] for name, end in pairs.items() if end in ends}
