"""What the checks of several labs use."""

import contextlib
import functools
import inspect
import re
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any

from lab_utils.check.outcome import Wrong
from lab_utils.check.same import a, difference


def expect(condition: bool, message: str) -> None:
    """Raises `Wrong` with that message unless the condition holds."""
    if not condition:
        raise Wrong(message)


@contextlib.contextmanager
def translated(
    part: str, message: str, kinds: tuple[type[Exception], ...] = (ValueError, TypeError)
) -> Iterator[None]:
    """Context manager: an exception whose text holds `part` becomes `Wrong` with that message.

    Args:
        part: a regular expression.
        message: what to say instead.
        kinds: of exceptions.
    """
    try:
        yield
    except kinds as error:
        if not re.search(part, str(error)):
            raise
        raise Wrong(message) from None


def same(found: Any, expected: Any, what: str, tolerance: float = 1e-6) -> None:
    """Raises `Wrong` unless a value is the expected one, in kind, shape, type and numbers.

    Args:
        found: the learner's.
        expected: ours: a number, a text, a list of a shape, a type, an array, or a list or dict of such.
        what: what it is, in words, at the beginning of the message: "The shape of the logits".
        tolerance: of numbers, relative and absolute.
    """
    if apart := difference(expected, found, tolerance):
        raise Wrong(f"{what}: {apart}.")


def returns(value: Any, kind: type | tuple[type, ...] | Callable, function: str, noun: str) -> None:
    """Raises `Wrong` unless what the learner's `function` returned is of that kind, in words `noun`."""
    fits = isinstance(value, kind) if isinstance(kind, type | tuple) else kind(value)
    expect(fits, f"{function} should return {noun}; yours returns {a(value)}.")


def expect_dataset(value: Any, function: str) -> None:
    """Raises `Wrong` unless `value`, which the learner's `function` returned, is a tf.data dataset."""
    import tensorflow as tf

    returns(value, tf.data.Dataset, function, "a dataset")


def model_with(model_fn: Callable, inference: Callable) -> Callable:
    """`model_fn`, but that it and its helpers find another function under the name `inference`.

    When called, it raises `Wrong` where `inference` is never asked.
    """
    asked = []

    def asking(*arguments: Any, **named: Any) -> Any:
        asked.append(True)
        return inference(*arguments, **named)

    model = with_names(model_fn, inference=asking)
    told = "model_fn should get its logits from inference(features), the function of TODO 1b."

    def called(*arguments: Any, **named: Any) -> Any:
        try:
            spec = model(*arguments, **named)
        except Exception:
            expect(bool(asked) or _mentions(model_fn, "inference"), told)
            raise
        expect(bool(asked), told)
        return spec

    return called


def with_names(function: Callable, **names: Any) -> Callable:
    """`function`, but that it and its helpers find other objects under these global names while it runs.

    What it returns and is called later finds the learner's own again: put both into `other_names`.
    """

    @functools.wraps(function)
    def called(*arguments: Any, **named: Any) -> Any:
        with other_names(function, **names):
            return function(*arguments, **named)

    called.__signature__ = inspect.signature(function)
    return called


@contextlib.contextmanager
def other_names(function: Callable, **names: Any) -> Iterator[None]:
    """Context manager: the module of the learner's function has other objects under these global names.

    So has a second name that the learner gave to the same function or class (`make_host_fn = HostFn`).
    """
    scope = scope_of(function)
    own = {name: scope[name] for name in names if callable(scope.get(name))}
    for name, each in own.items():
        names |= {alias: names[name] for alias, value in scope.items() if value is each}
    kept = {name: scope[name] for name in names if name in scope}
    scope.update(names)
    try:
        yield
    finally:
        for name in names:
            scope.pop(name, None)
        scope.update(kept)


def call(function: Callable, given: dict[str, Any]) -> Any:
    """Calls it by the lab's names, or in their order where the learner has named the parameters otherwise."""
    try:
        inspect.signature(function).bind(**given)
    except (TypeError, ValueError):
        return function(*given.values())
    return function(**given)


def all_layers(model: Any) -> list[Any]:
    """The layers of a Keras model, those of models within it too, in order."""
    found = []
    for layer in model.layers:
        found += all_layers(layer) if hasattr(layer, "layers") else [layer]
    return found


def scope_of(function: Callable) -> dict[str, Any]:
    """The global names that a function finds, also behind a decorator, a partial or an object."""
    function = inspect.unwrap(function)
    while isinstance(function, functools.partial):
        function = inspect.unwrap(function.func)
    function = getattr(function, "python_function", function)  # what tf.function keeps
    function = getattr(function, "__func__", function)
    if hasattr(function, "__globals__"):
        return function.__globals__
    kind = function if isinstance(function, type) else type(function)
    return vars(sys.modules[kind.__module__])


def _mentions(function: Callable, name: str) -> bool:
    """Whether a function, or one of the same module that it names, uses that global name."""
    scope, seen = scope_of(function), set()
    waiting = [getattr(inspect.unwrap(function), "__code__", None)]
    while waiting:
        code = waiting.pop()
        if not isinstance(code, types.CodeType) or code in seen:
            continue
        seen.add(code)
        if name in code.co_names:
            return True
        waiting += [each for each in code.co_consts if isinstance(each, types.CodeType)]
        waiting += [getattr(scope.get(each), "__code__", None) for each in code.co_names]
    return False


COMPARES_CLASSES = (
    "v1.metrics.accuracy compares a class with a class, [B] with [B]: take the most likely class of each "
    "row of logits, along axis 1."
)


def classes_compared() -> contextlib.AbstractContextManager[None]:
    """Context manager: an accuracy of labels and something that is not one class a row is told."""
    return translated(r"Shapes? .*(are incompatible|must be equal)", COMPARES_CLASSES)
