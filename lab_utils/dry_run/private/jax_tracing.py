"""Every private name of JAX that the frontend for JAX uses in the caller's process, where JAX is imported.

process.py says with which versions of JAX.
"""

import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import jax
from jax._src.interpreters import mlir

from lab_utils.common.source import Place, place_of_stack

_CALLBACKS = ("callback", "debug_print")
OLD_PMAP = "xla_pmap"  # jax.pmap before 0.8, which builds it on jax.shard_map


@dataclass(frozen=True)
class Argument:
    """An array that the lowered step takes: its name, shape and type, and its PartitionSpec if any.

    A random key is the array of numbers that it is for the compiler.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    spec: tuple[Any, ...] | None
    donated: bool


@dataclass(frozen=True)
class Wish:
    """What a jitted function within the step asks of an array of the step's own arguments."""

    donated: bool = False
    sharding: Any = None


def is_callback(equation: Any) -> bool:
    """Whether an equation of a jaxpr calls Python on the host."""
    return any(part in equation.primitive.name for part in _CALLBACKS)


def place(equation: Any) -> Place:
    """The caller's line that made an equation of a jaxpr."""
    stack = equation.source_info.traceback
    return place_of_stack(traceback.extract_tb(stack.as_python_traceback())) if stack else Place()


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
    known = jaxpr.debug_info.arg_names or ()
    named = [name or f"argument {number}" for number, name in enumerate(known)]
    return named + [f"argument {number}" for number in range(len(named), len(jaxpr.invars))]


def arguments(traced: Any, lowered: Any) -> list[Argument]:
    """The arrays that the lowered program takes, in its order; those that it does not use are not there."""
    compile_args = lowered._lowering.compile_args
    jaxpr, donated = traced.jaxpr.jaxpr, traced._params["donated_invars"]
    named = names(jaxpr)
    taken = []
    pairs = zip(sorted(compile_args["kept_var_idx"]), compile_args["in_shardings"], strict=True)
    for number, sharding in pairs:
        spec = getattr(sharding, "spec", None)
        shape, dtype = _numbers(jaxpr.invars[number].aval)
        spec = None if spec is None else tuple(spec)
        taken.append(Argument(named[number], shape, dtype, spec, donated[number]))
    return taken


def _numbers(aval: Any) -> tuple[tuple[int, ...], str]:
    """Shape and type of an array as the compiler sees it."""
    if jax.dtypes.issubdtype(aval.dtype, jax.dtypes.prng_key):
        aval = jax.eval_shape(jax.random.key_data, jax.ShapeDtypeStruct(aval.shape, aval.dtype))
    return tuple(aval.shape), str(aval.dtype)


def trees(traced: Any) -> tuple[Any, Any]:
    """The structures of (positional arguments, keyword arguments) and of the results.

    `args_info` and `out_info` build objects of the caller's classes, which may take nothing but arrays.
    """
    return traced._in_tree, getattr(traced, "out_tree", None) or traced._out_tree  # before jax 0.8


def wishes(traced: Any) -> dict[int, Wish]:
    """By the number of the argument's array, where a jitted function within the step takes it as it is."""
    jaxpr = traced.jaxpr.jaxpr
    numbers = {id(variable): number for number, variable in enumerate(jaxpr.invars)}
    found: dict[int, Wish] = {}
    for equation in jaxpr.eqns:
        if "in_shardings" not in equation.params:
            continue
        columns = equation.invars, equation.params["donated_invars"], _shardings(equation)
        for variable, donated, sharding in zip(*columns, strict=True):
            if id(variable) in numbers and (donated or sharding):
                found[numbers[id(variable)]] = Wish(donated, sharding)
    return found


def _shardings(equation: Any) -> list[Any]:
    """Of what a jitted function takes: its NamedShardings, or those of the pmap that it stands for."""
    shardings = equation.params["in_shardings"]
    body = equation.params["jaxpr"].jaxpr
    if len(body.eqns) == 1 and body.eqns[0].primitive.name == "shard_map":
        (mapped,) = body.eqns
        if [id(each) for each in mapped.invars] == [id(each) for each in body.invars]:
            mesh, specs = mapped.params["mesh"], mapped.params["in_specs"]
            shardings = [jax.sharding.NamedSharding(mesh, spec) for spec in specs]
    named = jax.sharding.NamedSharding
    return [each if isinstance(each, named) else None for each in shardings]


def maker(jaxpr: Any, variable: Any) -> Any:
    """The equation that makes a result, within jitted functions and shard_map; None: none does."""
    for equation in reversed(jaxpr.eqns):
        for number, result in enumerate(equation.outvars):
            if result is not variable:
                continue
            mapped = equation.primitive.name == "shard_map"
            if not mapped and "donated_invars" not in equation.params:
                return equation
            body = equation.params["jaxpr"]
            body = getattr(body, "jaxpr", body)
            inner = maker(body, body.outvars[number]) or equation
            if mapped and inner.primitive.name == "broadcast_in_dim":
                # pmap adds its axis of devices at the end
                inner = maker(body, inner.invars[0]) or inner
            return inner
    return None
