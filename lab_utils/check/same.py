"""Whether two results are the same, and in which words they differ."""

import math
from collections.abc import Mapping
from numbers import Real
from typing import Any

import numpy as np

_LONGEST = 80  # characters of a value that is shown whole


def difference(expected: Any, actual: Any, tolerance: float = 1e-6) -> str:
    """How a result differs from ours: "expected 6.5, yours gives 2.25"; "" where it is the same.

    Lists are as good as tuples, 4.0 as good as 4, a tensor as good as an array. Arrays have to agree in shape
    and type as well.

    Args:
        expected: our result: None, text, a number, an array, or a list or dict of such.
        actual: the learner's.
        tolerance: of numbers, relative, and of arrays absolute as well; NaN equals NaN.
    """
    apart = _apart(expected, actual, tolerance)
    if apart is None:
        return ""
    where, ours, yours = apart
    whole = show(expected), show(actual)
    if where and max(map(len, whole)) <= _LONGEST and whole[0] != whole[1]:
        where, (ours, yours) = "", whole
    return f"{where and f'at {where} '}expected {ours}, yours gives {yours}"


def show(value: Any) -> str:
    """A result in a message: short ones whole, others by what they are."""
    value = _plain(value)
    if isinstance(value, bool) or value is None:
        return str(value)
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.0f}" if value.is_integer() and abs(value) < 1e15 else f"{value:.5g}"
    if isinstance(value, np.ndarray) and value.size > 8:
        return f"{value.dtype} {list(value.shape)}"
    if isinstance(value, np.ndarray):
        return f"{value.dtype} {show(value.tolist())}"
    if isinstance(value, Mapping):
        text = "{" + ", ".join(f"{key!r}: {show(item)}" for key, item in value.items()) + "}"
    elif isinstance(value, list | tuple):
        text = "({})" if isinstance(value, tuple) else "[{}]"
        text = text.format(", ".join(map(show, value)))
    elif isinstance(value, str | bytes | set | frozenset):
        text = repr(value)
    else:
        text = str(getattr(value, "name", "")) or a(value)
    return text if len(text) <= 3 * _LONGEST else f"{text[: 3 * _LONGEST]} ..."


def a(value: Any) -> str:
    """What a function returned, with its article, for a message."""
    if value is None:
        return "None (is a return missing?)"
    name = type(value).__name__
    return f"{'an' if name[0] in 'AEIOUaeiou' else 'a'} {name}"


def _plain(value: Any) -> Any:
    """Tensors and variables as arrays, single numbers as Python's, shapes as lists; the rest as it is."""
    if callable(getattr(value, "as_list", None)):
        return value.as_list() if value.rank is not None else "an unknown shape"
    if callable(getattr(value, "numpy", None)):
        try:
            value = value.numpy()
        except (AttributeError, NotImplementedError):  # of a graph
            return value
    return value.item() if isinstance(value, np.generic) else value


# Where two results differ, and what stands there in ours and in the learner's; None if nowhere.
Apart = tuple[str, str, str] | None


def _apart(expected: Any, actual: Any, tolerance: float) -> Apart:
    """Where two results differ."""
    both = expected, actual = _plain(expected), _plain(actual)
    if all(isinstance(value, Mapping) for value in both):
        return _mappings_apart(expected, actual, tolerance)
    if all(isinstance(value, list | tuple) for value in both) and len(expected) == len(actual):
        return _first(expected, actual, range(len(expected)), tolerance)
    if all(isinstance(value, np.ndarray) for value in both):
        return _arrays_apart(expected, actual, tolerance)
    if isinstance(expected, Real) and not isinstance(expected, bool):
        return _numbers_apart(expected, actual, tolerance)
    is_same = type(expected) is type(actual) and expected == actual
    return None if is_same else ("", show(expected), show(actual))


def _mappings_apart(expected: Mapping, actual: Mapping, tolerance: float) -> Apart:
    """Where two mappings differ: first of all a key that one of them lacks."""
    for key in {**expected, **actual}:
        if key not in expected or key not in actual:
            there = (
                show(value[key]) if key in value else "nothing" for value in (expected, actual)
            )
            return f"[{key!r}]", *there
    return _first(expected, actual, expected, tolerance)


def _arrays_apart(expected: np.ndarray, actual: np.ndarray, tolerance: float) -> Apart:
    """Where two arrays differ: in type or shape, else the first element."""
    kinds = [f"{array.dtype} {list(array.shape)}" for array in (expected, actual)]
    if kinds[0] != kinds[1]:
        return "", *kinds
    if expected.dtype.kind in "OSUV":
        is_same = np.array_equal(expected, actual)
        return None if is_same else ("", show(expected), show(actual))
    close = np.isclose(actual, expected, tolerance, tolerance, equal_nan=True)
    if close.all():
        return None
    place = tuple(map(int, np.argwhere(~close)[0]))
    return str(list(place)), show(expected[place]), show(actual[place])


def _numbers_apart(expected: Any, actual: Any, tolerance: float) -> Apart:
    """How a result differs from a number."""
    if not isinstance(actual, Real) or isinstance(actual, bool):
        return "", f"a number, {show(expected)}", show(actual) if actual is None else a(actual)
    near = math.isclose(expected, actual, rel_tol=tolerance, abs_tol=1e-9)
    is_same = near or (math.isnan(expected) and math.isnan(actual))
    return None if is_same else ("", show(expected), show(actual))


def _first(expected: Any, actual: Any, keys: Any, tolerance: float) -> Apart:
    for key in keys:
        if apart := _apart(expected[key], actual[key], tolerance):
            return f"[{key!r}]{apart[0]}", *apart[1:]
    return None
