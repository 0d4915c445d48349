"""A step of JAX for virtual cores of this machine: as it is, and for one core with the whole batch.

XLA splits a step with shardings by itself, so that it computes the same on any number of cores. What jax.pmap
or jax.shard_map maps joins the cores by hand: one core with the whole batch says what is right.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import jax
import numpy as np

from lab_utils.common.source import place
from lab_utils.dry_run.facts import mapped
from lab_utils.dry_run.frontends.jax_calls import Call, leaf_numbers, traced_leaves
from lab_utils.dry_run.lower.errors import CannotLower
from lab_utils.dry_run.private import jax as _jax
from lab_utils.dry_run.program import Comparison, Exported, Slot
from lab_utils.dry_run.unavailable import Unavailable

Trace = Callable[[Call], Any]


class Incomparable(CannotLower):
    """The step cannot be run here, or not so; the message says why."""


@dataclass(frozen=True)
class Roles:
    """What a step's arrays are: pairs of state (argument, result), and the numbers of those with examples.

    `shardings` are those that arguments are given with, by their numbers.
    """

    state: list[tuple[int, int]]
    batch: set[int]
    shardings: Mapping[int, Any] = field(default_factory=dict)


def comparison(
    call: Call, traced: Any, trace: Trace, roles: Roles, *, is_pmap: bool, share: int
) -> Comparison:
    """The step to run, with a part 1/`share` of its batch; `trace` traces a call.

    Raises:
        Incomparable: its arguments are not known well enough, or JAX cannot export it.
    """
    if any(map(_jax.prints, _jax.equations(traced.jaxpr.jaxpr))):
        real = trace

        def trace(call: Call) -> Any:
            with _jax.printing_left_out():
                return real(call)

        traced = trace(call)
    jaxpr = traced.jaxpr.jaxpr
    splits = mapped.specs(jaxpr)
    leaves, numbers = call.leaves, _numbers(call, traced)
    examples, axis = _axis_of_examples(jaxpr, roles, is_pmap), 1 if is_pmap else 0
    feeds = [
        n for n in numbers.values() if _has_examples(jaxpr.invars[n].aval, n, roles, examples, axis)
    ]
    if share > 1:
        parts = {leaf for leaf, n in numbers.items() if n in feeds}
        leaves = _smaller(leaves, parts, examples, axis=axis, share=share)
        again = call.with_leaves(leaves)
        traced = _retraced(trace, again, "the smaller batch that this machine can compute")
        if len(traced.jaxpr.jaxpr.invars) != len(numbers):  # as an optimizer that holds the model
            raise Incomparable(
                "its whole batch would take more memory than this machine can spare, and the dry "
                "run cannot make a smaller batch, since two of its arguments share an object"
            )
    values = [leaves[n] for n in sorted(numbers, key=numbers.get)]
    has_values = not any(isinstance(value, jax.ShapeDtypeStruct) for value in values)
    has_values = has_values and not (
        roles.batch and all(_is_constant(values[n]) for n in roles.batch)
    )
    if splits is None and not has_values:
        raise Incomparable(
            "only shapes of its arguments were given, or examples that are all alike"
        )
    values = _made_up(values, roles)
    many, one = _exported(traced, values, roles.shardings), None
    devices = max(many.cores, _jax.devices_of(traced))
    if splits is not None and devices > 1:
        if is_pmap:
            whole = [
                _of_one_core(value, n, splits, roles, examples) for n, value in enumerate(values)
            ]
            shapes = list(leaves)
            for leaf, number in numbers.items():
                shapes[leaf] = jax.ShapeDtypeStruct(whole[number].shape, whole[number].dtype)
            again = call.with_leaves(shapes)
            purpose = "the examples of all cores on one, which its updates would be compared with"
            one = _exported(_retraced(trace, again, purpose), whole)
        else:
            bare = [
                jax.ShapeDtypeStruct(leaf.shape, leaf.dtype) if n in numbers else leaf
                for n, leaf in enumerate(leaves)
            ]
            with _jax.on_one_device():
                again = trace(call.with_leaves(bare))
                one = _exported(again, values)
    return Comparison(
        many=many,
        one=one,
        slots=_slots(
            traced, roles, copies(call, traced, roles.state, is_pmap=is_pmap), is_pmap=is_pmap
        ),
        losses=_losses(traced, roles, devices),
        is_mapped=is_pmap,
        maps=splits is not None,
        has_values=has_values,
        examples=dict.fromkeys(feeds, axis),
    )


def _retraced(trace: Trace, call: Call, purpose: str) -> Any:
    """The step for a batch of another size.

    Raises:
        Incomparable: it does not take one, as where each core has one example, without an axis of examples.
    """
    try:
        return trace(call)
    except Exception as error:  # whatever the step raises for arrays of other shapes
        where = place(error).position
        at = f", at {where}," if where else ""
        raise Incomparable(f"the step does not take{at} {purpose}") from error


def copies(call: Call, traced: Any, state: list[tuple[int, int]], *, is_pmap: bool) -> set[int]:
    """The numbers of the arguments of a step that the cores hold alike, each in an array of its own.

    These are the state, but for random keys of which each core has its own; and what
    flax.jax_utils.replicate and its like made, as a learning rate or the weights of classes: its rows are the
    same. Of shapes, one number a core counts as such.

    Raises:
        Unavailable: as jax_calls.leaf_numbers.
    """
    if not is_pmap:
        return set()
    variables = traced.jaxpr.jaxpr.invars
    keys = {n for n, variable in enumerate(variables) if _jax.holds_key(variable.aval, 1)}
    leaves = traced_leaves(call, traced)
    alike = {n for n, leaf in leaves.items() if _rows_are_alike(leaf, is_key=n in keys)}
    return alike | {n for n, _ in state if n not in keys}


def _rows_are_alike(value: Any, *, is_key: bool) -> bool:
    if isinstance(value, jax.ShapeDtypeStruct):
        return len(value.shape) == 1 and not _jax.is_key(value)
    rows = _plain(value)
    if rows.ndim < 1 or len(rows) < 2 or not (rows == rows[:1]).all():
        return False
    # zeros may stand for examples; the numbers of jax.random.PRNGKey(0) are zeros
    return rows.ndim == 1 or is_key or not _is_constant(rows)


def _numbers(call: Call, traced: Any) -> dict[int, int]:
    try:
        return leaf_numbers(call, traced)
    except Unavailable as why:
        raise Incomparable(str(why)) from why


def _axis_of_examples(jaxpr: Any, roles: Roles, is_pmap: bool) -> int:
    """The size of the axis of examples in the largest array of the batch; 0 where there is none."""
    axis = 1 if is_pmap else 0
    shapes = [jaxpr.invars[n].aval.shape for n in roles.batch]
    largest = max((s for s in shapes if len(s) > axis), key=np.prod, default=())
    return largest[axis] if largest else 0


def _has_examples(value: Any, number: int, roles: Roles, examples: int, axis: int) -> bool:
    shape = value.shape
    return number in roles.batch and len(shape) > axis and shape[axis] == examples > 0


def _smaller(
    leaves: list[Any], parts: Collection[int], examples: int, *, axis: int, share: int
) -> list[Any]:
    """The arguments with 1/`share` of the examples; `parts` are the numbers of those that hold some."""
    if not examples or examples % share:
        raise Incomparable("one step would take more memory than this machine can spare")
    result = list(leaves)
    for leaf in parts:
        value = leaves[leaf]
        if isinstance(value, jax.ShapeDtypeStruct):
            shape = (*value.shape[:axis], examples // share, *value.shape[axis + 1 :])
            result[leaf] = jax.ShapeDtypeStruct(shape, value.dtype, sharding=value.sharding)
        else:
            part = np.take(_plain(value), range(examples // share), axis)
            sharding = getattr(value, "sharding", None)
            result[leaf] = part if axis else jax.device_put(part, sharding)
    return result


def _of_one_core(
    value: np.ndarray, number: int, splits: dict[int, Any], roles: Roles, examples: int
) -> np.ndarray:
    """What one core takes in the place of all: all examples, and the state of the first."""
    if number not in splits:
        raise Incomparable("the program changes its arguments before jax.pmap gets them")
    if not mapped.mesh_axes(splits[number]):
        return value
    if _has_examples(value, number, roles, examples, axis=1):
        return value.reshape(1, -1, *value.shape[2:])
    return value[:1]


def _made_up(values: list[Any], roles: Roles) -> list[np.ndarray]:
    """Values of NumPy, with positive numbers in place of shapes: for scales any will do."""
    random = np.random.default_rng(0)
    state = {argument for argument, _ in roles.state}

    def value(number: int, given: Any) -> np.ndarray:
        if not isinstance(given, jax.ShapeDtypeStruct):
            return _plain(given)
        if _jax.is_key(given):
            given = jax.eval_shape(jax.random.key_data, given)
        if "float" not in str(given.dtype):
            high = 1 if number in state else 2
            return random.integers(0, high, given.shape).astype(given.dtype)
        scale = 0.05 if number in state else 1.0
        return (scale * random.uniform(0.1, 1, given.shape)).astype(given.dtype)

    return [value(number, given) for number, given in enumerate(values)]


def _is_constant(value: Any) -> bool:
    """Whether an array holds one value only: made-up data, of which nothing can be told."""
    plain = _plain(value)
    return plain.size < 2 or bool((plain == plain.ravel()[0]).all())


def _plain(value: Any) -> np.ndarray:
    """An array of NumPy; the numbers of a random key."""
    if hasattr(value, "dtype") and _jax.is_key(value):
        value = jax.random.key_data(value)
    return np.asarray(value)


def _exported(
    traced: Any, values: list[np.ndarray], shardings: Mapping[int, Any] = MappingProxyType({})
) -> Exported:
    try:
        blob, mesh = _jax.exported(traced, shardings)
    except Exception as error:  # it calls the host, or an op has no lowering for a CPU
        lines = str(error).splitlines() or [type(error).__name__]
        raise Incomparable(f"JAX cannot export it for this machine: {lines[0]:.200}") from error
    avals = [variable.aval for variable in traced.jaxpr.jaxpr.invars]
    typed = [
        value if _jax.is_key(aval) else value.astype(aval.dtype)
        for value, aval in zip(values, avals, strict=True)
    ]
    return Exported(blob, mesh, typed)


def _slots(traced: Any, roles: Roles, copies: set[int], *, is_pmap: bool) -> list[Slot]:
    jaxpr = traced.jaxpr.jaxpr
    names = _jax.names(jaxpr)
    labels = mapped.follow(jaxpr, copies, is_pmap=is_pmap).labels
    has_gradients = any(mapped.GRADIENT in of for of in labels)
    return [
        Slot(
            names[argument],
            argument,
            result,
            is_trained=_is_float(jaxpr.invars[argument])
            and (mapped.GRADIENT in labels[result] or not has_gradients),
            differs=bool(mapped.axes(labels[result])),
            joined_at=mapped.joined_at(labels[result]),
        )
        for argument, result in roles.state
    ]


def _losses(traced: Any, roles: Roles, devices: int) -> list[tuple[int, str]]:
    """Results that are the loss: single floats of that name, or the only one; numbers and names."""
    taken = {result for _, result in roles.state}
    variables, names = traced.jaxpr.jaxpr.outvars, _jax.result_names(traced)
    single = [
        (n, names[n])
        for n, variable in enumerate(variables)
        if n not in taken and _is_float(variable) and len(variable.aval.shape) < 2
        and variable.aval.size <= devices
    ]  # fmt: skip
    named = [(n, name) for n, name in single if "loss" in name.lower()]
    return named or (single if len(single) == 1 else [])


def _is_float(variable: Any) -> bool:
    return "float" in str(variable.aval.dtype)
