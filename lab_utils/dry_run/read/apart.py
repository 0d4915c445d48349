"""Results of a mapped JAX step that differ from core to core: a mean over the cores that is missing.

jax.pmap and jax.shard_map run a function on each core's part. What follows from a core's own examples is its
own until a collective joins it. Each value of the jaxpr is followed with the mesh axes over which it differs.
"""

from collections.abc import Sequence
from typing import Any

from lab_utils.common.source import Place
from lab_utils.dry_run.private import jax_tracing as _tracing
from lab_utils.dry_run.read.jaxpr_flops import inner
from lab_utils.dry_run.records import Finding
from lab_utils.dry_run.rules import finding

_Axes = frozenset[str]
_ALIKE: _Axes = frozenset()
_STATE: _Axes = frozenset({"the state"})  # pmap splits it, and its parts are copies
_JOINED = ("psum", "psum2", "psum_invariant", "pmax", "pmin", "all_gather", "all_gather_invariant")
_MOST = 0.5  # of the numbers of the state


def findings(
    traced: Any, state: Sequence[tuple[int, int]], where: Place, *, pmapped: bool
) -> list[Finding]:
    """TPU245 where cores that should hold the same state go apart.

    Args:
        state: pairs (argument, result), as read.jaxpr.state_numbers gives them.
        pmapped: jax.pmap made the step; else only what jax.shard_map gives back as whole is looked at, and
            only with check_vma=False, as JAX itself checks the rest.
    """
    jaxpr = traced.jaxpr.jaxpr
    copies = {argument for argument, _ in state} if pmapped else set()
    given = [_STATE if n in copies else _ALIKE for n in range(len(jaxpr.invars))]
    over = _follow(jaxpr, given, pmapped)
    changed = [
        result
        for argument, result in state
        if jaxpr.outvars[result] is not jaxpr.invars[argument]
        and "float" in str(jaxpr.outvars[result].aval.dtype)
    ]
    apart = [result for result in changed if over[result] - _STATE]
    sizes = [sum(jaxpr.outvars[n].aval.size for n in each) for each in (apart, changed)]
    if (
        not apart or sizes[0] <= _MOST * sizes[1]
    ):  # the statistics of each core's own batch may differ
        return []
    names = _tracing.names(jaxpr)
    shown = [names[argument] for argument, result in state if result in apart]
    more = f" and {len(shown) - 4} more" if len(shown) > 4 else ""
    axes = sorted(set().union(*(over[result] for result in apart)) - _STATE)
    return [finding("TPU245", where, arrays=", ".join(shown[:4]) + more, axes=" and ".join(axes))]


def _follow(jaxpr: Any, given: Sequence[_Axes], pmapped: bool) -> list[_Axes]:
    """For each result of a jaxpr the axes over which it differs, from those of its arguments."""
    held = {id(variable): axes for variable, axes in zip(jaxpr.invars, given, strict=True)}

    def of(variables: Sequence[Any]) -> list[_Axes]:
        return [held.get(id(each), _ALIKE) for each in variables]

    for each in jaxpr.eqns:
        made = _made(each, of(each.invars), pmapped)
        held |= {id(variable): axes for variable, axes in zip(each.outvars, made, strict=True)}
    return of(jaxpr.outvars)


def _made(equation: Any, taken: list[_Axes], pmapped: bool) -> list[_Axes]:
    name, held, count = equation.primitive.name, equation.params, len(equation.outvars)
    everything = _ALIKE.union(*taken)
    if name == "shard_map":
        return _mapped(equation, taken, pmapped)
    if name == _tracing.OLD_PMAP:
        own = frozenset({held["axis_name"]})
        pairs = zip(taken, held["in_axes"], strict=True)
        given = [_ALIKE if axes & _STATE or at is None else own for axes, at in pairs]
        return _follow(held["call_jaxpr"], given, pmapped)
    if name in _JOINED:
        return [everything - _over(held)] * count
    if name == "axis_index":
        return [everything | {held["axis_name"]}] * count
    bodies = list(inner(equation))
    if name == "cond":
        branches = [_follow(each, taken[1:], pmapped) for each in bodies]
        return [taken[0].union(*column) for column in zip(*branches, strict=True)]
    if len(bodies) == 1 and len(bodies[0].invars) == len(taken) and len(bodies[0].outvars) == count:
        return _loop(bodies[0], taken, held, pmapped)
    joined = {axis for body in bodies for axis in _joined(body)}  # of a while loop: in its favour
    return [everything - joined] * count


def _loop(body: Any, taken: list[_Axes], held: dict[str, Any], pmapped: bool) -> list[_Axes]:
    """A function that is called, or a scan, whose carried values take what the rounds before made of them."""
    first, carried = held.get("num_consts", 0), held.get("num_carry", 0)
    while True:
        made = _follow(body, taken, pmapped)
        again = list(taken)
        for number in range(carried):
            again[first + number] |= made[number]
        if again == taken:
            return made
        taken = again


def _mapped(equation: Any, taken: list[_Axes], pmapped: bool) -> list[_Axes]:
    """Axes over which a result differs though its spec does not name them; of pmap all axes."""
    held = equation.params
    if not pmapped and held.get("check_vma", True):
        return [_ALIKE] * len(equation.outvars)
    given = [
        _ALIKE if axes & _STATE else _named(spec)
        for axes, spec in zip(taken, held["in_specs"], strict=True)
    ]
    made = _follow(held["jaxpr"], given, pmapped)
    if pmapped:
        return made
    return [axes - _named(spec) for axes, spec in zip(made, held["out_specs"], strict=True)]


def _named(spec: Any) -> _Axes:
    parts = [part if isinstance(part, tuple) else (part,) for part in spec]
    return frozenset(axis for part in parts for axis in part if axis is not None)


def _over(held: dict[str, Any]) -> set[str]:
    """The axes of a collective; those of vmap are none."""
    axes = held.get("axes", held.get("axis_name", ()))
    return {axes} if isinstance(axes, str) else set(axes)


def _joined(jaxpr: Any) -> set[str]:
    """The axes over which a jaxpr joins anything."""
    found: set[str] = set()
    for each in jaxpr.eqns:
        if each.primitive.name in _JOINED:
            found |= _over(each.params)
        for body in inner(each):
            found |= _joined(body)
    return found
