"""Where a program made its Keras layers and its datasets: they do not remember it, so it is noted."""

import functools
import re
import sys
import traceback
import weakref
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Any
from unittest import mock

from lab_utils.common.source import NOWHERE, Place, place, place_of_stack
from lab_utils.dry_run.private import tensorflow as _tensorflow
from lab_utils.dry_run.trace.blame import within
from lab_utils.estimator import tf

_layers: weakref.WeakKeyDictionary[Any, Place] = weakref.WeakKeyDictionary()
_datasets: weakref.WeakKeyDictionary[Any, Place] = weakref.WeakKeyDictionary()


@contextmanager
def noted(layers: Iterable[type]) -> Iterator[None]:
    """Context manager: the lines are noted that make a dataset, or a layer of one of these base classes."""
    with ExitStack() as stack:
        for owner, places in [(tf.data.Dataset, _datasets), *((each, _layers) for each in layers)]:
            stack.enter_context(mock.patch.object(owner, "__init__", _noting(owner, places)))
        yield


def _noting(owner: type, places: Any) -> Callable:
    real = owner.__init__

    @functools.wraps(real)
    def __init__(self: Any, *arguments: Any, **options: Any) -> None:
        frames = traceback.StackSummary.extract(
            traceback.walk_stack(sys._getframe(1)), lookup_lines=False
        )
        own = [frame for frame in reversed(frames) if frame.filename != __file__]
        places.setdefault(self, place_of_stack(own))
        real(self, *arguments, **options)

    return __init__


def of_layer(known: Place) -> Place:
    """For an op without a line of the learner's: where the layer was made whose name the op bears."""
    if known.file or not known.op:
        return known
    lines = {layer.name: made for layer, made in _layers.items()}
    for part in reversed(known.op.split("/")[:-1]):
        again = re.sub(r"_\d+$", "", part)  # a scope that is entered once more
        made = lines.get(part if part in lines else again, NOWHERE)
        if made.file:
            return replace(made, op=known.op)
    return known


def of_elements(dataset: Any, rule: str) -> Place:
    """Where a dataset came to hold strings (TPU119) or unknown sizes (TPU102); NOWHERE where it is not known.

    The first on the way from its sources counts whose elements have the same types: records are strings
    by right, before they are parsed.
    """
    found, batched = NOWHERE, True
    while dataset is not None:
        function = _tensorflow.function_of_dataset(dataset)
        inner = within(function, rule) if function is not None else None
        found = (place(inner) if inner is not None else _datasets.get(dataset, NOWHERE)) or found
        types, batched = _types(dataset), batched and not _makes_batches(dataset)
        before = _tensorflow.inputs_of_dataset(dataset)
        dataset = next((d for d in before if _types(d) == types and has(d, rule, batched)), None)
    return found


def of_batches(dataset: Any) -> Place:
    """Where the last batches of a dataset were made; NOWHERE where that is not known."""
    while dataset is not None and not _makes_batches(dataset):
        dataset = next(iter(_tensorflow.inputs_of_dataset(dataset)), None)
    return _datasets.get(dataset, NOWHERE) if dataset is not None else NOWHERE


def has(dataset: Any, rule: str, batched: bool = True) -> bool:
    """Whether a dataset's batches, or its examples, have the fault that `rule` (TPU102, TPU119) speaks of."""
    specs = _specs(dataset)
    if rule == "TPU119":
        return any(spec.dtype == tf.string for spec in specs)
    inner = [spec.shape[1:] if batched and spec.shape.rank else spec.shape for spec in specs]
    scalars = batched and any(spec.shape.rank == 0 for spec in specs)
    return scalars or not all(shape.is_fully_defined() for shape in inner)


def _makes_batches(dataset: Any) -> bool:
    return "Batch" in type(dataset).__name__


def _types(dataset: Any) -> list[Any]:
    return [spec.dtype for spec in _specs(dataset)]


def _specs(dataset: Any) -> list[Any]:
    """The specs of all tensors of an element; labels may be None."""
    specs = tf.nest.flatten(dataset.element_spec)
    return [spec for spec in specs if hasattr(spec, "dtype") and hasattr(spec, "shape")]
