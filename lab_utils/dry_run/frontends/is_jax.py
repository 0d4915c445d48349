"""Whether what a learner hands over is a step of JAX. JAX is not imported for it."""

import functools
import inspect
import sys
from collections.abc import Iterator
from types import CodeType, ModuleType
from typing import Any

_JAX = {"jax", "jaxlib", "flax", "equinox", "optax", "haiku"}
_TENSORFLOW = {"tensorflow", "keras", "tf_keras"}


def is_jax(subject: Any, data: Any) -> bool:
    """Whether `subject` is jitted, is given JAX's arrays, or is written with JAX and without TensorFlow."""
    if "jax" not in sys.modules or not callable(subject) or isinstance(subject, type):
        return False
    while isinstance(subject, functools.partial):
        subject = subject.func
    kinds = [type(subject), *map(type, sys.modules["jax"].tree.leaves(data))]
    if any(_package(kind.__module__) in _JAX for kind in kinds):
        return True
    packages = set(_packages(subject))
    return bool(packages & _JAX) and not packages & _TENSORFLOW


def _package(module: str | None) -> str:
    return (module or "").split(".")[0]


def _packages(function: Any) -> Iterator[str]:
    """The packages of what the code of a function, or of a callable object's class, names."""
    function = inspect.unwrap(function)
    if not inspect.isroutine(function):
        function = type(function).__call__
    if not hasattr(function, "__code__"):
        return
    values = [function.__globals__.get(name) for name in _names_in(function.__code__)]
    for cell in function.__closure__ or ():
        try:
            values.append(cell.cell_contents)
        except ValueError:  # nothing stands in it yet
            continue
    for value in values:
        if isinstance(value, ModuleType):
            yield _package(value.__name__)
        elif callable(value):
            yield _package(getattr(value, "__module__", ""))


def _names_in(code: CodeType) -> Iterator[str]:
    """The names that a function looks up, and those that the functions in it do."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names_in(constant)
