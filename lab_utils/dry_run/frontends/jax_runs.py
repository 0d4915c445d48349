"""The step of a program of JAX, found while the program runs: what it calls, with what, and what it trains.

A function that JAX made is looked at when it is called with arrays. One that computes gradients is not
carried out: the call is noted, and gives back the old state and zeros. So the program goes on to its next
calls, which show what is state (results that come back as arguments), what is a batch (arrays that are new
in each call), and which static values change. Any other function is carried out: it prepares data, or makes
the state.
"""

import functools
import os
import re
import sys
import types
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, NoReturn

from lab_utils.common.source import NOWHERE, Place, place
from lab_utils.dry_run.frontends.caller import caller
from lab_utils.dry_run.frontends.cells import CannotJudge
from lab_utils.dry_run.frontends.stand_ins import StandIn, patched

CALLS = (
    3  # of a step, after which the program is ended: its static values and its shapes have shown
)

# By module: what makes functions that are compiled. Flax's and Equinox's own call JAX's, with other
# arguments.
_MAKERS = {
    "jax": ("jit", "pmap", "shard_map"),
    "jax.experimental.pjit": ("pjit",),
    "jax.lax": ("scan",),
    "flax.nnx": ("jit", "pmap"),
    "equinox": ("filter_jit", "filter_pmap"),
}
# Of jax.lax: called outside of jax.jit, it compiles its body, which may be a step.
_LOOP = "scan"
# What Keras makes for predict and evaluate trains nothing; fit is stopped by itself (fits.py).
_OF_KERAS = re.compile(r"-packages[/\\]keras[/\\]")
_GRADIENTS = ("grad", "value_and_grad")  # of jax, called where nothing is compiled
MODULES = tuple(_MAKERS)
_PLATFORM = ("jax_platforms", "jax_platform_name")  # of jax.config
_ACCELERATORS = ("tpu", "gpu", "cuda")


def _precision() -> str | None:
    import jax

    return jax.config.jax_default_matmul_precision


@dataclass
class Step:
    """A function that may be the program's step, and its calls so far.

    Attributes:
        function: what JAX, Flax or Equinox made.
        where: the line of the function, or of the call where that is not the program's.
        called_at: the line of its first call.
        is_jitted: it is compiled as one; False for what jax.grad gives.
        computes_gradients: False where its results only come back as its arguments.
        calls: the first few, (positional, keyword) arguments each.
        pairs: by the number of an array among the arguments, the number of the result that comes back as it.
        new: the numbers of arrays that are others in each call and no results: the batch.
        precision: of matmuls, as jax.default_matmul_precision has it where the step is first called.
    """

    function: Any
    where: Place
    called_at: Place
    is_jitted: bool = True
    computes_gradients: bool = True
    calls: list[tuple[tuple, dict]] = field(default_factory=list)
    pairs: dict[int, int] = field(default_factory=dict)
    new: set[int] = field(default_factory=set)
    precision: str | None = field(default_factory=_precision)
    given: list[Any] = field(default_factory=list, repr=False)  # the results of the last call

    @property
    def is_loop(self) -> bool:
        """Whether it is a scan, with all its rounds: the next one may be of another body."""
        return isinstance(self.function, _Loop)

    @property
    def name(self) -> str:
        """As the program calls it."""
        return self.where.function or getattr(self.function, "__name__", "step")

    def __str__(self) -> str:
        return f"{self.name} ({self.where.position})"


