"""TODO 1c, 1d and 1e: model_fn in its three modes, around inference functions with known answers."""

from collections.abc import Callable
from typing import Any

import numpy as np

from lab_utils.check.labs import logits as of_logits
from lab_utils.check.todos import Cases, todo
from lab_utils.check.tools import expect, returns, translated, with_names
from lab_utils.estimator import tf, v1

CLASSES = 10
_LOSS = "v1.losses.sparse_softmax_cross_entropy(labels, logits)"


def _spec(model_fn: Callable, inference: Callable, images: Any, labels: Any, mode: str) -> Any:
    """What `model_fn` returns in that mode, around another inference function; its own is left out."""
    calls = []

    def asked(*arguments: Any, **named: Any) -> Any:
        calls.append(True)
        return inference(*arguments, **named)

    rate = v1.placeholder_with_default(0.05, [], name="learning_rate")
    spec = with_names(model_fn, inference=asked)(images, labels, mode, {"learning_rate": rate})
    told = "model_fn should get its logits from inference(features), the function of TODO 1b."
    expect(bool(calls), told)
    returns(spec, tf.estimator.EstimatorSpec, "model_fn", f"an EstimatorSpec in mode {mode!r}")
    return spec


def _run(session: Any, fetched: Any, fed: dict) -> Any:
    """Runs tensors of a learner's spec."""
    scalar = "The loss should be a scalar, the mean over the batch; yours is one number for each example."
    wrong = (tf.errors.InvalidArgumentError,)
    rows = translated("Incompatible shapes|assertion failed", of_logits.COMPARES_CLASSES, wrong)
    with translated("Input to reshape is a tensor", scalar, wrong), rows:
        return session.run(fetched, fed)


def _known_logits(images: tf.Tensor) -> tf.Tensor:
    """Logits of 3 for the class that the first pixel of an image names, and 0 for the others."""
    return 3.0 * tf.one_hot(tf.cast(images[:, 0, 0], tf.int32), CLASSES)


def _linear_logits(images: tf.Tensor) -> tf.Tensor:
    """A linear layer that starts at zero: the first loss is ln 10 exactly."""
    flat = tf.reshape(images, [-1, 64])
    return v1.layers.dense(flat, CLASSES, kernel_initializer=v1.zeros_initializer())


@todo(
    "1c",
    hints=(
        "Which axis of logits, [B, 10], holds the classes?",
        "tf.argmax and tf.nn.softmax work along that axis. The spec of this mode needs mode and predictions, "
        "nothing else.",
    ),
    why="This branch comes first and returns, so nothing in mode PREDICT touches the labels, which are None "
    "there.",
)
def prediction(model_fn: Callable) -> Cases:
    """Classes and probabilities, without labels."""
    pictures = np.zeros((7, 8, 8), np.float32)
    pictures[:, 0, 0] = np.arange(7) + 2
    no_labels = (
        "There are no labels in mode PREDICT, they are None: something uses them above the branch of PREDICT, "
        "that branch does not return, or its condition is false: mode is 'infer' there, the value of PREDICT."
    )
    with tf.Graph().as_default(), v1.Session() as session:
        v1.train.create_global_step()
        images = v1.placeholder(tf.float32, [None, 8, 8])
        not_a_dict = translated("^predictions must be", "predictions should be a dict of tensors.")
        with translated("None", no_labels), not_a_dict:
            spec = _spec(model_fn, _known_logits, images, None, "infer")
        named = spec.predictions
        returns(named, dict, "model_fn", "predictions as a dict of tensors")
        missing = {"class_id", "probabilities"} - named.keys()
        expect(not missing, f"predictions should hold {' and '.join(missing)}, too.")
        wanted = [named["class_id"], named["probabilities"]]
        class_id, shares = session.run(wanted, {images: pictures})
    yield (
        "class_id, [7] for 7 images, the most likely class of each row of logits",
        class_id.tolist(),
    )
    yield (
        "probabilities, ten that add up to 1 for each image: softmax, once, of the logits",
        shares,
        1e-4,
    )
    return "One class and ten probabilities for each image, without labels."


