"""TODO 1c, 1d and 1e: model_fn in its three modes, around inference functions with known answers."""

import contextlib
import inspect
import types
from collections.abc import Callable
from typing import Any

import numpy as np

from lab_utils.check.labs.lab_01.loss import compare
from lab_utils.check.labs.logits import classes_compared
from lab_utils.check.outcome import Wrong
from lab_utils.check.todos import todo
from lab_utils.check.tools import a, expect, scope_of, translated, with_names
from lab_utils.estimator import tf, v1

CLASSES, RATE = 10, 0.05


def known_logits(images: tf.Tensor) -> tf.Tensor:
    """Logits of 3 for the class that the first pixel of an image names, and 0 for the others."""
    return 3.0 * tf.one_hot(tf.cast(images[:, 0, 0], tf.int32), CLASSES)


def linear_logits(images: tf.Tensor) -> tf.Tensor:
    """A linear layer that starts at zero: the first loss is ln 10 exactly."""
    flat = tf.reshape(images, [-1, 64])
    return v1.layers.dense(flat, CLASSES, kernel_initializer=v1.zeros_initializer())


def model_with(model_fn: Callable, inference: Callable) -> Callable:
    """`model_fn`, but that it and its helpers find another function under the name `inference`.

    When called, it raises `Wrong` where `inference` is never asked.
    """
    asked = []

    def asking(*arguments: Any, **named: Any) -> Any:
        asked.append(True)
        return inference(*arguments, **named)

    model = with_names(model_fn, inference=asking)
    told = "model_fn should get its logits from inference(features), the function of TODO 1b."

    def called(*arguments: Any, **named: Any) -> Any:
        try:
            spec = model(*arguments, **named)
        except Exception:
            expect(bool(asked) or _mentions(model_fn, "inference"), told)
            raise
        expect(bool(asked), told)
        return spec

    return called


def _mentions(function: Callable, name: str) -> bool:
    """Whether a function, or one of the same module that it names, uses that global name."""
    scope, seen = scope_of(function), set()
    waiting = [getattr(inspect.unwrap(function), "__code__", None)]
    while waiting:
        code = waiting.pop()
        if not isinstance(code, types.CodeType) or code in seen:
            continue
        seen.add(code)
        if name in code.co_names:
            return True
        waiting += [each for each in code.co_consts if isinstance(each, types.CodeType)]
        waiting += [getattr(scope.get(each), "__code__", None) for each in code.co_names]
    return False


def one_loss() -> contextlib.AbstractContextManager[None]:
    """Context manager: a loss for each example, where one was expected, is told."""
    return translated(
        "Input to reshape is a tensor",
        "The loss should be a scalar, the mean over the batch; yours is one number for each example.",
        (tf.errors.InvalidArgumentError,),
    )


def spec_of(model_fn: Callable, inference: Callable, images: Any, labels: Any, mode: str) -> Any:
    """What `model_fn` returns in that mode, around the given inference function."""
    model = model_with(model_fn, inference)
    spec = model(
        images,
        labels,
        mode,
        {"learning_rate": v1.placeholder_with_default(RATE, [], name="learning_rate")},
    )
    expect(
        isinstance(spec, tf.estimator.EstimatorSpec),
        f"In mode {mode!r} model_fn should return a tf.estimator.EstimatorSpec; yours returns {a(spec)}.",
    )
    return spec


