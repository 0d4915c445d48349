"""Whether what a learner hands over is a step of JAX. JAX is not imported for it."""

import functools
import inspect
import sys
from types import ModuleType
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
    if any(_package(kind) in _JAX for kind in kinds):
        return True
    function = inspect.unwrap(subject)
    if not inspect.isroutine(function):
        function = type(function).__call__
    try:
        names = inspect.getclosurevars(function)
    except (TypeError, ValueError):  # not written in Python, or a name without a value yet
        return False
    packages = {_package(each) for each in (*names.globals.values(), *names.nonlocals.values())}
    return bool(packages & _JAX) and not packages & _TENSORFLOW


def _package(value: Any) -> str:
    """The package of a module, a class or a function; "" of anything else."""
    name = value.__name__ if isinstance(value, ModuleType) else getattr(value, "__module__", None)
    return (name if isinstance(name, str) else "").split(".")[0]
