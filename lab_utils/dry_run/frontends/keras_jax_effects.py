"""What a Keras step does in Python while JAX traces it: that happens once, and not in each step."""

import builtins
import contextlib
import functools
import random
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

import keras
import numpy as np

from lab_utils.common import source
from lab_utils.common.source import Place
from lab_utils.dry_run.facts.jax import Effect
from lab_utils.dry_run.frontends.caller import caller


@contextlib.contextmanager
def noted() -> Iterator[list[Effect]]:
    """Context manager: a list that has, once it is left, what the program's own lines did, each line once."""
    found: dict[Place, Effect] = {}

    def note(what: str, result: str, case: str) -> None:
        if place := _of_program():
            found.setdefault(place, Effect(place, what, result, case))

    effects: list[Effect] = []
    with contextlib.ExitStack() as stack:
        printed = _calling(print, note, "prints", "later steps print nothing", "prints")
        stack.enter_context(mock.patch.object(builtins, "print", printed))
        for module, name in ((np.random, "NumPy"), (random, "Python")):
            for function in _drawing(module):
                what = f"draws random numbers with {name}"
                real = getattr(module, function)
                drawn = _calling(real, note, what, "all steps use the same numbers", "draws")
                stack.enter_context(mock.patch.object(module, function, drawn))
        stack.enter_context(_attributes(note))
        try:
            yield effects
        finally:
            effects += found.values()


def _of_program() -> Place:
    """The line of the program that calls the function that calls this one's caller, if it is the program."""
    frame = sys._getframe(3)
    is_own = not source.is_installed(frame.f_code.co_filename)
    return caller(frame) if is_own else Place()


def _calling(real: Callable, note: Callable, *facts: str) -> Callable:
    @functools.wraps(real)
    def called(*arguments: Any, **options: Any) -> Any:
        note(*facts)
        return real(*arguments, **options)

    return called


def _drawing(module: types.ModuleType) -> list[str]:
    """The functions of a module that draw from its one generator."""
    methods = [
        name
        for name, function in vars(module).items()
        if not name.startswith("_") and getattr(function, "__self__", None) is not None
    ]
    made = ["default_rng"] if hasattr(module, "default_rng") else []
    return made + [n for n in methods if "seed" not in n and not n.endswith("state")]


def _attributes(note: Callable) -> Any:
    """A patch: numbers that the program's lines change on a layer, and traced values that they keep there."""
    real = keras.Layer.__setattr__

    def __setattr__(self: Any, name: str, value: Any) -> None:
        before = getattr(self, name, None) if not name.startswith("__") else None
        is_number = isinstance(value, int | float) and isinstance(before, int | float)
        if is_number and not isinstance(value, bool) and value != before:
            note(f"changes self.{name}", "it keeps the value of the first step", "keeps")
        real(self, name, value)

    return mock.patch.object(keras.Layer, "__setattr__", __setattr__)
