"""What a metric_fn computes, called as the host of a TPU calls it: on tensors of its own graph, batch after batch."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from lab_utils.check.tools import a, as_wrong, expect
from lab_utils.estimator import tf, v1

_CLOSES = (
    "Your function closes over a tensor of model_fn, which stays on the TPU: it may use only those tensors that it "
    "gets as arguments."
)
_CLASSES = (
    "v1.metrics.accuracy compares classes with classes, [B] with [B]: take the most likely class of each row of "
    "logits, along axis 1."
)
_LOCAL = (
    "A variable of your metric has no value, because an evaluation initializes only local variables. Make it with "
    "v1.get_local_variable."
)
_ONE_BATCH = (
    "A value depends on one batch only; it should accumulate over all batches, as in v1.metrics."
)


def values_of_metrics(
    function: Callable, batches: Sequence[Any], names: Sequence[str]
) -> dict[str, float]:
    """The metrics after all batches.

    Args:
        function: the learner's metric_fn.
        batches: its arguments, a list of arrays or a dict of them by parameter.
        names: the metrics that are asked for.

    Raises:
        Wrong: it gives other metrics, or none that accumulate.
    """
    with tf.Graph().as_default() as host, v1.Session() as session:
        tensors = tf.nest.map_structure(
            lambda array: v1.placeholder(array.dtype, array.shape), batches[0]
        )
        unequal = r"Shapes? [(\[]\d.* and [(\[]\d.*(are incompatible|must be equal)"
        with as_wrong("graph", _CLOSES), as_wrong(unequal, _CLASSES):
            metrics = function(**tensors) if isinstance(tensors, dict) else function(*tensors)
        is_dict = isinstance(metrics, Mapping)
        keys = ", ".join(f'"{name}"' for name in names)
        message = f"The metric function should return a dict of {keys}; yours returns"
        expect(is_dict, f"{message} {a(metrics)}.")
        expect(set(names) <= metrics.keys(), f"{message} {list(metrics)}.")
        for pair in metrics.values():
            expect(
                isinstance(pair, tuple) and len(pair) == 2,
                f"A metric is a pair (value so far, update op), as v1.metrics makes it; yours is {a(pair)}.",
            )
        expect(all(part.graph is host for part in tf.nest.flatten(metrics)), _CLOSES)
        session.run(v1.local_variables_initializer())
        uninitialized = (tf.errors.FailedPreconditionError,)
        for batch in batches:
            values = zip(tf.nest.flatten(tensors), tf.nest.flatten(batch), strict=True)
            with as_wrong("uninitialized|does not exist", _LOCAL, uninitialized):
                session.run([update for _, update in metrics.values()], dict(values))
        with as_wrong("must feed a value", _ONE_BATCH, (tf.errors.InvalidArgumentError,)):
            return session.run({name: value for name, (value, _) in metrics.items()})
