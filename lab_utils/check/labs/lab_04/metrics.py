"""What an evaluation brings to the host: TODO 4a, metric_fn, and 4b, the spec with its tensors."""

from collections.abc import Callable
from typing import Any

import numpy as np

from lab_utils.check.labs.logits import classes_compared
from lab_utils.check.outcome import Wrong
from lab_utils.check.todos import todo
from lab_utils.check.tools import a, call, expect, other_names, translated
from lab_utils.estimator import tf, tpu, v1

NAMES = ("labels", "logits", "losses", "weight")


def _batch(seed: int, rows: int, weight: list[float]) -> dict[str, np.ndarray]:
    """One core's share: random logits, labels, and the cross-entropy of each row."""
    random = np.random.default_rng(seed)
    logits = random.normal(size=[rows, 10]).astype(np.float32)
    labels = random.integers(0, 10, rows).astype(np.int32)
    logits[np.arange(rows), labels] += 1
    exponents = np.exp(logits)
    losses = -np.log(exponents[np.arange(rows), labels] / exponents.sum(axis=1))
    return dict(zip(NAMES, (labels, logits, losses, np.float32(weight)), strict=True))


@todo(
    "4a",
    hints=(
        "As in the text above, of the four arguments.",
        "Each of the three takes weights=.",
        "in_top_k answers true or false; a mean wants numbers: tf.cast.",
    ),
    why="Each metric is weighted by itself, so padding stays out of its sum and out of its count.",
)
def host_metrics(metric_fn: Callable) -> str:
    """Three metrics over two batches, which padding does not touch."""
    batches = [_batch(1, 16, [1] * 16), _batch(2, 16, [1] * 5 + [0] * 11)]
    with tf.Graph().as_default(), v1.Session() as session:
        fed = {name: v1.placeholder(value.dtype, value.shape) for name, value in batches[0].items()}
        with classes_compared():
            made = call(metric_fn, fed)
        names = list(made) if isinstance(made, dict) else a(made)
        expect(
            isinstance(made, dict) and {"accuracy", "top_3", "mean_loss"} <= set(made),
            f'metric_fn should return a dict of "accuracy", "top_3", "mean_loss"; yours returns {names}.',
        )
        for name, pair in made.items():
            expect(
                isinstance(pair, tuple) and len(pair) == 2,
                f"{name} should be a pair (value so far, update op), as v1.metrics makes it: the host adds "
                "up over batches.",
            )
        session.run(v1.local_variables_initializer())
        for batch in batches:
            given = {fed[name]: batch[name] for name in NAMES}
            session.run([update for _, update in made.values()], given)
        with translated(
            "must feed a value",
            "The value of a metric depends on the batch at hand; it should add up over all batches, as a pair "
            "of v1.metrics does.",
            (tf.errors.InvalidArgumentError,),
        ):
            values = session.run({name: value for name, (value, _) in made.items()})
    labels, logits, losses, weight = (
        np.concatenate([batch[name] for batch in batches]) for name in NAMES
    )
    place = (logits > logits[np.arange(32), labels][:, None]).sum(axis=1)
    for name, each in (("accuracy", place < 1), ("top_3", place < 3), ("mean_loss", losses)):
        right = float(np.average(each, weights=weight))
        padded = (float(np.mean(each)), float(np.mean(each * weight)))
        counted = min(abs(values[name] - wrong) for wrong in padded) < 1e-5
        hint = " Does padding count?" if counted else ""
        halves = [
            np.average(part, weights=w)
            for part, w in zip(np.split(each, 2), np.split(weight, 2), strict=True)
        ]
        if abs(values[name] - np.mean(halves)) < 1e-5:
            hint = (
                " That is the mean of two batches, in which the one with 5 examples counts as much."
            )
        expect(
            abs(values[name] - right) < 1e-4,
            f"{name} of two batches, with 21 examples and 11 rows of padding, is {right:.4f}; yours is "
            f"{values[name]:.4f}.{hint}",
        )
    return "Three metrics of 21 examples; the 11 rows of padding change nothing."


