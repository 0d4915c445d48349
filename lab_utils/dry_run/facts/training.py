"""What the loss of a step and the averages of its layers are made of."""

from typing import Any

from lab_utils.dry_run.facts.flow import CoreProgram
from lab_utils.dry_run.graphs import ancestors
from lab_utils.dry_run.ops import is_kind
from lab_utils.estimator import tf

AVERAGES = ("moving_mean:0", "moving_variance:0")


def reads_averages(graph: Any, spec: Any) -> bool:
    """Whether the results of a mode need averages of batch normalisation.

    It is taken for granted where model_fn gave no spec.
    """
    if spec is None:
        return True
    _, tensors = getattr(spec, "eval_metrics", None) or (None, ())
    results = tf.nest.flatten((spec.loss, spec.predictions, tensors))
    needed = ancestors([result.op for result in results if tf.is_tensor(result)])
    handles = CoreProgram.of(graph).handles
    used = {handles.get(tensor.name, tensor.name) for op in needed for tensor in op.inputs}
    return any(name.endswith(AVERAGES) for name in used)


def sum_over_batch(loss: tf.Tensor | None, batch: int) -> tf.Operation | None:
    """The op that sums over the `batch` examples of a core on the way to the loss; None if there is none."""
    waiting, ops = [loss.op] if loss is not None else [], set()
    while waiting:
        op = waiting.pop(0)
        if op in ops:
            continue
        ops.add(op)
        if op.type == "Sum":
            shape = op.inputs[0].shape
            if shape.rank and shape[0] and batch > 1 and shape[0] % batch == 0:
                return op
        elif is_kind(op.type, "combine"):
            waiting += [tensor.op for tensor in op.inputs]
    return None