@dataclass
class Steps:
    """The functions of a program that may be its step.

    `named` is the one to judge, if a person says so. `end` ends the program at a call of a step, when enough
    has been seen; `fed` is called when a function without gradients is found to work on its own results,
    which may go on for long.
    """

    end: Callable[[Step], NoReturn]
    fed: Callable[[], None] = lambda: None
    named: str = ""
    found: list[Step] = field(default_factory=list)
    others: list[Step] = field(default_factory=list)  # that were carried out
    depth: int = 0  # of calls that JAX or Flax make while they carry out one of the program's
    within: Place = (
        NOWHERE  # where gradients are taken in what JAX traces, and no function of `found` does
    )
    cpu_at: Place = NOWHERE  # where the program asks JAX for the CPU

    def chosen(self) -> Step | None:
        """The step to judge; None where the program called none.

        Raises:
            CannotJudge: several may be meant, or none has the name that was given.
        """
        if self.named:
            return self._by_name()
        candidates = [step for step in self.found if step.computes_gradients]
        candidates = [s for s in candidates if s.is_jitted] or candidates or self.found
        candidates = list({step.where: step for step in reversed(candidates)}.values())[::-1]
        if len(candidates) > 1:
            candidates = [step for step in candidates if step.pairs] or candidates
        if len(candidates) < 2:
            return next(iter(candidates), None)
        listed = "\n  ".join(map(str, candidates))
        raise CannotJudge(
            f"it has {len(candidates)} steps that could be judged, but the dry run judges only "
            f"one. Name that step with --step NAME:\n  {listed}"
        )

    def _by_name(self) -> Step:
        for step in self.found:
            if step.name == self.named:
                return step
        names = ", ".join(dict.fromkeys(step.name for step in self.found)) or "none"
        raise CannotJudge(
            f"it calls no function {self.named} that jax.jit, jax.pmap or jax.grad made. The "
            f"functions that train are: {names}"
        )

    def call(self, function: Any, args: tuple, kwargs: dict, *, is_jitted: bool) -> Any:
        """What a call of the program gives: noted, or carried out."""
        import jax

        from lab_utils.dry_run.frontends import jax_calls

        leaves = jax.tree.leaves((args, kwargs))
        if self.depth or any(isinstance(leaf, jax.core.Tracer) for leaf in leaves):
            if not self.depth and not is_jitted:
                self.within = self.within or caller()
            return function(*args, **kwargs)
        with self._within():
            kind = self._kind(jax_calls, function, args, kwargs, is_jitted)
            if kind is None and isinstance(function, _Loop):  # a new one in each call
                return function(*args, **kwargs)
            if kind is None:
                return self._carried_out(jax_calls, function, args, kwargs, leaves)
            step = self._step(function, jax.tree.structure((args, kwargs)), is_jitted)
            self._note(step, args, kwargs, leaves)
            if step.is_loop or len(step.calls) >= CALLS or not kind:
                self.end(step)
            try:
                results = jax_calls.stand_ins(function, args, kwargs)
            except Exception:  # of a kind that cannot be made up
                self.end(step)
            step.given = jax_calls.arrays(results)
            return results

    @contextmanager
    def _within(self) -> Iterator[None]:
        self.depth += 1
        try:
            yield
        finally:
            self.depth -= 1

    def _kind(
        self, jax_calls: Any, function: Any, args: tuple, kwargs: dict, is_jitted: bool
    ) -> bool | None:
        """True for a call that is noted, False for one at which the program would stop; None for others."""
        if self.named:
            is_meant = place(function).function == self.named
            is_meant |= getattr(function, "__name__", "") == self.named
            return True if is_meant else None
        if not is_jitted:
            return True
        try:
            return True if jax_calls.computes_gradients(function, args, kwargs) else None
        except jax_calls.TRACING_ERRORS:  # no step of the program's comes further than here
            return False
        except Exception:  # the call itself will raise it
            return None

    def _step(self, function: Any, structure: Any, is_jitted: bool) -> Step:
        """The step of that function; programs make a new function of the same line in each round.

        One that takes another structure is another step, as of a function that makes one for each optimizer.
        """
        import jax

        where = place(function) or caller()
        for step in self.found:
            alike = step.where == where and jax.tree.structure(step.calls[0]) == structure
            if step.function is function or alike:
                return step
        self.found.append(Step(function, where, caller(), is_jitted))
        return self.found[-1]

    def _carried_out(
        self, jax_calls: Any, function: Any, args: tuple, kwargs: dict, leaves: list[Any]
    ) -> Any:
        """The real results, noted where they come back as arguments of the same function."""
        step = next((step for step in self.others if step.function is function), None)
        if step is None:
            step = Step(function, place(function), caller(), computes_gradients=False)
            step.calls.append(
                jax_calls.abstract((args, kwargs))
            )  # what is donated is gone after it
            self.others.append(step)
        elif not step.pairs and (pairs := _pairs(leaves, step.given)):
            is_training = any(jax_calls.is_trained(leaves[n]) for n in pairs)
            if step.where and is_training:
                step.pairs, step.new = pairs, _new(leaves, [], pairs)
                self.found.append(step)
                self.fed()
        results = function(*args, **kwargs)
        step.given = jax_calls.arrays(results)
        return results

    def _note(self, step: Step, args: tuple, kwargs: dict, leaves: list[Any]) -> None:
        """Adds a call; where it takes results of the one before, its state stands as in the first call."""
        import jax

        call = args, kwargs
        first, structure = jax.tree.flatten(step.calls[0] if step.calls else None)
        if structure == jax.tree.structure(call):
            pairs = _pairs(leaves, step.given)
            if len(step.calls) == 1:
                step.pairs, step.new = pairs, _new(leaves, first, pairs)
            if pairs:  # else objects that two arguments share stay so
                whole = [first[n] if n in pairs else leaf for n, leaf in enumerate(leaves)]
                call = jax.tree.unflatten(structure, whole)
        step.calls.append(call)


