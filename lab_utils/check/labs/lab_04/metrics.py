"""What an evaluation brings to the host: TODO 4a, metric_fn, and 4b, the spec with its tensors."""

from collections.abc import Callable
from typing import Any

import numpy as np

from lab_utils.check.outcome import Wrong
from lab_utils.check.todos import todo
from lab_utils.check.tools import a, expect, with_names
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
        "As in the text above, from the four arguments: labels, logits, losses, weight.",
        "Each of the three takes weights=weight, as in v1.metrics.mean(losses, weights=weight).",
        "v1.metrics.mean(tf.cast(tf.math.in_top_k(labels, logits, 3), tf.float32), weights=weight)",
    ),
)  # fmt: skip
def host_metrics(metric_fn: Callable) -> str:
    """Three metrics over two batches, which padding does not touch."""
    batches = [_batch(1, 16, [1] * 16), _batch(2, 16, [1] * 5 + [0] * 11)]
    with tf.Graph().as_default(), v1.Session() as session:
        fed = {name: v1.placeholder(value.dtype, value.shape) for name, value in batches[0].items()}
        made = metric_fn(**fed)
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
        expect(
            abs(values[name] - right) < 1e-4,
            f"{name} of two batches, with 21 examples and 11 rows of padding, is {right:.4f}; yours is "
            f"{values[name]:.4f}.{hint}",
        )
    return "Three metrics of 21 examples; the 11 rows of padding change nothing."


@todo(
    "4b",
    hints=(
        "loss = v1.losses.sparse_softmax_cross_entropy(labels, logits, weight) is the mean over the rows "
        "with weight 1.",
        "losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits), one for each row, goes to "
        "metric_fn.",
        "tpu.TPUEstimatorSpec(mode, loss=loss, eval_metrics=(metric_fn, [labels, logits, losses, weight]))",
    ),
)  # fmt: skip
def evaluation(eval_spec: Callable) -> str:
    """A spec whose tensors belong to single examples, joined from two cores without a loss."""
    cores = [_batch(3, 6, [1] * 6), _batch(4, 6, [1, 1, 0, 0, 0, 0])]
    received: dict[str, Any] = {}

    def metric_fn(labels, logits, losses, weight):
        received.update(zip(NAMES, (labels, logits, losses, weight), strict=True))
        return {}

    brought = [_run_core(with_names(eval_spec, metric_fn=metric_fn), core) for core in cores]
    function, names = brought[0][:2]
    with tf.Graph().as_default(), v1.Session() as session:
        joined = [
            np.concatenate(pieces) for pieces in zip(*(each[2] for each in brought), strict=True)
        ]
        tensors = [tf.constant(piece) for piece in joined]
        try:
            function(**dict(zip(names, tensors, strict=True))) if names else function(*tensors)
        except ValueError as error:
            if "same graph" not in str(error) and "out of scope" not in str(error):
                raise
            raise Wrong(
                "The function captures a tensor of the model. Bring it as one of the tensors."
            ) from None
        expect(bool(received), "The function in eval_metrics should be metric_fn, or call it.")
        captured = [name for name, each in received.items() if each.graph is not session.graph]
        expect(
            not captured,
            f"The function captures a tensor of the model, {', '.join(captured)}: bring it as one of the "
            "tensors.",
        )
        got = session.run(received)
    for name in NAMES:
        right = np.concatenate([core[name] for core in cores])
        if got[name].shape == right.shape and np.allclose(got[name], right, atol=1e-4):
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
        try:
            spec = eval_spec("eval", labels, logits, weight)
        except (TypeError, ValueError) as error:
            if "callable" not in str(error):
                raise
            raise Wrong(
                "The first part of eval_metrics should be the function itself, not called."
            ) from None
        expect(
            isinstance(spec, tpu.TPUEstimatorSpec),
            f"eval_spec should return a tpu.TPUEstimatorSpec; yours returns {a(spec)}.",
        )
        expect(
            bool(spec.eval_metrics),
            "There are no eval_metrics: evaluation would tell the loss alone.",
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
        expect(spec.loss.shape.rank == 0, "The spec's loss should be a scalar.")
        loss, values = session.run([spec.loss, tensors])
        right = np.average(core["losses"], weights=core["weight"])
        expect(
            abs(loss - right) < 1e-4,
            f"With {core['weight'].sum():.0f} examples among 6 rows their mean loss is {right:.4f}, and the "
            f"spec's loss is {loss:.4f}. Does padding count?",
        )
        return function, names, values
