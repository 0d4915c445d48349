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


def _apart(expected: Any, actual: Any, tolerance: float) -> tuple[str, str, str] | None:
    """Where two results differ, and what stands there in ours and in the learner's; None if nowhere."""
    both = expected, actual = _plain(expected), _plain(actual)
    unequal = "", show(expected), show(actual)
    if all(isinstance(value, Mapping) for value in both):
        for key in {**expected, **actual}:
            if key not in expected or key not in actual:
                there = (show(value[key]) if key in value else "nothing" for value in both)
                return f"[{key!r}]", *there
        return _first(expected, actual, expected, tolerance)
    if all(isinstance(value, list | tuple) for value in both) and len(expected) == len(actual):
        return _first(expected, actual, range(len(expected)), tolerance)
    if all(isinstance(value, np.ndarray) for value in both):
        kinds = [f"{array.dtype} {list(array.shape)}" for array in both]
        if kinds[0] != kinds[1]:
            return "", *kinds
        if expected.dtype.kind in "OSUV":
            return None if np.array_equal(expected, actual) else unequal
        close = np.isclose(actual, expected, tolerance, tolerance, equal_nan=True)
        if close.all():
            return None
        place = tuple(map(int, np.argwhere(~close)[0]))
        return str(list(place)), show(expected[place]), show(actual[place])
    if isinstance(expected, Real) and not isinstance(expected, bool):
        if not isinstance(actual, Real) or isinstance(actual, bool):
            return "", f"a number, {show(expected)}", show(actual) if actual is None else a(actual)
        near = math.isclose(expected, actual, rel_tol=tolerance, abs_tol=1e-9)
        return None if near or (math.isnan(expected) and math.isnan(actual)) else unequal
    return None if type(expected) is type(actual) and expected == actual else unequal


def _first(expected: Any, actual: Any, keys: Any, tolerance: float) -> tuple[str, str, str] | None:
    for key in keys:
        if apart := _apart(expected[key], actual[key], tolerance):
            return f"[{key!r}]{apart[0]}", *apart[1:]
    return None
