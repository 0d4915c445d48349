"""Whether two results are the same, and in which words they differ."""

import math
from collections.abc import Mapping
from numbers import Real
from typing import Any

import numpy as np

_LONGEST = 80  # characters of a value that is shown whole


def difference(expected: Any, found: Any, tolerance: float = 1e-6) -> str:
    """How a result differs from ours: "expected 6.5, yours gives 2.25"; "" where it is the same.

    Lists are as good as tuples, 4.0 as good as 4, a tensor as good as an array. Arrays have to agree in shape
    and type as well.

    Args:
        expected: our result: None, text, a number, an array, or a list or dict of such.
        found: the learner's.
        tolerance: of numbers, relative, and of arrays absolute as well; NaN equals NaN.
    """
    apart = _apart(expected, found, tolerance)
    if apart is None:
        return ""
    where, wanted, yours = apart
    whole = show(expected), show(found)
    if where and max(map(len, whole)) <= _LONGEST and whole[0] != whole[1]:
        where, (wanted, yours) = "", whole
    return f"{where and f'at {where} '}expected {wanted}, yours gives {yours}"


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
        text = "{" + ", ".join(f"{key!r}: {show(each)}" for key, each in value.items()) + "}"
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


def _apart(expected: Any, found: Any, tolerance: float) -> tuple[str, str, str] | None:
    """Where two results differ, and what stands there in ours and in the learner's; None if nowhere."""
    both = expected, found = _plain(expected), _plain(found)
    unequal = "", show(expected), show(found)
    if all(isinstance(each, Mapping) for each in both):
        for key in {**expected, **found}:
            if key not in expected or key not in found:
                there = (show(each[key]) if key in each else "nothing" for each in both)
                return f"[{key!r}]", *there
        return _first(expected, found, expected, tolerance)
    if all(isinstance(each, list | tuple) for each in both) and len(expected) == len(found):
        return _first(expected, found, range(len(expected)), tolerance)
    if all(isinstance(each, np.ndarray) for each in both):
        kinds = [f"{each.dtype} {list(each.shape)}" for each in both]
        if kinds[0] != kinds[1]:
            return "", *kinds
        if expected.dtype.kind in "OSUV":
            return None if np.array_equal(expected, found) else unequal
        close = np.isclose(found, expected, tolerance, tolerance, equal_nan=True)
        if close.all():
            return None
        place = tuple(map(int, np.argwhere(~close)[0]))
        return str(list(place)), show(expected[place]), show(found[place])
    if isinstance(expected, Real) and not isinstance(expected, bool):
        if not isinstance(found, Real) or isinstance(found, bool):
            return "", f"a number, {show(expected)}", show(found) if found is None else a(found)
        near = math.isclose(expected, found, rel_tol=tolerance, abs_tol=1e-9)
        return None if near or (math.isnan(expected) and math.isnan(found)) else unequal
    return None if type(expected) is type(found) and expected == found else unequal


def _first(expected: Any, found: Any, keys: Any, tolerance: float) -> tuple[str, str, str] | None:
    for key in keys:
        if apart := _apart(expected[key], found[key], tolerance):
            return f"[{key!r}]{apart[0]}", *apart[1:]
    return None