@todo(
    "4b",
    hints=(
        "Two losses: a scalar for the spec, and one for each row for metric_fn.",
        "A core may have padding alone. v1.losses give 0 there; a division of your own may give"
        " 0 / 0.",
        "eval_metrics is the function itself, not called, and its four tensors in the order of "
        "its arguments.",
    ),
    why="What belongs to single examples can be joined along axis 0, however the examples are "
    "spread over the cores.",
)
def evaluation(eval_spec: Callable) -> str:
    """A spec whose tensors belong to single examples, joined from two cores without a loss."""
    cores = [_batch(3, 6, [1] * 6), _batch(4, 6, [1, 1, 0, 0, 0, 0]), _batch(5, 6, [0] * 6)]
    received: dict[str, Any] = {}

    def metric_fn(labels, logits, losses, weight):
        received.update(zip(NAMES, (labels, logits, losses, weight), strict=True))
        return {}

    with other_names(eval_spec, metric_fn=metric_fn):
        brought = [_run_core(eval_spec, core) for core in cores]
        function, names = brought[0][:2]
        with tf.Graph().as_default(), v1.Session() as session:
            joined = [
                np.concatenate(pieces)
                for pieces in zip(*(each[2] for each in brought), strict=True)
            ]
            tensors = [tf.constant(piece) for piece in joined]
            with (
                translated(
                    "same graph|out of scope|different graph",
                    "The function captures a tensor of the model. Bring it as one of the tensors.",
                ),
                translated(
                    "unexpected keyword|missing .* argument",
                    "The names of the tensors are not those of the function's arguments: labels, logits, "
                    "losses, weight.",
                ),
            ):
                named = dict(zip(names, tensors, strict=False))
                made = function(**named) if named else function(*tensors)
            expect(bool(received), "The function in eval_metrics should be metric_fn, or call it.")
            captured = [
                name
                for name, each in received.items()
                if getattr(each, "graph", None) is not session.graph
            ]
            strays = [each for each in tf.nest.flatten(made) if hasattr(each, "graph")]
            expect(
                all(each.graph is session.graph for each in strays),
                "The function captures a tensor of the model: it may use nothing but its own arguments.",
            )
            expect(
                not captured,
                f"The function captures a tensor of the model, {', '.join(captured)}: bring it as one of the "
                "tensors.",
            )
            got = session.run(received)
    weight = np.concatenate([core["weight"] for core in cores])
    for name in NAMES:
        right = np.concatenate([core[name] for core in cores])
        same = got[name].shape == right.shape
        rows = weight == 1 if name == "losses" else slice(None)  # of padding no loss is asked
        if same and np.allclose(got[name][rows], right[rows], atol=1e-4):
            continue
        others = (
            np.concatenate([core[other] for core in cores]) for other in NAMES if other != name
        )
        if any(got[name].shape == each.shape and np.allclose(got[name], each) for each in others):
            raise Wrong(
                f"metric_fn gets another's tensor as its {name}: keep the order of its arguments."
            )
        if name == "losses" and len(got[name]) == len(cores):
            raise Wrong(
                "The losses that arrive are one a core: bring the losses, one for each row."
            )
        if name == "losses" and len(set(np.round(got[name][:6], 4))) == 1:
            raise Wrong(
                "The losses that arrive are the mean of the batch, over and over: bring those of the rows."
            )
        raise Wrong(
            f"metric_fn gets something else as its {name}: is the order that of its arguments?"
        )
    return "Each tensor belongs to single examples, so two cores' parts can be joined."


def _run_core(eval_spec: Callable, core: dict[str, np.ndarray]) -> tuple:
    """The host's function, the names of its tensors if they have any, and the tensors' values."""
    with tf.Graph().as_default(), v1.Session() as session:
        labels, logits, _, weight = (tf.constant(core[name]) for name in NAMES)
        with translated(
            "callable", "The first part of eval_metrics should be the function itself, not called."
        ):
            spec = eval_spec("eval", labels, logits, weight)
        expect(
            isinstance(spec, tpu.TPUEstimatorSpec),
            f"eval_spec should return a tpu.TPUEstimatorSpec; yours returns {a(spec)}.",
        )
        expect(
            bool(spec.eval_metrics),
            "There are no eval_metrics, so evaluation would report the loss alone: give the spec metric_fn and its tensors.",
        )
        function, tensors = spec.eval_metrics
        names = list(tensors) if isinstance(tensors, dict) else []
        tensors = list(tensors.values()) if isinstance(tensors, dict) else list(tensors)
        for each in tensors:
            expect(
                each.shape.rank != 0,
                f"{each.name} is a scalar, and what leaves the cores is joined along axis 0. Bring one for "
                "each row.",
            )
        expect(
            spec.loss.shape.rank == 0,
            "The spec's loss should be a scalar: the mean over the rows of weight 1.",
        )
        loss, values = session.run([spec.loss, tensors])
        _compare(loss, core)
        return function, names, values


def _compare(loss: float, core: dict[str, np.ndarray]) -> None:
    """The spec's loss on one core's share."""
    rows, losses = core["weight"] == 1, core["losses"]
    if not rows.any():
        expect(
            np.isfinite(loss),
            f"On a core that has padding alone the spec's loss is {loss}: 0 / 0 is not a number, and the loss "
            "is averaged over the cores. v1.losses give 0 there.",
        )
        return
    right = losses[rows].mean()
    told = f"With {rows.sum()} examples among 6 rows their mean loss is {right:.4f}, and the spec's loss is"
    exponents = np.exp(core["logits"] - core["logits"].max(axis=1, keepdims=True))
    shares = exponents / exponents.sum(axis=1, keepdims=True)
    of_shares = np.log(np.exp(shares).sum(axis=1)) - shares[np.arange(len(rows)), core["labels"]]
    for wrong, hint in (
        (losses[rows].sum(), "that is their sum."),
        (losses.mean(), "padding counts in it."),
        (losses[rows].sum() / len(rows), "the sum is divided by all rows, padding too."),
        (of_shares[rows].mean(), "softmax is applied twice; the loss takes logits."),
    ):
        expect(abs(loss - right) < 1e-4 or abs(loss - wrong) > 1e-4, f"{told} {loss:.4f}: {hint}")
    expect(abs(loss - right) < 1e-4, f"{told} {loss:.4f}.")
