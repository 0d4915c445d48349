"""Where a program of JAX begins to train: at a step that it calls with arrays, which is not carried out."""

import functools
import re
import sys
import types
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any
from unittest import mock

_MAKERS = ("jit", "pmap")  # of functions that are compiled
_OF_KERAS = re.compile(r"-packages[/\\]keras[/\\]")
_GRADIENTS = ("grad", "value_and_grad")


def without_training(jax: types.ModuleType, met: Callable[[], None], stack: ExitStack) -> None:
    """Until `stack` is left, functions that the program makes with JAX call `met` before they train.

    A function that was jitted trains where one of its results takes the place of an argument, as new
    parameters or gradients do; what jax.grad gives does where it is called with arrays. `met` raises.
    """
    watching = [True]
    stack.callback(watching.clear)

    def is_training(function: Any, args: tuple, kwargs: dict) -> bool:
        leaves = jax.tree.leaves((args, kwargs))
        traced = any(isinstance(leaf, jax.core.Tracer) for leaf in leaves)
        return bool(watching) and not traced and _gives_anew(jax, function, args, kwargs)

    def is_gradient(function: Any, args: tuple, kwargs: dict) -> bool:
        leaves = jax.tree.leaves((args, kwargs))
        return bool(watching) and not any(isinstance(leaf, jax.core.Tracer) for leaf in leaves)

    for names, trains in ((_MAKERS, is_training), (_GRADIENTS, is_gradient)):
        for name in names:
            maker = _maker(getattr(jax, name), trains, met)
            stack.enter_context(mock.patch.object(jax, name, maker))


def _maker(make: Callable, trains: Callable[..., bool], met: Callable[[], None]) -> Callable:
    """As jax.jit: of a function, or of options only, as a decorator has them."""

    @functools.wraps(make)
    def made(*args: Any, **kwargs: Any) -> Any:
        result = make(*args, **kwargs)
        if _OF_KERAS.search(
            sys._getframe(1).f_code.co_filename
        ):  # predict before fit trains nothing
            return result
        if args or "fun" in kwargs:
            return _Watched(result, trains, met)
        return lambda function: _Watched(result(function), trains, met)

    return made


class _Watched:
    """A function that JAX made, in all else as it is."""

    def __init__(self, function: Any, trains: Callable[..., bool], met: Callable[[], None]) -> None:
        functools.update_wrapper(self, function)
        self._function, self._trains, self._met = function, trains, met

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self._trains(self._function, args, kwargs):
            self._met()
        return self._function(*args, **kwargs)

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else types.MethodType(self, instance)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._function, name)


def _gives_anew(jax: types.ModuleType, function: Any, args: tuple, kwargs: dict) -> bool:
    """Whether a result has shape and type of an array of floats that it takes: a new value, or a gradient."""
    shapes = getattr(function, "eval_shape", None) or functools.partial(jax.eval_shape, function)
    try:
        results = set(map(_kind, jax.tree.leaves(shapes(*args, **kwargs))))
    except Exception:  # the call itself will raise it
        return False
    taken = set(map(_kind, jax.tree.leaves((args, kwargs))))
    return any(kind and "float" in kind[1] for kind in taken & results)


def _kind(leaf: Any) -> tuple | None:
    """Shape and type of an array; None for numbers and all else."""
    shape = getattr(leaf, "shape", ())
    return (tuple(shape), str(leaf.dtype)) if shape and hasattr(leaf, "dtype") else None
