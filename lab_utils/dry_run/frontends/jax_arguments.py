"""What a JAX step is called with: one example or several, from arrays, shapes, or streams of batches."""

import inspect
import itertools
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

FEW = 8  # examples of a stream, to see whether shapes change


def examples(step: Callable, data: Any) -> list[tuple]:
    """The positional arguments of each example call of `step`.

    A tuple is the arguments where the step takes as many, else the one argument. A dict that is not the one
    argument holds them by name, a list that is not holds an example each. An iterator, a dataset or a loader,
    as `data` or as one of the arguments, stands for its first elements.

    Raises:
        TypeError: the step cannot be called so.
        ValueError: a stream is empty.
    """
    if is_stream(data):
        return [call for each in _first(data) for call in examples(step, each)]
    if isinstance(data, dict) and not _takes(step, (data,)) and (call := _by_name(step, data)):
        return examples(step, call)
    if isinstance(data, list) and data and not _takes(step, (data,)):
        return [call for each in data for call in examples(step, each)]
    alone = type(data) is not tuple or (not _takes(step, data) and _takes(step, (data,)))
    call = (data,) if alone else data
    if not _takes(step, call):
        raise TypeError(
            f"the step cannot be called with the example: {_why_not(step, call)}. Give the arguments of one "
            "call as a tuple, such as (state, batch); bind others with functools.partial"
        )
    columns = [_first(each) if is_stream(each) else None for each in call]
    count = min((len(column) for column in columns if column is not None), default=1)
    calls = [
        tuple(
            each if column is None else column[n]
            for each, column in zip(call, columns, strict=True)
        )
        for n in range(count)
    ]
    return [jax.tree.map(abstract, each) for each in calls]


def is_array(leaf: Any) -> bool:
    """Whether a leaf of a pytree has a shape and a type for JAX."""
    return (hasattr(leaf, "shape") and hasattr(leaf, "dtype")) or isinstance(
        leaf, bool | int | float | complex
    )


def is_stream(value: Any) -> bool:
    """Whether `value` yields batches: an iterator, a tf.data dataset, a loader; no array, no pytree."""
    if is_array(value) or isinstance(value, str | bytes | type):
        return False
    return hasattr(value, "__next__") or (
        hasattr(value, "__iter__") and jax.tree_util.all_leaves([value])
    )


def abstract(leaf: Any) -> Any:
    """A leaf as JAX takes it: an array of another library as its shape and type, the rest as it is."""
    if not (hasattr(leaf, "shape") and hasattr(leaf, "dtype")):
        return leaf
    if isinstance(leaf, jax.Array | jax.ShapeDtypeStruct | np.ndarray | np.generic):
        return leaf
    dtype = getattr(leaf.dtype, "as_numpy_dtype", None) or str(leaf.dtype).rpartition(".")[2]
    return jax.ShapeDtypeStruct(tuple(leaf.shape), jax.numpy.dtype(dtype))


def _takes(step: Callable, call: tuple) -> bool:
    return _why_not(step, call) == ""


def _by_name(step: Callable, named: dict[str, Any]) -> tuple:
    """The positional arguments that have these names; () where `step` does not take them so."""
    try:
        bound = inspect.signature(step).bind(**named)
    except (TypeError, ValueError):
        return ()
    return () if bound.kwargs else bound.args


def _why_not(step: Callable, call: tuple) -> str:
    """Why `step` cannot be called so; "" where it can, or where its signature is not known."""
    try:
        inspect.signature(step).bind(*call)
    except ValueError:
        return ""
    except TypeError as error:
        return str(error)
    return ""


def _first(stream: Any) -> list[Any]:
    found = list(itertools.islice(iter(stream), FEW))
    if not found:
        raise ValueError("the stream of batches is empty")
    return found
