"""The checks of lab 11, a Keras classifier for a TPU: what it is fed, the model, its compile and its rate."""

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import keras
import numpy as np

from lab_utils.check.labs.calls import Call, recorded
from lab_utils.check.labs.networks import all_layers, draw_weights
from lab_utils.check.todos import Cases, todo
from lab_utils.check.tools import expect, expect_dataset, other_names, returns, same, translated
from lab_utils.estimator import tf

IMAGES = np.random.default_rng(1).integers(0, 17, [130, 8, 8, 1]).astype(np.uint8)
LABELS = np.arange(130, dtype=np.int32)  # each picture known by its label


@todo(
    "11a",
    hints=(
        "What should be shuffled, examples or batches? And what should repeat, so that no example is lost?",
        "augmented takes a batch of images, and the labels stay as they are. What comes last?",
    ),
    why="Everything random is on the host, and done again in each pass.",
)
def train_dataset(make_train_dataset: Callable) -> Cases:
    """Shuffled without end, full batches, augmented on the host."""
    early = []

    def negative(images: tf.Tensor) -> tf.Tensor:
        """Stands for augmented, and can be undone."""
        early.extend([True] * tf.executing_eagerly())
        return 16 - tf.cast(images, tf.uint8)

    with other_names(make_train_dataset, augmented=negative), recorded() as calls:
        dataset = make_train_dataset(IMAGES, LABELS, 24)
    yield from _kinds(dataset, "make_train_dataset", 24)
    expect(
        not early,
        "augmented is called once, on all pictures, before training begins: every pass would bring the same "
        "changes. Call it in dataset.map.",
    )
    batches = list(dataset.take(13).as_numpy_iterator())  # 312 examples of 130
    over = f"The data end after {len(batches)} batches, and training goes on for longer: repeat()."
    expect(len(batches) == 13, over)
    _expect_pairs(*map(np.concatenate, zip(*batches, strict=True)))
    _expect_order(calls)
    few = make_train_dataset(IMAGES[:10], LABELS[:10], 24)
    expect(
        len(list(few.take(2))) == 2,
        "repeat stands below batch(drop_remainder=True): each pass loses what does not fill a batch. Repeat "
        "the examples, then batch them.",
    )
    return "Full batches of moved pictures, without end; the host does the moving."


def _kinds(dataset: Any, function: str, batch: int) -> Iterator[tuple[str, Any]]:
    """A case: shapes and types of what the learner's `function` returned."""
    expect_dataset(dataset, function)
    spec = dataset.element_spec
    flat = isinstance(spec, tuple) and all(isinstance(part, tf.TensorSpec) for part in spec)
    expect(flat, f"Each element should be a tuple of arrays; yours is {spec}.")
    told = "fixed shapes (drop_remainder=True), images uint8, labels int32"
    yield (
        f"What comes with a global_batch of {batch}: {told}",
        [spec[0].shape, *(part.dtype for part in spec)],
    )


def _expect_pairs(images: np.ndarray, labels: np.ndarray) -> None:
    """Raises Wrong unless examples are shuffled, and pictures negative, each with its label."""
    following = [(after - before) % 130 == 1 for before, after in pairwise(labels.tolist())]
    if all(following[:23]) and all(following[24:47]):
        in_order = np.array_equal(labels[:48], LABELS[:48])
        expect(not in_order, "The examples come in the order of the data: shuffle them.")
        expect(False, "Batches are shuffled, not examples: shuffle before batch.")
    expect(
        not np.array_equal(images, IMAGES[labels]),
        "The pictures come as they are: send each batch through augmented(images).",
    )
    expect(
        np.array_equal(16 - images, IMAGES[labels]),
        "A picture comes with the label of another one, or went through more than augmented: shuffle pairs, "
        "and change the images alone.",
    )
    expect(
        max(labels[:24]) > 70,
        "A small shuffle buffer hands over the first examples first: take one of the size of the data, or "
        "of a thousand and more.",
    )


def _expect_order(calls: list[Call]) -> None:
    """Raises Wrong where the steps of the training data keep what should be new, or end without prefetch."""
    names = [call.name for call in calls]
    expect(
        not any(call.arguments.get("reshuffle_each_iteration") is False for call in calls),
        "With reshuffle_each_iteration=False every pass brings the same order.",
    )
    expect(
        "cache" not in names
        or names.index("cache") < min(names.index("repeat"), names.index("map")),
        "cache() keeps what stands above it: changed pictures would be the same in each pass, and a dataset "
        "without end never fits.",
    )
    expect(
        names[-1] == "prefetch",
        "One batch should be prepared ahead, while the device works: prefetch, as the last step.",
    )


_HIDDEN, _LOGITS = (
    'layers.Dense(64, activation="relu", dtype=dtype)',
    'layers.Dense(10, dtype="float32")',
)


