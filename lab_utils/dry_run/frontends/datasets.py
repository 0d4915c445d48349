"""What of a dataset no TPU accepts, and the line of the mapped function that brings it in."""

import math
import re
from typing import Any

from lab_utils.common.figures import counted
from lab_utils.common.source import NOWHERE, Place, place
from lab_utils.dry_run.private import tensorflow as _tensorflow
from lab_utils.dry_run.records import Finding
from lab_utils.dry_run.rules import finding
from lab_utils.dry_run.trace.blame import within
from lab_utils.estimator import tf


def whole_batches(dataset: tf.data.Dataset) -> tf.data.Dataset:
    """The dataset's batches but for the last, where that may hold fewer examples.

    Under TPUStrategy fit takes such a dataset: it compiles the step once more for the last batch.
    """
    shapes = [spec.shape for spec in tf.nest.flatten(dataset.element_spec)]
    inner_known = all(shape.rank and shape[1:].is_fully_defined() for shape in shapes)
    if not (tf.executing_eagerly() and inner_known and any(shape[0] is None for shape in shapes)):
        return dataset
    first = next(iter(dataset), None)
    if first is None:
        return dataset
    size = int(tf.nest.flatten(first)[0].shape[0])
    return dataset.unbatch().batch(size, drop_remainder=True)


# Datasets with the batches of the one behind them, though perhaps in another order or more than once.
_SAME_BATCHES = re.compile(r"_?(Prefetch|ParallelMap|Map|Options|Cache|Repeat|Shuffle)\w*Dataset")


def rest_of_dataset(dataset: tf.data.Dataset) -> int | None:
    """Examples of a last, shorter batch of a dataset; 0 where there is none, None where it is not known."""
    if all(spec.shape.rank and spec.shape[0] is not None for spec in _specs(dataset)):
        return 0
    while _SAME_BATCHES.match(type(dataset).__name__):
        (dataset,) = _tensorflow.inputs_of_dataset(dataset)
    sources = _tensorflow.inputs_of_dataset(dataset)
    size = _tensorflow.batch_of_dataset(dataset)
    if size is None or len(sources) != 1 or (count := int(sources[0].cardinality())) < 0:
        return None
    return count % size if count > size else 0


def share_of(batch: int, cores: int) -> int:
    """The most examples of a batch that tf.distribute gives to one of `cores` cores."""
    return math.ceil(batch / cores)


def uneven(batches: tf.data.Dataset, where: Place, cores: int) -> Finding | None:
    """The note on batches of which tf.distribute gives the cores shares of different sizes."""
    batch = tf.nest.flatten(batches.element_spec)[0].shape[0]
    if not batch or batch % cores == 0:
        return None
    share = share_of(batch, cores)
    full, rest = divmod(batch, share)
    sizes = [f"{counted(full, 'core')} {counted(share, 'example')} each"]
    sizes += [f"one {rest}"] if rest else []
    if idle := cores - full - bool(rest):
        sizes.append(f"{idle} none")
    what = (
        f"tf.distribute gives {', '.join(sizes)}, and the TPU pads all shares to the largest. The size of a "
        "share is then not static, which some ops do not take"
    )
    return _indivisible(where, batch, cores, what, note=True)


def _indivisible(where: Place, batch: int, cores: int, what: str, note: bool) -> Finding:
    suggestion = max(cores, round(batch / cores) * cores)
    facts = {"batch": batch, "cores": cores, "what": what, "suggestion": suggestion}
    return finding("TPU106", where, note=note, **facts)


def unfit(dataset: tf.data.Dataset | None, where: Place) -> Finding | None:
    """The finding for batches of a dataset that no TPU accepts."""
    if dataset is None:
        return None
    if has(dataset, "TPU119"):
        source = origin(dataset, "TPU119") or where
        return finding("TPU119", source, source="the dataset")
    if has(dataset, "TPU102"):
        return finding("TPU102", origin(dataset, "TPU102") or where)
    return None


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