def _pairs(leaves: list[Any], given: list[Any]) -> dict[int, int]:
    """By the number of an argument's array the number of the result that it is."""
    numbers = {id(result): number for number, result in enumerate(given)}
    return {n: numbers[id(leaf)] for n, leaf in enumerate(leaves) if id(leaf) in numbers}


def _new(leaves: list[Any], first: list[Any], pairs: dict[int, int]) -> set[int]:
    old = set(map(id, first))
    return {
        n
        for n, leaf in enumerate(leaves)
        if n not in pairs and id(leaf) not in old and getattr(leaf, "ndim", 0)
    }


def give_devices(jax: types.ModuleType, cores: int) -> None:
    """Gives JAX so many devices of this machine's CPU.

    It keeps its own number if it has started, or if its flags name one.
    """
    jax.config.update("jax_platforms", "cpu")  # or libtpu would look for a TPU, and take one
    if "force_host_platform_device_count" not in os.environ.get("XLA_FLAGS", ""):
        with suppress(RuntimeError):
            jax.config.update("jax_num_cpu_devices", cores)


def stand_ins(jax: types.ModuleType, steps: Steps) -> Iterator[StandIn]:
    """What lets the devices of the CPU stand for TPUs and GPUs, and contacts no other host.

    A platform that the program asks for is noted in `steps`, and not taken.
    """
    update = jax.config.update

    def noted(name: str, value: Any) -> None:
        if name not in _PLATFORM:
            update(name, value)
        else:
            steps.cpu_at = caller() if str(value).startswith("cpu") else NOWHERE

    yield jax.config, "update", noted
    yield jax.distributed, "initialize", lambda *_, **__: None
    for name in ("devices", "local_devices", "device_count", "local_device_count"):
        yield jax, name, _of_the_cpu(getattr(jax, name))


def _of_the_cpu(function: Callable) -> Callable:
    """As jax.devices and its like, where the devices of a platform that is not here are asked for."""

    @functools.wraps(function)
    def asked(*args: Any, **kwargs: Any) -> Any:
        args = tuple(None if each in _ACCELERATORS else each for each in args)
        if kwargs.get("backend") in _ACCELERATORS:
            kwargs["backend"] = None
        return function(*args, **kwargs)

    return asked


