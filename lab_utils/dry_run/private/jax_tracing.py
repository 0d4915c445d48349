"""Every private name of JAX that the frontend for JAX uses in the caller's process, where JAX is imported.

Works with jax 0.10.2, which is locked here; `check()` says in a sentence which name moved.
"""

import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import jax
from jax._src.interpreters import mlir

from lab_utils.source import Place, place_of_stack

_CALLBACKS = ("callback", "debug_print")


@dataclass(frozen=True)
class Argument:
    """An array that the lowered step takes: its name, its abstract value, and its PartitionSpec if any."""

    name: str
    aval: Any
    spec: tuple[Any, ...] | None
    donated: bool


def is_callback(equation: Any) -> bool:
    """Whether an equation of a jaxpr calls Python on the host."""
    return any(part in equation.primitive.name for part in _CALLBACKS)


def place(equation: Any) -> Place:
    """The caller's line that made an equation of a jaxpr."""
    held = equation.source_info.traceback
    if held is None:
        return Place()
    return place_of_stack(traceback.extract_tb(held.as_python_traceback()))


@contextmanager
def callbacks_left_out(primitives: set[Any]) -> Iterator[None]:
    """Context manager: a step lowered for TPUs calls no host, and takes zeros for what the host would return.

    JAX can lower a callback for TPUs only where a TPU is.
    """
    table = mlir._platform_specific_lowerings["tpu"]
    before = dict(table)

    def nothing(ctx: Any, *arguments: Any, **parameters: Any) -> list[Any]:
        if ctx.tokens_in:
            ctx.set_tokens_out(ctx.tokens_in)
        return [mlir.full_like_aval(ctx, 0, aval) for aval in ctx.avals_out]

    for primitive in primitives:
        mlir.register_lowering(primitive, nothing, platform="tpu")
    try:
        yield
    finally:
        table.clear()
        table.update(before)


def names(jaxpr: Any) -> list[str]:
    """The names of a step's arrays: "params['w1']"."""
    known = getattr(jaxpr.debug_info, "arg_names", None) or ()
    named = [name or f"argument {number}" for number, name in enumerate(known)]
    return named + [f"argument {number}" for number in range(len(named), len(jaxpr.invars))]


def arguments(traced: Any, lowered: Any) -> list[Argument]:
    """The arrays that the lowered program takes, in its order; those that it does not use are not there."""
    held = lowered._lowering.compile_args
    donated = [each.donated for each in jax.tree.leaves(traced.args_info)]
    avals = [each.aval for each in traced.jaxpr.jaxpr.invars]
    named = names(traced.jaxpr.jaxpr)
    found = []
    for number, sharding in zip(sorted(held["kept_var_idx"]), held["in_shardings"], strict=True):
        spec = getattr(sharding, "spec", None)
        found.append(
            Argument(
                named[number], avals[number], None if spec is None else tuple(spec), donated[number]
            )
        )
    return found


def check() -> list[str]:
    """A sentence for each private name that this JAX does not have where it is looked for."""
    traced = jax.jit(lambda x: x + 1, donate_argnums=0).trace(jax.ShapeDtypeStruct((2,), "float32"))
    lowered = traced.lower(lowering_platforms=("tpu",))
    held = getattr(getattr(lowered, "_lowering", None), "compile_args", {})
    lacking = [name for name in ("kept_var_idx", "in_shardings") if name not in held]
    lacking += [
        name
        for name in ("_platform_specific_lowerings", "register_lowering", "full_like_aval")
        if not hasattr(mlir, name)
    ]
    equation = traced.jaxpr.jaxpr.eqns[0]
    if not hasattr(getattr(equation.source_info, "traceback", None), "as_python_traceback"):
        lacking.append("source_info.traceback")
    if not hasattr(traced.jaxpr.jaxpr.debug_info, "arg_names"):
        lacking.append("debug_info.arg_names")
    return [
        f"JAX {jax.__version__} has no {name}: see lab_utils/dry_run/private/jax_tracing.py"
        for name in lacking
    ]
