"""Every private name of JAX that the frontend for JAX uses in the caller's process, where JAX is imported.

process.py says with which versions of JAX; `check()` says in a sentence which name moved.
"""

import functools
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import jax
from jax._src.interpreters import mlir

from lab_utils.common.source import Place, place_of_stack
from lab_utils.dry_run.private import process

_CALLBACKS = ("callback", "debug_print")
OLD_PMAP = "xla_pmap"  # jax.pmap before it was built on jax.shard_map


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
    donated = donated_arrays(traced)
    avals = [each.aval for each in traced.jaxpr.jaxpr.invars]
    named = names(traced.jaxpr.jaxpr)
    found = []
    for number, sharding in zip(sorted(held["kept_var_idx"]), held["in_shardings"], strict=True):
        spec = getattr(sharding, "spec", None)
        found.append(
            Argument(
                named[number],
                *_numbers(avals[number]),
                None if spec is None else tuple(spec),
                donated[number],
            )
        )
    return found


def _numbers(aval: Any) -> tuple[tuple[int, ...], str]:
    """Shape and type of an array as the compiler sees it."""
    if jax.dtypes.issubdtype(aval.dtype, jax.dtypes.prng_key):
        aval = jax.eval_shape(jax.random.key_data, jax.ShapeDtypeStruct(aval.shape, aval.dtype))
    return tuple(aval.shape), str(aval.dtype)


def trees(traced: Any) -> tuple[Any, Any]:
    """The structures of (positional arguments, keyword arguments) and of the results.

    `args_info` and `out_info` build objects of the caller's classes, which may take nothing but arrays.
    """
    given = getattr(traced, "_in_tree", None)  # not before jax 0.7
    results = getattr(traced, "out_tree", None)  # _out_tree before jax 0.8
    return given or traced.in_tree, results or traced._out_tree


def donated_arrays(traced: Any) -> list[bool]:
    """For each array of the arguments whether it is donated."""
    if hasattr(traced, "_params"):
        return list(traced._params["donated_invars"])
    return [each.donated for each in jax.tree.leaves(traced.args_info)]  # before jax 0.7


def lower(traced: Any) -> Any:
    """The step lowered for TPUs: jax.stages.Lowered, whose arguments stand in one flat tuple.

    JAX would put descriptions of the arguments into objects of the caller's classes.
    """
    held = getattr(traced, "_in_tree", None)
    if held is None:
        return traced.lower(lowering_platforms=("tpu",))
    traced._in_tree = jax.tree.structure((tuple(range(held.num_leaves)), {}))
    try:
        return traced.lower(lowering_platforms=("tpu",))
    finally:
        traced._in_tree = held


@dataclass(frozen=True)
class Inner:
    """What a jitted function that the step calls asks of an array of the step's own arguments."""

    donated: bool
    sharding: Any


def asked(traced: Any) -> dict[int, Inner]:
    """By the number of the argument's array, where a jitted function within the step takes it as it is."""
    jaxpr = traced.jaxpr.jaxpr
    numbers = {id(variable): number for number, variable in enumerate(jaxpr.invars)}
    found: dict[int, Inner] = {}
    for each in jaxpr.eqns:
        if "donated_invars" not in each.params or each.primitive.name == OLD_PMAP:
            continue
        columns = each.invars, each.params["donated_invars"], _shardings(each)
        for variable, donated, named in zip(*columns, strict=True):
            if id(variable) in numbers and (donated or named):
                found[numbers[id(variable)]] = Inner(donated, named)
    return found


def _shardings(equation: Any) -> list[Any]:
    """Of what a jitted function takes: its NamedShardings, or those of the pmap that it stands for."""
    given = equation.params["in_shardings"]
    body = equation.params["jaxpr"].jaxpr
    if len(body.eqns) == 1 and body.eqns[0].primitive.name == "shard_map":
        (mapped,) = body.eqns
        if [id(each) for each in mapped.invars] == [id(each) for each in body.invars]:
            mesh, specs = mapped.params["mesh"], mapped.params["in_specs"]
            given = [jax.sharding.NamedSharding(mesh, spec) for spec in specs]
    return [each if isinstance(each, jax.sharding.NamedSharding) else None for each in given]


def maker(jaxpr: Any, result: int) -> Any:
    """The equation that makes a result, within jitted functions, shard_map and pmap; None: none does."""
    return _maker(jaxpr, jaxpr.outvars[result])


def _maker(jaxpr: Any, variable: Any) -> Any:
    for each in reversed(jaxpr.eqns):
        for number, made in enumerate(each.outvars):
            if made is not variable:
                continue
            mapped = each.primitive.name == "shard_map"
            inner = each.params.get("jaxpr") if mapped or "donated_invars" in each.params else None
            if inner is None:  # old forms of pmap name their body otherwise
                return each
            inner = getattr(inner, "jaxpr", inner)
            found = _maker(inner, inner.outvars[number]) or each
            if mapped and found.primitive.name == "broadcast_in_dim":
                # pmap adds its axis of devices at the end
                found = _maker(inner, found.invars[0]) or found
            return found
    return None


@functools.cache
def unfit() -> str:
    """Why this JAX cannot be worked with; "" where it can."""
    said, too_old = process.outside_range()
    if not said or too_old:
        return said
    try:
        moved = check()
    except Exception as error:  # of a JAX that nobody has seen yet
        moved = [f"{type(error).__name__}: {error}"]
    return f"{said}: {moved[0]}" if moved else ""


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
    if jax.__version_info__ >= (0, 7):
        lacking += [name for name in ("_in_tree", "_params") if not hasattr(traced, name)]
    if not hasattr(traced, "out_tree") and not hasattr(traced, "_out_tree"):
        lacking.append("out_tree")
    equation = traced.jaxpr.jaxpr.eqns[0]
    if not hasattr(getattr(equation.source_info, "traceback", None), "as_python_traceback"):
        lacking.append("source_info.traceback")
    if not hasattr(traced.jaxpr.jaxpr.debug_info, "arg_names"):
        lacking.append("debug_info.arg_names")
    return [
        f"JAX {jax.__version__} has no {name}: see lab_utils/dry_run/private/jax_tracing.py"
        for name in lacking
    ]
