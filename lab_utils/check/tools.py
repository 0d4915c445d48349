"""What the checks of several labs use."""

import types
from collections.abc import Callable
from typing import Any

from lab_utils.check.outcome import Wrong


def expect(condition: bool, message: str) -> None:
    """Raises `Wrong` with that message unless the condition holds."""
    if not condition:
        raise Wrong(message)


def a(value: Any) -> str:
    """What a function returned, with its article, for a message."""
    if value is None:
        return "None (is a return missing?)"
    name = type(value).__name__
    return f"{'an' if name[0] in 'AEIOUaeiou' else 'a'} {name}"


def expect_dataset(value: Any, function: str) -> None:
    """Raises `Wrong` unless `value`, which the learner's `function` returned, is a tf.data dataset."""
    import tensorflow as tf

    expect(
        isinstance(value, tf.data.Dataset),
        f"{function} should return a dataset; yours returns {a(value)}.",
    )


def model_with(model_fn: Callable, inference: Callable) -> Callable:
    """`model_fn`, but that it finds another function under the name `inference`."""
    expect(
        "inference" in model_fn.__code__.co_names,
        "model_fn should get its logits from inference(features), the function of TODO 1b.",
    )
    return with_names(model_fn, inference=inference)


def with_names(function: Callable, **names: Any) -> Callable:
    """`function`, but that it finds other objects under these global names."""
    return types.FunctionType(
        function.__code__,
        function.__globals__ | names,
        function.__name__,
        function.__defaults__,
        function.__closure__,
    )
