"""The datasets that Keras makes of what fit is given, and their batches of one size."""

import itertools
import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from lab_utils.dry_run.frontends.cells import CannotJudge
from lab_utils.estimator import tf


def whole_batches(dataset: tf.data.Dataset) -> tf.data.Dataset:
    """The dataset's batches but for the one that may hold fewer examples: the last, before they are shuffled.

    Under TPUStrategy fit takes such a dataset: it compiles the step once more for that batch.
    """
    shapes = [spec.shape for spec in tf.nest.flatten(dataset.element_spec)]
    inner_known = all(shape.rank and shape[1:].is_fully_defined() for shape in shapes)
    if not (tf.executing_eagerly() and inner_known and any(shape[0] is None for shape in shapes)):
        return dataset
    two = list(itertools.islice(dataset, 2))
    if not two:
        return dataset
    size = max(int(tf.nest.flatten(batch)[0].shape[0]) for batch in two)
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
