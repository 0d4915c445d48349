"""What of a dataset no TPU accepts, and the line of the mapped function that brings it in."""

from typing import Any

from lab_utils.common.source import NOWHERE, Place, place
from lab_utils.dry_run.private import tensorflow as _tensorflow
from lab_utils.dry_run.trace.blame import within
from lab_utils.estimator import tf


def has(dataset: Any, rule: str, batched: bool = True) -> bool:
    """Whether a dataset's batches, or its examples, hold strings (TPU119) or unknown sizes (TPU102)."""
    specs = _specs(dataset)
    if rule == "TPU119":
        return any(spec.dtype == tf.string for spec in specs)
    inner = [spec.shape[1:] if batched and spec.shape.rank else spec.shape for spec in specs]
    scalars = batched and any(spec.shape.rank == 0 for spec in specs)
    return scalars or not all(shape.is_fully_defined() for shape in inner)


def origin(dataset: Any, rule: str) -> Place:
    """Where a dataset came to have what `has` says; NOWHERE where that is not known.

    The first on the way from its sources counts whose elements have the same types: records are strings
    by right, before they are parsed.
    """
    line, batched = NOWHERE, True
    while dataset is not None:
        function = _tensorflow.function_of_dataset(dataset)
        op = within(function, rule) if function is not None else None
        line = place(op) if op is not None else line
        types, batched = _types(dataset), batched and "Batch" not in type(dataset).__name__
        before = _tensorflow.inputs_of_dataset(dataset)
        dataset = next((d for d in before if _types(d) == types and has(d, rule, batched)), None)
    return line


def _types(dataset: Any) -> list[Any]:
    return [spec.dtype for spec in _specs(dataset)]


def _specs(dataset: Any) -> list[Any]:
    """The specs of all tensors of an element; labels may be None."""
    specs = tf.nest.flatten(dataset.element_spec)
    return [spec for spec in specs if hasattr(spec, "dtype") and hasattr(spec, "shape")]