@todo(
    "1d",
    hints=(
        "v1.metrics.accuracy(labels, predictions) returns the pair that is wanted.",
        "It compares a class with a class. What makes one class of a row of ten logits?",
        "The spec of this mode holds loss and eval_metric_ops, a dict from the name to the pair.",
    ),
    why="The pair of v1.metrics keeps its counters between batches, so the value is that of all examples.",
    slips={
        (
            _LOSS,
            "tf.reduce_sum(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits))",
        ): "The loss is the sum over the batch: take the mean, as in training.",
    },
)
def evaluation(model_fn: Callable) -> Cases:
    """An accuracy over all batches."""
    # 30 of 40 right, then 5 of 20: 35 of 60 altogether, and neither batch nor their mean says so.
    named = np.arange(60, dtype=np.int32) % CLASSES
    right = np.where(np.arange(60) < 40, np.arange(60) % 4 != 0, np.arange(60) % 4 == 0)
    truths = np.where(right, named, (named + 1) % CLASSES).astype(np.int32)
    pictures = np.zeros((60, 8, 8), np.float32)
    pictures[:, 0, 0] = named
    untrained = (
        "In mode EVAL nothing is trained: its branch ends before the optimizer, with loss and eval_metric_ops "
        '"accuracy".'
    )
    one_tensor = (
        "A metric is a pair (value so far, update op), which adds up over batches, as v1.metrics.accuracy "
        "makes it; yours is one tensor."
    )
    one_batch = (
        "The value of accuracy depends on the batch at hand; it should add up over all batches, as the pair of "
        "v1.metrics.accuracy does."
    )
    with tf.Graph().as_default(), v1.Session() as session:
        v1.train.create_global_step()
        images = v1.placeholder(tf.float32, [None, 8, 8])
        labels = v1.placeholder(tf.int32, [None])
        with (
            translated("No variables to optimize", untrained),
            translated("must be a dict", 'eval_metric_ops should be a dict, {"accuracy": ...}.'),
            translated("Values of eval_metric_ops must be", one_tensor),
            of_logits.classes_compared(),
        ):
            spec = _spec(model_fn, _known_logits, images, labels, "eval")
        metrics = spec.eval_metric_ops
        expect(
            "accuracy" in metrics, f'eval_metric_ops should hold "accuracy", not {list(metrics)}.'
        )
        session.run([v1.global_variables_initializer(), v1.local_variables_initializer()])
        value, update = metrics["accuracy"]
        for part in (slice(0, 40), slice(40, 60)):
            fed = {images: pictures[part], labels: truths[part]}
            loss, _ = _run(session, [spec.loss, update], fed)
        with translated(".", one_batch, (tf.errors.InvalidArgumentError,)):
            accuracy = session.run(value)
    yield (
        "accuracy of 35 of 60 in two batches: labels against the most likely class of a row",
        accuracy,
    )
    yield "The loss of the second batch, the mean cross-entropy, as in training", loss, 1e-3
    return "Accuracy adds up over batches of 40 and 20: 35 of 60."


@todo(
    "1e",
    hints=(
        "Which function of v1.losses takes integer labels and logits? It is a mean already.",
        "minimize takes the loss and, as global_step, the counter of steps. What it returns is what the spec "
        "wants.",
    ),
    why="minimize with global_step counts the step in the same op that moves the variables.",
    slips={
        (
            "inference(features)",
            "v1.layers.dense(features, 10)",
        ): "model_fn should get its logits from inference(features), the function of TODO 1b.",
        (
            _LOSS,
            "tf.reduce_sum(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits))",
        ): "The "
        "loss grows with the batch: take the mean; else the learning rate depends on the batch size.",
        (
            _LOSS,
            _LOSS.replace("logits)", "tf.nn.softmax(logits))"),
        ): "Softmax is applied twice: the loss takes logits, and does the softmax itself.",
        ("minimize(loss,", "minimize(-loss,"): "A step makes the loss larger: is it maximised?",
        (
            "AdamOptimizer",
            "GradientDescentOptimizer",
        ): "The optimizer should be v1.train.AdamOptimizer.",
        ("AdamOptimizer", "RMSPropOptimizer"): "The optimizer should be v1.train.AdamOptimizer.",
    },
)
def training(model_fn: Callable) -> Cases:
    """A mean cross-entropy that the train_op makes smaller."""
    rng = np.random.default_rng(2)
    truths = rng.integers(0, CLASSES, 64).astype(np.int32)
    pictures = rng.random((CLASSES, 8, 8))[truths].astype(np.float32)
    keras = (
        "A Keras optimizer is made for another training loop: take v1.train.AdamOptimizer, whose minimize "
        "returns the train_op."
    )
    no_gradient = "The loss has no gradient: something between the variables and the loss, such as argmax, has none."
    with tf.Graph().as_default(), v1.Session() as session:
        step = v1.train.create_global_step()
        images = v1.placeholder(tf.float32, [None, 8, 8])
        labels = v1.placeholder(tf.int32, [None])
        kinds = (ValueError, TypeError, AttributeError)
        with (
            translated("`tape` is required|keras.*(minimize|apply_gradients)", keras, kinds),
            translated("No gradients provided", no_gradient),
        ):
            spec = _spec(model_fn, _linear_logits, images, labels, "train")
        session.run(v1.global_variables_initializer())
        fed = {images: pictures, labels: truths}
        twice = {images: np.tile(pictures, (2, 1, 1)), labels: np.tile(truths, 2)}
        yield (
            "The cross-entropy of logits of zero, a mean, ln 10",
            _run(session, spec.loss, fed),
            1e-3,
        )
        yield "The mean loss of the same examples twice", _run(session, spec.loss, twice), 1e-3
        session.run(spec.train_op, fed | {"learning_rate:0": 0.0})
        counted = session.run(step)
        yield (
            "The global step after one run of train_op, one step (global_step of minimize)",
            counted,
        )
        found = session.run(spec.loss, fed)
        yield 'The loss after a step with params["learning_rate"] of 0', found, 1e-5
        session.run(spec.train_op, fed)
        found = session.run(spec.loss, fed)
        label = (
            "The loss after a step of Adam, which moves variables by the learning rate, 0.05 here"
        )
        yield f'{label} (params["learning_rate"], as it is)', found, 0.02
        for _ in range(60):
            session.run(spec.train_op, fed)
        end = session.run(spec.loss, fed)
    expect(
        end < 1.0, f"Sixty steps on one batch should bring the loss below 1; yours is {end:.3f}."
    )
    return f"The loss is a mean and starts at ln 10; 60 steps on one batch bring it to {end:.2f}."
