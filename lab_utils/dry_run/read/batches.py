"""The batches of a dataset that Keras or a loop trains with: TPU102, TPU106, TPU119, TPU128."""

import math
from collections.abc import Iterator
from typing import Any

from lab_utils.common.figures import counted
from lab_utils.common.source import NOWHERE, Place, place
from lab_utils.dry_run.engine import rule
from lab_utils.dry_run.private import tensorflow as _tensorflow
from lab_utils.dry_run.records import Finding, Mode, Stage
from lab_utils.dry_run.rules import finding
from lab_utils.dry_run.trace.blame import (
    STRINGS,
    UNKNOWN_SIZES,
    Fault,
    names_of_strings,
    within,
)
from lab_utils.estimator import tf


@rule(
    "TPU102",
    "TPU119",
    "TPU128",
    needs=("distributed", "place_of_batches"),
    modes=(Mode.TRAIN,),
    stage=Stage.READ,
)
def unfit(dataset: tf.data.Dataset | None, where: Place) -> Iterator[Finding]:
    """The finding for batches of a dataset that no TPU accepts."""
    if dataset is None:
        return
    composite = tf.RaggedTensorSpec, tf.SparseTensorSpec
    if has(dataset, STRINGS):
        names = names_of_strings(dataset.element_spec)
        source = f"the dataset ({names})"
        yield finding("TPU119", origin(dataset, STRINGS) or where, source=source)
    elif any(isinstance(spec, composite) for spec in _specs(dataset)):
        yield finding("TPU128", where, source="the dataset")
    elif has(dataset, UNKNOWN_SIZES):
        yield finding("TPU102", origin(dataset, UNKNOWN_SIZES) or where)


def share_of(batch: int, cores: int) -> int:
    """The most examples of a batch that tf.distribute gives to one of `cores` cores."""
    return math.ceil(batch / cores)


@rule(
    "TPU106",
    needs=("shared", "cores", "place_of_batches"),
    modes=(Mode.TRAIN,),
    stage=Stage.READ,
)
def uneven(batch: int | None, cores: int, where: Place) -> Iterator[Finding]:
    """The note on batches of which tf.distribute gives the cores shares of different sizes."""
    if not batch or batch % cores == 0:
        return
    share = share_of(batch, cores)
    full, rest = divmod(batch, share)
    sizes = [f"{counted(full, 'core')} {counted(share, 'example')} each"]
    sizes += [f"one {rest}"] if rest else []
    if idle := cores - full - bool(rest):
        sizes.append(f"{idle} none")
    what = (
        f"tf.distribute gives {', '.join(sizes)}, and the TPU pads all shares to the largest one. The size "
        "of a share is then not static, which some ops do not support"
    )
    facts = {"batch": batch, "cores": cores, "what": what}
    suggestion = max(cores, round(batch / cores) * cores)
    yield finding("TPU106", where, note=True, suggestion=suggestion, **facts)


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
