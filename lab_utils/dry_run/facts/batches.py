"""The batches of a dataset that Keras or a loop trains with."""

import math
from typing import Any

from lab_utils.common.source import NOWHERE, Place, place
from lab_utils.dry_run.facts.blame import STRINGS, UNKNOWN_SIZES, Fault, names_of_strings, within
from lab_utils.dry_run.facts.refusal import Refusal
from lab_utils.dry_run.private import tensorflow as _tensorflow
from lab_utils.estimator import tf


def refused_batches(dataset: tf.data.Dataset, where: Place) -> Refusal | None:
    """Why no TPU takes the batches of a dataset that fit or a strategy is given at `where`."""
    composite = tf.RaggedTensorSpec, tf.SparseTensorSpec
    if has(dataset, STRINGS):
        source = f"the dataset ({names_of_strings(dataset.element_spec)})"
        return Refusal("TPU119", origin(dataset, STRINGS) or where, {"source": source})
    if any(isinstance(spec, composite) for spec in _specs(dataset)):
        return Refusal("TPU128", where, {"source": "the dataset"})
    if has(dataset, UNKNOWN_SIZES):
        return Refusal("TPU102", origin(dataset, UNKNOWN_SIZES) or where)
    return None


def share_of(batch: int, cores: int) -> int:
    """The most examples of a batch that tf.distribute gives to one of `cores` cores."""
    return math.ceil(batch / cores)


def has(dataset: Any, fault: Fault, batched: bool = True) -> bool:
    """Whether a dataset's batches, or its examples, hold STRINGS or UNKNOWN_SIZES."""
    specs = _specs(dataset)
    if fault is STRINGS:
        return any(spec.dtype == tf.string for spec in specs)
    inner = [spec.shape[1:] if batched and spec.shape.rank else spec.shape for spec in specs]
    scalars = batched and any(spec.shape.rank == 0 for spec in specs)
    return scalars or not all(shape.is_fully_defined() for shape in inner)


def origin(dataset: Any, fault: Fault) -> Place:
    """Where a dataset came to have what `has` says; NOWHERE where that is not known.

    The first on the way from its sources counts whose elements have the same types: records are strings
    by right, before they are parsed.
    """
    line, batched = NOWHERE, True
    while dataset is not None:
        function = _tensorflow.function_of_dataset(dataset)
        op = within(function, fault) if function is not None else None
        line = place(op) if op is not None else line
        types, batched = _types(dataset), batched and "Batch" not in type(dataset).__name__
        before = _tensorflow.inputs_of_dataset(dataset)
        dataset = next((d for d in before if _types(d) == types and has(d, fault, batched)), None)
    return line


def _types(dataset: Any) -> list[Any]:
    return [spec.dtype for spec in _specs(dataset)]


def _specs(dataset: Any) -> list[Any]:
    """The specs of all tensors of an element; labels may be None."""
    specs = tf.nest.flatten(dataset.element_spec)
    return [spec for spec in specs if hasattr(spec, "dtype") and hasattr(spec, "shape")]