@todo(
    "1c",
    hints=(
        "Which axis of logits, [B, 10], holds the classes?",
        "tf.argmax and tf.nn.softmax work along that axis. The spec of this mode needs mode and"
        " predictions, nothing else.",
    ),
    why="This branch comes first and returns, so nothing in mode PREDICT touches the labels, which "
    "are None there.",
)
def prediction(model_fn: Callable) -> str:
    """Classes and probabilities, without labels."""
    pictures = np.zeros((7, 8, 8), np.float32)
    pictures[:, 0, 0] = np.arange(7) + 2
    with tf.Graph().as_default(), v1.Session() as session:
        v1.train.create_global_step()
        images = v1.placeholder(tf.float32, [None, 8, 8])
        try:
            spec = spec_of(model_fn, known_logits, images, None, "infer")
        except (ValueError, TypeError) as error:
            if "None" not in str(error):
                raise
            raise Wrong(
                "There are no labels in mode PREDICT, they are None: something uses them above the branch "
                f"of PREDICT, that branch does not return, or its condition is false: mode is {'infer'!r} there, "
                f"the value of PREDICT. ({type(error).__name__}: {error})"
            ) from None
        named = spec.predictions
        expect(
            isinstance(named, dict),
            f"predictions should be a dict of tensors; yours is {a(named)}.",
        )
        missing = {"class_id", "probabilities"} - named.keys()
        expect(
            not missing,
            f"predictions should hold {' and '.join(map(repr, sorted(missing)))}; yours holds "
            f"{', '.join(map(repr, named))}.",
        )
        class_id, shares = session.run(
            [named["class_id"], named["probabilities"]], {images: pictures}
        )
    expect(
        class_id.shape == (7,) and np.array_equal(class_id, np.arange(7) + 2),
        f"class_id should be the most likely class of each row, [7] for 7 images; yours is {class_id}.",
    )
    expect(
        shares.shape == (7, CLASSES),
        f"probabilities should be ten for each image, [7, 10] for 7 images; yours are {list(shares.shape)}.",
    )
    expect(
        np.allclose(shares.sum(1), 1.0, atol=1e-5),
        "Each image's probabilities should add up to 1: the softmax of its logits. Yours add up to "
        f"{shares.sum(-1).ravel()[0]:.4g}.",
    )
    likely = np.exp(3.0) / (np.exp(3.0) + CLASSES - 1)
    expect(
        np.allclose(shares.max(axis=1), likely, atol=1e-4),
        f"probabilities should be the softmax of the logits, once. With logits of 3 and nine times 0 the "
        f"likeliest has {likely:.4f}; yours has {shares.max():.4f}.",
    )
    return "One class and ten probabilities for each image, without labels."


@todo(
    "1d",
    hints=(
        "v1.metrics.accuracy(labels, predictions) returns the pair that is wanted.",
        "It compares a class with a class. What makes one class of a row of ten logits?",
        "The spec of this mode holds loss and eval_metric_ops, a dict from the name to the "
        "pair.",
    ),
    why="The pair of v1.metrics keeps its counters between batches, so the value is that of all "
    "examples.",
)
def evaluation(model_fn: Callable) -> str:
    """An accuracy over all batches."""
    # 30 of 40 right, then 5 of 20: 35 of 60 altogether, and neither batch nor their mean says so.
    named = np.arange(60, dtype=np.int32) % CLASSES
    wrong = np.r_[np.arange(60) % 4 == 0][:40].tolist() + (np.arange(20) % 4 != 0).tolist()
    truths = np.where(wrong, (named + 1) % CLASSES, named).astype(np.int32)
    pictures = np.zeros((60, 8, 8), np.float32)
    pictures[:, 0, 0] = named
    with tf.Graph().as_default(), v1.Session() as session:
        v1.train.create_global_step()
        images = v1.placeholder(tf.float32, [None, 8, 8])
        labels = v1.placeholder(tf.int32, [None])
        with (
            translated(
                "No variables to optimize",
                "In mode EVAL nothing is trained: its branch ends before the optimizer, with loss and "
                'eval_metric_ops "accuracy".',
            ),
            classes_compared(),
            translated("eval_metric_ops must be a dict", 'eval_metric_ops should be a dict, {"accuracy": ...}.'),
            translated(
                "Values of eval_metric_ops must be",
                "A metric is a pair (value so far, update op), which adds up over batches, as "
                "v1.metrics.accuracy makes it; yours is one tensor.",
            ),
        ):
            spec = spec_of(model_fn, known_logits, images, labels, "eval")
        metrics = spec.eval_metric_ops
        expect(
            "accuracy" in metrics,
            'eval_metric_ops should hold "accuracy"; yours holds '
            f"{', '.join(map(repr, metrics)) or 'nothing'}.",
        )
        session.run([v1.global_variables_initializer(), v1.local_variables_initializer()])
        value, update = metrics["accuracy"]
        for part in (slice(0, 40), slice(40, 60)):
            fed = {images: pictures[part], labels: truths[part]}
            with one_loss():
                loss, _ = session.run([spec.loss, update], fed)
        try:
            accuracy = session.run(value)
        except tf.errors.InvalidArgumentError:
            raise Wrong(
                "The value of accuracy depends on the batch at hand; it should add up over all batches, "
                "as the pair of v1.metrics.accuracy does."
            ) from None
    expect(
        abs(accuracy - 35 / 60) < 1e-6,
        f"With 35 of 60 right in two batches, accuracy should be {35 / 60:.4f}; yours is {accuracy:.4f}. "
        "Compare the labels with the most likely class of each row.",
    )
    hit = np.log(np.exp(3.0) + CLASSES - 1)
    expect(
        abs(loss - 20 * (hit - 3.0 * 5 / 20)) > 1e-2,
        "The loss is the sum over the batch: take the mean, as in training.",
    )
    expect(
        abs(loss - (hit - 3.0 * 5 / 20)) < 1e-3,
        f"The loss should be the mean cross-entropy, as in training: {hit - 0.75:.4f} here; yours is {loss:.4f}.",
    )
    return "Accuracy adds up over batches of 40 and 20: 35 of 60."