@todo(
    "11b",
    hints=(
        "Each layer takes a dtype, which is a policy. Which layer needs one of its own?",
        "keras.Model takes what goes in and what comes out; logits have no activation.",
    ),
    why="The policy keeps variables in float32; the logits should be float32 too.",
    slips={
        (
            _LOGITS,
            "layers.Dense(10, dtype=dtype)",
        ): "The logits come out in bfloat16: the loss needs the "
        'digits of float32. Give the last layer dtype="float32".',
        (
            _HIDDEN,
            'layers.Dense(64, activation="relu")',
        ): "The hidden layer computes in float32: give it dtype=dtype.",
        (
            _HIDDEN,
            'layers.Dense(64, activation="relu", dtype="bfloat16")',
        ): "Some variables are bfloat16: take dtype=dtype, which keeps them in float32.",
        (
            _HIDDEN,
            'layers.Dense(64, activation="relu", dtype="mixed_bfloat16")',
        ): "The hidden layer computes in bfloat16 whatever is asked for: take dtype=dtype.",
        (
            _HIDDEN,
            "layers.Dense(64, dtype=dtype)",
        ): "The hidden layer has no ReLU: two layers without one are one layer.",
        (
            _LOGITS,
            'layers.Dense(10, activation="softmax", dtype="float32")',
        ): "The outputs add up to 1: that is a softmax. The loss is of logits, so leave it out.",
        (
            _LOGITS,
            'layers.Dense(10, activation="relu", dtype="float32")',
        ): "The last layer has a ReLU: logits may be negative.",
    },
)
def model(make_model: Callable) -> Cases:
    """bfloat16 inside, float32 variables and logits."""
    for policy in ("mixed_bfloat16", "float32"):
        made = make_model(policy)
        returns(made, keras.Model, "make_model", "a keras.Model")
        output = made.outputs[0]
        yield f"The logits with {policy}", [list(output.shape), output.dtype]
        yield (
            f"The variables with {policy}",
            sorted({each.dtype for each in made.trainable_variables}),
        )
        hidden = [layer for layer in all_layers(made) if getattr(layer, "units", None) == 64]
        told = f"With {policy} the types in which a hidden Dense layer of 64 computes"
        yield told, [layer.compute_dtype for layer in hidden]
    narrow = [
        type(each).__name__ for each in all_layers(made) if "bfloat16" in str(each.compute_dtype)
    ]
    yield "Layers that compute in bfloat16 with float32", narrow
    yield "The shapes of the weights", draw_weights(made)
    yield "The logits with weights given", made(IMAGES), 1e-3
    told = "The logits in training, where nothing more is done (no dropout)"
    yield told, made(IMAGES, training=True), 1e-3
    return "bfloat16 in between, float32 variables, float32 logits."


@todo(
    "11c",
    hints=(
        "Both the model and compile make variables: what should stand in the scope?",
        "Which loss takes whole numbers for labels, and what must it be told of logits?",
        "metrics and weighted_metrics differ in what they do with weights.",
    ),
    why="Examples of weight 0 do not count, and the host is needed only every few steps.",
)
def compiled(make_compiled: Callable) -> str:
    """Made in the strategy's scope, and compiled as the TODO says."""
    strategy = tf.distribute.OneDeviceStrategy("/cpu:0")
    for dtype in ("float32", "bfloat16"):
        made = make_compiled(strategy, dtype.replace("b", "mixed_b"), 0.5, 7)
        returns(made, keras.Model, "make_compiled", "the model")
        expect(
            made.distribute_strategy is strategy,
            "The model was not made in the strategy's scope: on a TPU its variables would stay on the host.",
        )
        expect(
            any(layer.compute_dtype == dtype for layer in all_layers(made)[1:-1]),
            f"The model ignores dtype, and does not compute in {dtype}: make_model(dtype).",
        )
    expect(bool(made.compiled), "The model is not compiled.")
    optimizer = made.optimizer
    returns(optimizer, keras.optimizers.SGD, "make_compiled", "a model whose optimizer is SGD")
    same(optimizer.momentum, 0.9, "The optimizer should be SGD with a momentum of 0.9")
    same(
        optimizer.nesterov,
        False,
        "Nesterov's momentum gives other updates: SGD with a momentum of 0.9 alone",
    )
    same(float(optimizer.learning_rate), 0.5, "The optimizer should take learning_rate")
    same(made.steps_per_execution, 7, "steps_per_execution: hand it to compile")
    logits = tf.constant([[9.0, 0.0, 0.0], [0.0, 0.0, 9.0]])
    loss = made.loss if callable(made.loss) else keras.losses.get(made.loss)
    found = float(tf.reduce_mean(loss(tf.constant([0, 0]), logits)))
    told = "Logits that are sure, and wrong by 9 in one of two examples; the loss (from_logits=True, a mean)"
    same(found, 4.5002, told, 1e-3)
    _expect_weighted(made)
    return "Made in the scope; accuracy goes by weights; the host is asked every few steps."