def watch(name: str, module: types.ModuleType, steps: Steps, stack: ExitStack) -> None:
    """Until `stack` is left, functions that the program makes with the module call `steps` first."""
    watching = [True]
    stack.callback(watching.clear)
    makers = dict.fromkeys(_MAKERS[name], True)
    makers |= dict.fromkeys(_GRADIENTS, False) if name == "jax" else {}
    table = (
        (module, each, make(getattr(module, each), steps, watching, is_jitted))
        for each, is_jitted in makers.items()
        if hasattr(module, each)
        for make in [_loop if each == _LOOP else _maker]
    )
    stack.enter_context(patched(table))


def _maker(make: Callable, steps: Steps, watching: list[bool], is_jitted: bool) -> Callable:
    """As jax.jit: of a function, or of options only, as a decorator has them."""

    @functools.wraps(make)
    def made(*args: Any, **kwargs: Any) -> Any:
        with steps._within():  # Flax makes its own with JAX's
            result = make(*args, **kwargs)
        if _OF_KERAS.search(sys._getframe(1).f_code.co_filename):
            return result
        if args or "fun" in kwargs or "f" in kwargs:
            return _Watched(result, steps, watching, is_jitted)
        return lambda function: _Watched(result(function), steps, watching, is_jitted)

    return made


def _loop(scan: Callable, steps: Steps, watching: list[bool], is_jitted: bool) -> Callable:
    """As jax.lax.scan, each call of which is one of a function of the carry and of what is scanned."""

    @functools.wraps(scan)
    def called(f: Callable, init: Any, xs: Any = None, *args: Any, **kwargs: Any) -> Any:
        loop = _Loop(f, lambda carry, x: scan(f, carry, x, *args, **kwargs))
        return steps.call(loop, (init, xs), {}, is_jitted=is_jitted) if watching else loop(init, xs)

    return called


class _Loop:
    """A scan as a function of what its body `f` takes."""

    def __init__(self, f: Callable, scan: Callable) -> None:
        functools.update_wrapper(self, f)
        self._scan = scan

    def __call__(self, carry: Any, x: Any) -> Any:
        return self._scan(carry, x)


class _Watched:
    """A function that JAX made, in all else as it is."""

    def __init__(self, function: Any, steps: Steps, watching: list[bool], is_jitted: bool) -> None:
        functools.update_wrapper(self, function)
        self._function, self._steps = function, steps
        self._watching, self._is_jitted = watching, is_jitted

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not self._watching:
            return self._function(*args, **kwargs)
        return self._steps.call(self._function, args, kwargs, is_jitted=self._is_jitted)

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else types.MethodType(self, instance)

    def lower(self, *args: Any, **kwargs: Any) -> Any:
        """As the function's own; what is compiled of it is watched, too."""
        return _Lowered(self, args, kwargs, lambda: self._function.lower(*args, **kwargs))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._function, name)


class _Lowered:
    """What a watched function lowers to, or that compiled: made when the program asks for more than calls."""

    def __init__(
        self, watched: _Watched, args: tuple, kwargs: dict, make: Callable[[], Any]
    ) -> None:
        self._watched, self._args, self._kwargs, self._make = watched, args, kwargs, make

    @functools.cached_property
    def _made(self) -> Any:
        with self._watched._steps._within():
            return self._make()

    def compile(self, *args: Any, **kwargs: Any) -> "_Lowered":
        """As jax.stages.Lowered has it; nothing is compiled for a program that only calls it."""
        return _Lowered(
            self._watched,
            self._args,
            self._kwargs,
            lambda: self._made.compile(*args, **kwargs),
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """A compiled function takes all arguments but those that are static."""
        whole = list(args)
        for number, lowered in enumerate(self._args):
            if len(whole) < len(self._args) and _is_static(lowered):
                whole.insert(number, lowered)
        static = {name: each for name, each in self._kwargs.items() if _is_static(each)}
        return self._watched(*whole, **static | kwargs)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._made, name)


def _is_static(argument: Any) -> bool:
    """Whether an argument of a function that was lowered may be a static one: it holds no array."""
    import jax

    leaves = jax.tree.leaves(argument)
    return bool(leaves) and not any(hasattr(leaf, "shape") for leaf in leaves)