@todo(
    "1e",
    hints=(
        "Which function of v1.losses takes integer labels and logits? It is a mean already.",
        "minimize takes the loss and, as global_step, the counter of steps. What it returns is "
        "what the spec wants.",
    ),
    why="minimize with global_step counts the step in the same op that moves the variables.",
)
def training(model_fn: Callable) -> str:
    """A mean cross-entropy that the train_op makes smaller."""
    rng = np.random.default_rng(2)
    truths = rng.integers(0, CLASSES, 64).astype(np.int32)
    pictures = rng.random((CLASSES, 8, 8))[truths].astype(np.float32)
    with tf.Graph().as_default(), v1.Session() as session:
        step = v1.train.create_global_step()
        images = v1.placeholder(tf.float32, [None, 8, 8])
        labels = v1.placeholder(tf.int32, [None])
        made: list[tf.Tensor] = []

        def inference(images: tf.Tensor) -> tf.Tensor:
            made.append(linear_logits(images))
            return made[-1]

        with (
            translated(
                "`tape` is required|keras.*(minimize|apply_gradients)",
                "A Keras optimizer is made for another training loop: take v1.train.AdamOptimizer, whose "
                "minimize returns the train_op.",
                (ValueError, TypeError, AttributeError),
            ),
            translated(
                "No gradients provided",
                "The loss has no gradient: something between the variables and the loss, such as argmax, "
                "has none.",
            ),
        ):
            spec = spec_of(model_fn, inference, images, labels, "train")
        variables = v1.trainable_variables()
        session.run(v1.global_variables_initializer())
        fed = {images: pictures, labels: truths}
        twice = {images: np.tile(pictures, (2, 1, 1)), labels: np.tile(truths, 2)}
        with one_loss():
            start, of_two = session.run(spec.loss, fed), session.run(spec.loss, twice)
        expect(
            abs(of_two - start) < 1e-3 * abs(start),
            f"The loss grows with the batch: {start:.4g} for 64 examples, {of_two:.4g} for the same ones "
            "twice. Take the mean; else the learning rate depends on the batch size.",
        )
        expect(
            abs(start - np.log(CLASSES)) < 1e-3,
            f"With logits of zero the cross-entropy is ln 10 = 2.303; yours is {start:.4g}.",
        )
        updates = {op.type.removeprefix("Resource") for op in session.graph.get_operations()}
        updates = {type for type in updates if type.startswith("Apply")}
        expect(
            not updates or "ApplyAdam" in updates,
            f"The optimizer should be v1.train.AdamOptimizer; yours updates by {', '.join(updates)}.",
        )
        session.run(spec.train_op, fed | {"learning_rate:0": 0.0})
        expect(
            session.run(step) == 1,
            f"One run of train_op should count one step; the global step went to {session.run(step)}. "
            "Give minimize the global_step, and count it nowhere else.",
        )
        expect(
            abs(session.run(spec.loss, fed) - start) < 1e-6,
            'Variables move with a learning rate of 0: use params["learning_rate"].',
        )
        before = session.run(variables)
        session.run(spec.train_op, fed)
        after = session.run(variables)
        moved = max(np.abs(new - old).max() for new, old in zip(after, before, strict=True))
        expect(
            moved > 0,
            "train_op leaves the variables as they are: give the spec what minimize returns, and give minimize the loss.",
        )
        expect(
            0.03 < moved < 0.08,
            f"A first step of Adam moves a variable by the learning rate, {RATE}; yours moves it by "
            f'{moved:.2g}. Use params["learning_rate"] as it is.',
        )
        loss, logits = session.run([spec.loss, made[0]], fed)
        compare(loss, logits, truths)
        expect(
            loss < start,
            f"A step makes the loss larger, {start:.3f} to {loss:.3f}: is the loss maximised?",
        )
        for _ in range(60):
            session.run(spec.train_op, fed)
        end = session.run(spec.loss, fed)
    expect(
        end < 1.0,
        f"Sixty steps on one batch only bring the loss from {start:.3f} to {end:.3f}: does train_op minimise "
        "the loss that the spec holds?",
    )
    return f"The loss is a mean and starts at ln 10; 60 steps on one batch bring it to {end:.2f}."