def _expect_weighted(made: keras.Model) -> None:
    """Raises Wrong unless the model's accuracy counts examples by their weights."""
    scope = (
        "compile stands outside of strategy.scope(), and makes the optimizer's and the metrics' variables: "
        "put it into the scope too."
    )
    kinds = (
        "Loss and metrics should take labels that are numbers of classes, int32 [B], and logits [B, 10]: "
        'SparseCategoricalCrossentropy and "accuracy".'
    )
    first = np.array([1, 0, 0, 0], np.float32)
    answers = made.predict(IMAGES[:4], verbose=0).argmax(axis=1).astype(np.int32)
    data = tf.data.Dataset.from_tensors((IMAGES[:4], (answers + [0, 1, 1, 1]) % 10, first))
    with (
        translated("Mixing different tf.distribute.Strategy", scope, (RuntimeError,)),
        translated("", kinds, (ValueError,)),
    ):
        reported = made.evaluate(data, verbose=0, return_dict=True)
    accuracies = [value for name, value in reported.items() if name != "loss"]
    expect(bool(accuracies), 'There is no accuracy: weighted_metrics=["accuracy"].')
    told = "With the one right answer of weight 1 and three wrong ones of weight 0 (weighted_metrics) accuracy"
    same(accuracies[0], 1.0, told, 0.01)


_FULL = "dataset.batch(global_batch, drop_remainder=True)"


@todo(
    "11d",
    hints=(
        "How many examples are missing to the next multiple of global_batch? -n % m tells, in Python.",
        "Three arrays get as many more entries: which values may be anything, and which may not?",
    ),
    why="Full batches without losing a picture: what fills them up weighs nothing.",
    slips={
        (
            "-len(labels) % global_batch",
            "0",
        ): "The pictures that fill no batch are left out: fill up to a multiple of global_batch.",
        (
            "-len(labels) % global_batch",
            "len(labels) % global_batch",
        ): "Some pictures are left out: what is missing to the next multiple is -n % m.",
        (
            "-len(labels) % global_batch",
            "global_batch - len(labels) % global_batch",
        ): "Where the pictures fill their batches, yours adds a needless one.",
        (
            "np.zeros(missing)]).astype",
            "np.ones(missing)]).astype",
        ): "What fills up has the weight of a picture: it should weigh 0.",
        (
            "(images, labels, weights))\n",
            "(images, labels))\n",
        ): "Each element should have 3 parts: images, labels and weights.",
        (
            _FULL,
            "dataset.batch(global_batch)",
        ): "The last batch may be smaller, and a TPU program has one shape. drop_remainder=True.",
        (").astype(np.float32)", ")"): "The weights should be float32.",
    },
)
def eval_dataset(make_eval_dataset: Callable) -> Cases:
    """Each picture once with weight 1, the rest with weight 0."""
    for count, batch in ((130, 100), (96, 48), (5, 8)):
        dataset = make_eval_dataset(IMAGES[:count], LABELS[:count], batch)
        yield from _kinds(dataset, "make_eval_dataset", batch)
        most = count // batch + 5
        batches = list(dataset.take(most).as_numpy_iterator())
        expect(
            len(batches) < most,
            "The evaluation does not end: each picture once, so without repeat().",
        )
        expect(bool(batches), f"Of {count} pictures in batches of {batch}, all are left out.")
        images, labels, *weights = map(np.concatenate, zip(*batches, strict=True))
        told = f"{count} pictures in batches of {batch}"
        yield (
            f"{told}: the weights, in their order 1 of each picture and then 0 of the filling",
            np.ravel(weights),
        )
        told += ": those of weight 1 are the given ones in their order, each with its label"
        yield told, [labels[:count], images[:count]]
    return "Each picture once; the filling weighs nothing."


@todo(
    "11e",
    hints=(
        "How many steps is a tenth, and how many remain for the cosine?",
        "CosineDecay has arguments for where it begins, where the warm-up leads, and how long both take.",
    ),
    why="A large rate harms weights that are still random, so the rate rises slowly.",
)
def schedule(make_schedule: Callable) -> Cases:
    """From rate up to cores * rate, then down to 0."""
    for cores in (4, 8):
        made = make_schedule(0.25, cores, 200)
        returns(made, callable, "make_schedule", "a schedule")
        rates = np.array([float(made(step)) for step in range(0, 201, 5)])
        for told, rate in (
            ("At step 0 the rate should be the old one", rates[0]),
            (f"The rate should rise to {cores} times 0.25, cores * rate", rates.max()),
            ("Warm-up takes a tenth of 200 steps; halfway, at step 10", rates[2]),
            ("After the warm-up the rate should fall to 0 by the last step", round(rates[-1], 2)),
            ("The way down should be a cosine's; at step 65, a quarter of it", rates[13]),
            ("The way down should be a cosine's; at step 110, half of it", rates[22]),
        ):
            yield f"For {cores} cores: {told}", rate, 0.03
    return "From the old rate to cores times as much, and down to nothing."
