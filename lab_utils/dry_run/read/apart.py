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
_MOST = 0.5  # of the numbers of the state: the statistics of each core's own batch may differ
_SHOWN = 4


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
    taken = [_STATE if n in copies else _ALIKE for n in range(len(jaxpr.invars))]
    over = _follow(jaxpr, taken, pmapped)
    changed = [
        (argument, result)
        for argument, result in state
        if jaxpr.outvars[result] is not jaxpr.invars[argument]
        and "float" in str(jaxpr.outvars[result].aval.dtype)
    ]
    apart = [pair for pair in changed if over[pair[1]] - _STATE]
    sizes = [sum(jaxpr.outvars[n].aval.size for _, n in pairs) for pairs in (apart, changed)]
    if not apart or sizes[0] <= _MOST * sizes[1]:
        return []
    names = _tracing.names(jaxpr)
    shown = [names[argument] for argument, _ in apart]
    more = f" and {len(shown) - _SHOWN} more" if len(shown) > _SHOWN else ""
    axes = sorted(set().union(*(over[result] for _, result in apart)) - _STATE)
    arrays = ", ".join(shown[:_SHOWN]) + more
    return [finding("TPU245", where, arrays=arrays, axes=" and ".join(axes))]


def _follow(jaxpr: Any, taken: Sequence[_Axes], pmapped: bool) -> list[_Axes]:
    """For each result of a jaxpr the axes over which it differs, from those of its arguments."""
    over = {id(variable): axes for variable, axes in zip(jaxpr.invars, taken, strict=True)}

    def of(variables: Sequence[Any]) -> list[_Axes]:
        return [over.get(id(each), _ALIKE) for each in variables]

    for equation in jaxpr.eqns:
        results = _of_equation(equation, of(equation.invars), pmapped)
        over |= {id(out): axes for out, axes in zip(equation.outvars, results, strict=True)}
    return of(jaxpr.outvars)


def _of_equation(equation: Any, taken: list[_Axes], pmapped: bool) -> list[_Axes]:
    name, params, count = equation.primitive.name, equation.params, len(equation.outvars)
    everything = _ALIKE.union(*taken)
    if name == "shard_map":
        return _mapped(equation, taken, pmapped)
    if name in _JOINED:
        axes = params.get("axes", params.get("axis_name", ()))
        return [everything - ({axes} if isinstance(axes, str) else set(axes))] * count
    if name == "axis_index":
        return [everything | {params["axis_name"]}] * count
    bodies = list(inner(equation))
    if name == "cond":
        branches = [_follow(body, taken[1:], pmapped) for body in bodies]
        return [taken[0].union(*column) for column in zip(*branches, strict=True)]
    if len(bodies) == 1 and len(bodies[0].invars) == len(taken) and len(bodies[0].outvars) == count:
        return _loop(bodies[0], taken, params, pmapped)
    # Of a while loop it is not known: in its favour.
    return [_ALIKE if bodies else everything] * count


def _loop(body: Any, taken: list[_Axes], params: dict[str, Any], pmapped: bool) -> list[_Axes]:
    """A function that is called, or a scan, whose carried values take what the rounds before made of them."""
    first, carried = params.get("num_consts", 0), params.get("num_carry", 0)
    while True:
        results = _follow(body, taken, pmapped)
        again = list(taken)
        for number in range(carried):
            again[first + number] |= results[number]
        if again == taken:
            return results
        taken = again


def _mapped(equation: Any, taken: list[_Axes], pmapped: bool) -> list[_Axes]:
    """Axes over which a result differs though its spec does not name them; of pmap all axes."""
    params = equation.params
    if not pmapped and params.get("check_vma", True):
        return [_ALIKE] * len(equation.outvars)
    pairs = zip(taken, params["in_specs"], strict=True)
    inside = [_ALIKE if axes & _STATE else _named(spec) for axes, spec in pairs]
    results = _follow(params["jaxpr"], inside, pmapped)
    if pmapped:
        return results
    return [axes - _named(spec) for axes, spec in zip(results, params["out_specs"], strict=True)]


def _named(spec: Any) -> _Axes:
    parts = [part if isinstance(part, tuple) else (part,) for part in spec]
    return frozenset(axis for part in parts for axis in part if axis is not None)
