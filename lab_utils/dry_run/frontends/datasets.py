"""Finds what no TPU accepts of a dataset, and the line of the mapped function that brings it in."""

import itertools
import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from lab_utils.common.figures import counted
from lab_utils.common.source import NOWHERE, Place, place
from lab_utils.dry_run.frontends.cells import CannotJudge
from lab_utils.dry_run.private import tensorflow as _tensorflow
from lab_utils.dry_run.records import Finding
from lab_utils.dry_run.rules import finding
from lab_utils.dry_run.trace.blame import (
    STRINGS,
    UNKNOWN_SIZES,
    Fault,
    names_of_strings,
    within,
)
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


def of_python(given: Any) -> tf.data.Dataset | None:
    """What Keras makes of a generator, an iterator or a Sequence of batches: a dataset that calls Python.

    None for what is none of these. The first batch is read, for its types; the size of a batch is not known
    beforehand.
    """
    if any(kind.__name__ in ("Sequence", "PyDataset") for kind in type(given).__mro__):
        first, batches = given[0], lambda: map(given.__getitem__, range(len(given)))
    elif hasattr(given, "__next__"):
        first = next(given)
        batches = lambda: itertools.chain([first], given)  # noqa: E731
    else:
        return None
    is_tuple = isinstance(first, list | tuple)

    def spec(leaf: Any) -> tf.TensorSpec:
        array = np.asarray(leaf)
        kind = tf.float32 if array.dtype == np.float64 else array.dtype  # as Keras casts it
        return tf.TensorSpec([None, *array.shape[1:]], kind)

    def arguments() -> Iterator[Any]:
        for batch in batches():
            yield tuple(batch) if is_tuple else batch

    signature = tf.nest.map_structure(spec, tuple(first) if is_tuple else first)
    return tf.data.Dataset.from_generator(arguments, output_signature=signature)


def given_to_fit(
    x: Any,
    y: Any = None,
    batch_size: int | None = None,
    sample_weight: Any = None,
    steps_per_epoch: int | None = None,
    **options: Any,
) -> tf.data.Dataset:
    """What fit makes of its data: arrays become batches, the last one as it comes; a generator is called.

    Where no size of a batch is given, Keras makes as many batches of arrays as an epoch has steps.
    """
    if isinstance(x, tf.data.Dataset):
        return x
    if (generated := of_python(x)) is not None:
        return generated
    parts = tuple(_arrays(part) for part in (x, y, sample_weight) if part is not None)
    leaves = tf.nest.flatten(parts)
    if not leaves or not all(isinstance(leaf, np.ndarray) or tf.is_tensor(leaf) for leaf in leaves):
        raise CannotJudge(
            f"fit gets data of the type {type(x).__name__}: pass it a tf.data.Dataset instead"
        )
    whole = tf.data.Dataset.from_tensor_slices(parts if len(parts) > 1 else parts[0])
    examples = len(leaves[0])
    size = batch_size or (math.ceil(examples / steps_per_epoch) if steps_per_epoch else 32)
    return whole.batch(size, drop_remainder=examples % size == 0)


def _arrays(data: Any) -> Any:
    """Several inputs in a list are several arrays, not one; tables of pandas are arrays."""
    if isinstance(data, dict):
        return {name: _arrays(value) for name, value in data.items()}
    if isinstance(data, list | tuple) and data and hasattr(data[0], "shape"):
        return tuple(_arrays(value) for value in data)
    return data.to_numpy() if hasattr(data, "to_numpy") else data


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
        f"tf.distribute gives {', '.join(sizes)}, and the TPU pads all shares to the largest one. "
        "The size of a share is then not static, which some ops do not support"
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
    if has(dataset, STRINGS):
        names = names_of_strings(dataset.element_spec)
        source = f"the dataset ({names})"
        return finding("TPU119", origin(dataset, STRINGS) or where, source=source)
    composite = tf.RaggedTensorSpec, tf.SparseTensorSpec
    if any(isinstance(spec, composite) for spec in _specs(dataset)):
        return finding("TPU128", where, source="the dataset")
    if has(dataset, UNKNOWN_SIZES):
        return finding("TPU102", origin(dataset, UNKNOWN_SIZES) or where)
    return None


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
