"""What the checks of several labs use."""

import contextlib
import functools
import inspect
import re
import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

from lab_utils.check.outcome import Wrong
from lab_utils.check.same import a, difference
from lab_utils.common import source

_LONGEST = 400  # characters of an exception's message


def expect(condition: bool, message: str) -> None:
    """Raises `Wrong` with that message unless the condition holds."""
    if not condition:
        raise Wrong(message)


@contextlib.contextmanager
def as_wrong(
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


def same(actual: Any, expected: Any, what: str) -> None:
    """Raises `Wrong` unless a value is the expected one, in kind, shape, type and numbers.

    Args:
        actual: the learner's.
        expected: ours: a number, a text, a list of a shape, a type, an array, or a list or dict of such.
        what: what it is, in words, at the beginning of the message: "The shape of the logits".
    """
    if apart := difference(expected, actual):
        raise Wrong(f"{what}: {apart}.")


def returns(value: Any, kind: type | tuple[type, ...] | bool, function: str, noun: str) -> None:
    """Raises `Wrong` unless what the learner's `function` returned is `noun`, by type or as `kind` says."""
    fits = kind if isinstance(kind, bool) else isinstance(value, kind)
    expect(fits, f"{function} should return {noun}; yours returns {a(value)}.")


def expect_keys(value: Any, keys: Collection[str], name: str) -> None:
    """Raises `Wrong` unless the learner's variable `name` is a dict with exactly these keys."""
    kind = f"{name} should be a dict of {', '.join(keys)}"
    expect(isinstance(value, Mapping), f"{kind}; yours is {a(value)}.")
    apart = {"missing": set(keys) - set(value), "unknown": set(value) - set(keys)}
    words = [f"{word}: {', '.join(sorted(map(str, odd)))}" for word, odd in apart.items() if odd]
    expect(not words, f"{kind}. Keys {'; '.join(words)}.")


def several(value: Any, count: int) -> bool:
    """Whether a value is a tuple or list of so many."""
    return isinstance(value, tuple | list) and len(value) == count


def expect_dataset(value: Any, function: str) -> None:
    """Raises `Wrong` unless `value`, which the learner's `function` returned, is a tf.data dataset."""
    import tensorflow as tf

    returns(value, tf.data.Dataset, function, "a dataset")


def first_batches(dataset: Any, most: int) -> list[Any]:
    """The first `most` batches of a dataset of the default graph, as arrays; fewer where it ends before."""
    from lab_utils.estimator import tf, v1

    following, batches = v1.data.make_one_shot_iterator(dataset).get_next(), []
    with v1.Session() as session, contextlib.suppress(tf.errors.OutOfRangeError):
        while len(batches) < most:
            batches.append(session.run(following))
    return batches


@contextlib.contextmanager
def other_names(function: Callable, **names: Any) -> Iterator[None]:
    """Context manager: the module of the learner's function has other objects under these global names.

    So has a second name that the learner gave to the same function or class (`make_host_fn = HostFn`).
    """
    scope = scope_of(function)
    for name in [name for name in names if callable(scope.get(name))]:
        names |= {alias: names[name] for alias, value in scope.items() if value is scope[name]}
    before = {name: scope[name] for name in names if name in scope}
    scope.update(names)
    try:
        yield
    finally:
        for name in names:
            scope.pop(name, None)
        scope.update(before)


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


def reason(error: BaseException) -> str:
    """Kind and message of an exception, on one line, without the stacks of AutoGraph and TensorFlow.

    Of a long text its beginning and its end: either may hold the reason.
    """
    text = f"{type(error).__name__}: {source.without_stacks(error)}"
    if "in user code:" in text:
        text = source.told(error)
    lines = [line.strip() for line in text.splitlines()]
    text = " ".join(line for line in lines if line and not line.startswith("[[{{node"))
    text = re.sub(r" ?\[Op:[^\]]*\]( name: .*)?$", "", text)
    if len(text) <= _LONGEST:
        return text
    return f"{text[: _LONGEST // 3]} ... {text[-2 * _LONGEST // 3 :]}"


def failure(error: Exception) -> str:
    """Kind and message of an exception and, where it is in the learner's program, its line."""
    where = source.place(error)
    ours = (source.START / where.file).resolve().is_relative_to(Path(__file__).parents[1])
    at = f" At line {where.line}: `{where.code}`." if where.line and not ours else ""
    return f"{reason(error)}{at}"
