"""The data that a Keras program on JAX gives to fit, read as fit reads them."""

import contextlib
import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import jax
import numpy as np

from lab_utils.dry_run.frontends.jax_calls import FEW
from lab_utils.dry_run.lower.errors import InputUnfit
from lab_utils.dry_run.private import keras as _keras
from lab_utils.dry_run.unavailable import Unavailable

_MOST_IN_32_BITS = 2**31 - 1
_INFINITE = -1  # tf.data.INFINITE_CARDINALITY
_NO_NUMBERS = re.compile(r"[Ii]nvalid dtype: (str|object|<U)")  # what Keras says of text


@dataclass(eq=False)
class FitData:
    """What fit, or train_on_batch, is given.

    Attributes:
        x, y, sample_weight, batch_size, class_weight, steps_per_epoch, shuffle, validation_split,
            validation_data, validation_steps: as fit has them.
        epochs: as fit has it; None where no call of fit was seen.
        distribution: the keras.distribution that was set at the call.
        is_pipeline: they are read batch by batch; else they are one batch.
        keeps_one_copy: the program was run with one copy of each variable, whatever its layout.
        precision: of matmuls, as jax.default_matmul_precision has it at the call.
    """

    x: Any
    y: Any = None
    sample_weight: Any = None
    batch_size: int | None = None
    class_weight: Any = None
    steps_per_epoch: int | None = None
    shuffle: bool = True
    validation_split: float = 0.0
    validation_data: Any = None
    validation_steps: int | None = None
    epochs: int | None = None
    distribution: Any = None
    is_pipeline: bool = True
    keeps_one_copy: bool = False
    precision: str | None = field(default_factory=lambda: jax.config.jax_default_matmul_precision)

    @classmethod
    def of(cls, data: Any, distribution: Any) -> "FitData":
        """What dry_run is handed: arrays, alone or as (x, y) or (x, y, sample_weight), are one batch."""
        if not all(hasattr(leaf, "shape") for leaf in jax.tree.leaves(data)):
            return cls(data, distribution=distribution)
        parts = data if isinstance(data, tuple) else (data,)
        options = {"batch_size": size_of(data), "shuffle": False, "is_pipeline": False}
        return cls(*parts, **options, distribution=distribution)

    @cached_property
    def adapter(self) -> Any:
        """Keras' own reader of these data.

        Raises:
            ValueError, TypeError: as fit.
        """
        x, y, weights = self.x, self.y, self.sample_weight
        if self.validation_split:
            x, y, weights = _keras.without_validation(x, y, weights, self.validation_split)
        return _keras.adapter(
            x,
            y,
            weights,
            batch_size=self.batch_size,
            steps_per_epoch=self.steps_per_epoch,
            shuffle=self.shuffle,
            class_weight=self.class_weight,
        )

    @cached_property
    def first(self) -> list[Any]:
        """The first batches, as nests of arrays; without the last one of an epoch where it is shorter.

        Raises:
            Exception: whatever reading them raises.
        """
        batches = self._first_few
        return batches[:-1] if self._ends_short else batches

    @cached_property
    def has_strings(self) -> bool:
        """Whether they hold text, as arrays of strings or of Python's objects.

        Raises:
            Exception: whatever reading them raises.
        """
        try:
            leaves = jax.tree.leaves(self.first[:1])
        except (TypeError, ValueError) as error:
            if not _NO_NUMBERS.search(str(error)):
                raise
            return True
        return any(getattr(leaf.dtype, "kind", "") in "USO" for leaf in leaves)

    @cached_property
    def beyond_32_bits(self) -> int:
        """The largest integer of the first batches that JAX cuts, as it has no 64 bits; 0 for none."""
        leaves = [np.asarray(leaf) for leaf in jax.tree.leaves(self.first)]
        wide = [leaf for leaf in leaves if leaf.dtype.kind in "iu" and leaf.dtype.itemsize == 8]
        largest = max((int(np.abs(leaf).max()) for leaf in wide if leaf.size), default=0)
        is_cut = largest > _MOST_IN_32_BITS and not jax.config.jax_enable_x64
        return largest if is_cut else 0

    @cached_property
    def _first_few(self) -> list[Any]:
        with contextlib.closing(iter(self)) as epoch:
            return list(itertools.islice(epoch, FEW))

    @property
    def _ends_short(self) -> bool:
        """Whether the first few batches are a whole epoch, whose last one is shorter than all others."""
        sizes = list(map(size_of, self._first_few))
        is_end = len(sizes) < FEW or len(sizes) == self.adapter.num_batches
        return is_end and len(sizes) > 1 and len(set(sizes[:-1])) == 1 and sizes[-1] < sizes[0]

    def __iter__(self) -> Iterator[Any]:
        """The batches of an epoch; a generator goes on where it was."""
        self.adapter.on_epoch_begin()
        try:
            yield from itertools.islice(self.adapter.get_jax_iterator(), self.adapter.num_batches)
        finally:
            self.adapter.on_epoch_end()

    @property
    def size(self) -> int:
        """The examples of a batch.

        Raises:
            InputUnfit: there is no batch.
        """
        if not self.first:
            raise InputUnfit("the data that fit gets contain no batch")
        return size_of(self.first[0])

    def sizes(self) -> Iterator[int]:
        """The examples of each batch of an epoch, as it is read.

        Raises:
            Unavailable: they came from a generator, which has come to its end.
        """
        yield from map(size_of, self)
        if hasattr(self.x, "__next__"):
            raise Unavailable("the generator has ended, and it can be read only once")

    @cached_property
    def rest(self) -> int | None:
        """Examples of a last, shorter batch of an epoch; 0 for none, None where it is not known."""
        if self.steps_per_epoch:
            return None
        if self._ends_short:
            return size_of(self._first_few[-1])
        if hasattr(self.x, "num_batches"):  # a PyDataset: its last batch may have been its first
            count = self.x.num_batches
            return self._rest_of(self.x[count - 1]) if count else None
        if hasattr(self.x, "element_spec"):
            try:
                from lab_utils.dry_run.facts.pipeline import rest_of_dataset
            except (
                ImportError
            ):  # a TensorFlow that lab_utils.estimator was not made for, or without tf-keras
                return None
            return rest_of_dataset(self.x)
        with contextlib.suppress(NotImplementedError):  # of a generator
            if self.adapter.has_partial_batch is not None:
                return self.adapter.partial_batch_size if self.adapter.has_partial_batch else 0
        return None

    @property
    def lacks(self) -> str:
        """The argument of fit without which an epoch, or its evaluation, never ends; "" for none."""
        if self.epochs is None:
            return ""
        if self.steps_per_epoch is None and _repeats_for_ever(self.x):
            return "steps_per_epoch"
        if self.validation_steps is None and _repeats_for_ever(self.validation_data):
            return "validation_steps"
        return ""

    def _rest_of(self, last: Any) -> int:
        size = size_of(last)
        return size if size < self.size else 0


def _repeats_for_ever(data: Any) -> bool:
    """Whether it is a dataset of tf.data that knows of itself that it has no end."""
    return hasattr(data, "element_spec") and int(data.cardinality()) == _INFINITE


def size_of(batch: Any) -> int:
    """The examples of a batch: the first axis of its first array."""
    shapes = [np.shape(leaf) for leaf in jax.tree.leaves(batch)]
    return next((shape[0] for shape in shapes if shape), 1)
