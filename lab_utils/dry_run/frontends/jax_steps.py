"""From a step, however it is wrapped, to what JAX traced of it.

People hand over what they call: a jitted function, a method, a functools.partial, Flax's nnx.jit, Equinox's
filter_jit, jax.pmap, or a function of their own around one of these. Flax and Equinox are not imported.
"""

import functools
import inspect
from collections.abc import Callable
from typing import Any

import jax

from lab_utils.dry_run.frontends.jax_arguments import is_array
from lab_utils.dry_run.private import jax_tracing as _tracing


def trace(step: Callable, call: tuple, keywords: dict[str, Any] | None = None) -> Any:
    """The jax.stages.Traced of one call; `keywords` are constants where nothing is jitted.

    What JAX or NNX jitted is traced by its own means. Any other callable is jitted here, with the donation
    and the shardings that a jitted function in it asks for.

    Raises:
        Exception: whatever the step raises.
    """
    if keywords:
        step = functools.partial(step, **keywords)
    inner, bound, keywords = unbound(step)
    if hasattr(inner, "trace"):
        traced = inner.trace(*bound, *call, **keywords)
        return getattr(traced, "traced", traced)  # NNX keeps JAX's own in its own
    if hasattr(inner, "donate_first"):  # Equinox's filter_jit, which holds the function as fn
        whole = (*bound, *call)
        donated = [n for n in range(len(whole)) if (inner.donate_rest if n else inner.donate_first)]
        function, arrays = _arrays_alone(
            functools.partial(inspect.unwrap(inner), **keywords), whole
        )
        return jax.jit(function, donate_argnums=donated).trace(*arrays)
    leaves = jax.tree.leaves(call)
    if all(map(is_array, leaves)):
        try:
            return _as_asked(step, call)
        except Exception:  # a Python number may be a size or a switch: it then is a constant
            if not any(isinstance(leaf, bool | int | float) for leaf in leaves):
                raise
    return _as_asked(*_arrays_alone(step, call))


def is_jitted(function: Any) -> bool:
    """Whether JAX, NNX or Equinox compiles it when it is called."""
    if not callable(function) or isinstance(function, type):
        return False
    return hasattr(function, "trace") or hasattr(function, "donate_first") or is_pmap(function)


def has_cache(step: Callable) -> bool:
    """Whether calls of `step` come from one cache, so that equal calls have the same jaxpr."""
    return hasattr(unbound(step)[0], "trace")


def is_pmap(step: Callable) -> bool:
    """Whether jax.pmap made the step, the only one of JAX's that can be lowered and not traced."""
    inner = unbound(step)[0]
    return hasattr(inner, "lower") and not hasattr(inner, "trace") and inspect.isfunction(inner)


def devices_wanted(step: Callable, call: tuple) -> int:
    """The devices for which a call of jax.pmap's step is made, where this machine has fewer; else 0."""
    if not is_pmap(step):
        return 0
    sizes = [leaf.shape[0] for leaf in jax.tree.leaves(call) if getattr(leaf, "shape", ())]
    wanted = max(sizes, default=0)
    return wanted if sizes.count(wanted) > len(sizes) / 2 and wanted > jax.device_count() else 0


def source(step: Callable) -> Callable:
    """The function whose line stands for `step` in a report."""
    return unbound(step)[0]


def unbound(step: Callable) -> tuple[Callable, tuple, dict[str, Any]]:
    """The function in partials and methods, with the arguments that these bind."""
    bound: tuple = ()
    keywords: dict[str, Any] = {}
    while True:
        if inspect.ismethod(step):
            step, bound = step.__func__, (step.__self__, *bound)
        elif isinstance(step, functools.partial):
            bound, keywords = (*step.args, *bound), step.keywords | keywords
            step = step.func
        else:
            return step, bound, keywords


def _as_asked(step: Callable, call: tuple) -> Any:
    """A callable of arrays, with what a jitted function in it asks for."""
    traced = jax.jit(step).trace(*call)
    asked = _tracing.asked(traced)
    if not asked:
        return traced
    donate, laid, start = [], [], 0
    for number, argument in enumerate(call):
        leaves, tree = jax.tree.flatten(argument)
        inner = [asked.get(start + n) for n in range(len(leaves))]
        start += len(leaves)
        if leaves and all(each and each.donated for each in inner):
            donate.append(number)
        if any(each and each.sharding for each in inner):
            pairs = zip(leaves, inner, strict=True)
            argument = jax.tree.unflatten(tree, [_laid(leaf, each) for leaf, each in pairs])
        laid.append(argument)
    return jax.jit(step, donate_argnums=donate).trace(*laid)


def _laid(leaf: Any, asked: _tracing.Inner | None) -> Any:
    if asked is None or asked.sharding is None or not hasattr(leaf, "shape"):
        return leaf
    return jax.ShapeDtypeStruct(
        leaf.shape, leaf.dtype, sharding=asked.sharding, weak_type=getattr(leaf, "weak_type", False)
    )


def _arrays_alone(step: Callable, call: tuple) -> tuple[Callable, tuple]:
    """A function of the arrays in `call`, for which all else in it are constants; and these arrays.

    Functions and Python numbers among the arguments or results are no arrays.
    """

    def kept(leaf: Any) -> Any:
        return leaf if hasattr(leaf, "shape") and hasattr(leaf, "dtype") else None

    @functools.wraps(inspect.unwrap(step) if not isinstance(step, functools.partial) else step.func)
    def of_arrays(*arrays: Any) -> Any:
        def joined(array: Any, other: Any) -> Any:
            return other if array is None else array

        whole = jax.tree.map(joined, arrays, call, is_leaf=lambda leaf: leaf is None)
        return jax.tree.map(kept, step(*whole))

    of_arrays.__signature__ = inspect.signature(step)
    return of_arrays, jax.tree.map(kept, call)
