"""The matmul FLOPs that a jaxpr asks for, whole: as many as one core alone would do."""

import math
from collections.abc import Iterator
from typing import Any

PALLAS = "pallas_call"  # the primitive of a Pallas kernel


def flops(jaxpr: Any) -> float | None:
    """FLOPs of all matmuls and convolutions of a step; None where a loop's rounds are not known.

    Of branches the dearest counts. A matmul of [m, k] and [k, n] is 2 m k n (a multiplication and an addition
    each). Convolutions count their padding, so that theirs are upper bounds.
    """
    try:
        return _of(jaxpr)
    except _Unknown:
        return None


class _Unknown(Exception):
    pass


def _of(jaxpr: Any) -> float:
    return sum(_equation(each) for each in jaxpr.eqns)


def _equation(equation: Any) -> float:
    name, held = equation.primitive.name, equation.params
    if name == "dot_general":
        (contracted, _), _ = held["dimension_numbers"]
        left = equation.invars[0].aval.shape
        return 2.0 * _size(equation.outvars[0]) * math.prod(left[axis] for axis in contracted)
    if name == "conv_general_dilated":
        kernel = equation.invars[1].aval.shape
        made = kernel[held["dimension_numbers"].rhs_spec[0]]  # output features
        return 2.0 * _size(equation.outvars[0]) * math.prod(kernel) / made
    bodies = [_of(each) for each in inner(equation)]
    if name == "cond":
        return max(bodies, default=0.0)
    if name == "while" and sum(bodies):
        raise _Unknown
    if name == "shard_map":  # its body is one core's
        axes = held.get("manual_axes") or held["mesh"].axis_names
        return sum(bodies) * math.prod(held["mesh"].shape[axis] for axis in axes)
    if name == PALLAS and sum(bodies):  # its body is one round of its grid
        grid = getattr(held.get("grid_mapping"), "grid", (None,))
        if not all(isinstance(each, int) for each in grid):
            raise _Unknown
        return sum(bodies) * math.prod(grid)
    return sum(bodies) * (held["length"] if name == "scan" else 1)


def _size(variable: Any) -> int:
    return math.prod(variable.aval.shape)


def inner(equation: Any) -> Iterator[Any]:
    """The jaxprs of loops, branches and functions that an equation holds."""
    for value in equation.params.values():
        for each in value if isinstance(value, tuple | list) else (value,):
            jaxpr = getattr(each, "jaxpr", each)
            if hasattr(jaxpr, "eqns"):
                yield jaxpr
