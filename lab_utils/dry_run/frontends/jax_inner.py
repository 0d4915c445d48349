"""The jitted function that an ordinary function calls, where the ordinary one cannot be traced as a whole.

People hand over the function of their loop: it sets a mesh, calls a jitted step, reads the loss as a float,
and logs it. JAX can trace the jitted step alone. The ordinary function is therefore run up to its first call
of a jitted one, in whose place an object stands that traces it and ends the run.
"""

import functools
import inspect
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from types import CellType, MethodType, ModuleType
from typing import Any

import jax

from lab_utils.common import source
from lab_utils.dry_run.frontends import jax_steps
from lab_utils.dry_run.frontends.is_jax import filled, names_in, package

_DEPTH = 3  # functions and objects between the step and the jitted function


class _Met(BaseException):
    """Ends the run at the call of `function`."""

    def __init__(self, function: Callable, traced: Any) -> None:
        super().__init__()
        self.function, self.traced = function, traced


class _StandIn:
    """In the place of a jitted function: its call traces it."""

    def __init__(self, function: Callable) -> None:
        self._function = function

    def __call__(self, *arguments: Any, **keywords: Any) -> None:
        arguments, keywords = jax.tree.map(_shape, (arguments, keywords))
        raise _Met(self._function, jax_steps.trace(self._function, arguments, keywords))

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        """As a method of the learner's class."""
        return self if instance is None else MethodType(self, instance)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._function, name)


def traced(step: Callable, call: tuple) -> tuple[Callable, Any]:
    """`step` and the jax.stages.Traced of one call; or the first jitted function that `step` calls, and its.

    Raises:
        Exception: what the step, or the jitted function, raises while it is traced.
    """
    try:
        return step, jax_steps.trace(step, call)
    except Exception:
        if jax_steps.is_jitted(jax_steps.source(step)) or not (found := _met(step, call)):
            raise
        return found.function, found.traced


def _met(step: Callable, call: tuple) -> _Met | None:
    function, bound, keywords = jax_steps.unbound(step)
    bound, call = ([_swapped(each) for each in given] for given in (bound, call))
    keywords = {name: _swapped(each) for name, each in keywords.items()}
    handed = any(isinstance(each, _StandIn) for each in (*bound, *call, *keywords.values()))
    with ExitStack() as stack:
        found = list(_jitted(step, _DEPTH, set()))
        for put, jitted in found:
            put(_StandIn(jitted))
            stack.callback(put, jitted)
        step = functools.partial(function, *bound, **keywords)
        # Traced, nothing runs. But a mesh is set, and an array read as NumPy's, outside of a trace alone.
        for run in (jax.eval_shape, lambda step, *given: step(*given)) if found or handed else ():
            try:
                run(step, *call)
            except _Met as met:
                return met
            except Exception as error:
                if _is_of_the_jitted(error):
                    raise
    return None


def _swapped(value: Any) -> Any:
    return _StandIn(value) if _is_theirs(value) else value


def _is_of_the_jitted(error: Exception) -> bool:
    """Whether an exception came out of a jitted function while its stand-in traced it."""
    traceback = error.__traceback__
    while traceback:
        if traceback.tb_frame.f_code is _StandIn.__call__.__code__:
            return True
        traceback = traceback.tb_next
    return False


def _shape(leaf: Any) -> Any:
    if not isinstance(leaf, jax.core.Tracer):
        return leaf
    return jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, weak_type=leaf.aval.weak_type)


def _jitted(holder: Any, depth: int, seen: set[int]) -> Iterator[tuple[Callable, Callable]]:
    """Jitted functions that a function or an object can reach, each after what replaces it."""
    if id(holder) in seen:
        return
    seen.add(id(holder))
    for put, value in _held(holder):
        if _is_theirs(value):
            yield put, value
        elif depth and not isinstance(value, type | ModuleType) and _is_the_learners(value):
            yield from _jitted(value, depth - 1, seen)


def _is_theirs(value: Any) -> bool:
    """Whether it is a jitted function, and none of JAX's own, as jnp.where."""
    if not jax_steps.is_jitted(value):
        return False
    function, _, _ = jax_steps.unbound(inspect.unwrap(value))
    return package(getattr(function, "__module__", "")) not in ("jax", "jaxlib")


def _held(holder: Any) -> Iterator[tuple[Callable[[Any], None], Any]]:
    """What a function looks up, or an object and its class hold: how it is replaced, and the value."""
    function, bound, keywords = jax_steps.unbound(holder)
    for each in (*bound, *keywords.values()):
        if not jax_steps.is_jitted(each):  # _met hands over what stands for it
            yield _nowhere, each
    code = getattr(function, "__code__", None)
    if code is None:
        yield from _attributes(function)
        return
    for cell in function.__closure__ or ():
        if filled(cell):
            yield _into(cell), cell.cell_contents
    names = set(names_in(code))
    for name in names & function.__globals__.keys():
        value = function.__globals__[name]
        yield _into(function.__globals__, name), value
        if isinstance(value, ModuleType) and not source.is_installed(
            getattr(value, "__file__", "") or ""
        ):
            for inner in names & vars(value).keys():
                yield _into(vars(value), inner), vars(value)[inner]


def _attributes(instance: Any) -> Iterator[tuple[Callable[[Any], None], Any]]:
    held = getattr(instance, "__dict__", {})
    for name, value in list(held.items()) if isinstance(held, dict) else ():
        yield _into(held, name), value
    for owner in type(instance).__mro__:
        if _is_the_learners(owner):
            for name, value in list(vars(owner).items()):
                if jax_steps.is_jitted(value) or inspect.isfunction(value):
                    yield (lambda new, owner=owner, name=name: setattr(owner, name, new)), value


def _into(place: CellType | dict, name: str = "") -> Callable[[Any], None]:
    if isinstance(place, CellType):
        return lambda new: setattr(place, "cell_contents", new)
    return lambda new: place.__setitem__(name, new)


def _nowhere(new: Any) -> None:
    """What a partial binds stays."""


def _is_the_learners(value: Any) -> bool:
    """Whether a function, a class, or the class of an object is written in no installed package."""
    made = value if inspect.isfunction(value) or isinstance(value, type) else type(value)
    try:
        return not source.is_installed(inspect.getfile(inspect.unwrap(made)))
    except (TypeError, OSError):  # built in
        return False
