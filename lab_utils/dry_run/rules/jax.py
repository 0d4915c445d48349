"""What the jaxpr of a JAX step tells: 64-bit types, host callbacks, constants, what is compiled again.

TPU240 to TPU244, and TPU408.
"""

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

from lab_utils.common.figures import memory
from lab_utils.common.source import Place
from lab_utils.dry_run.engine import rule
from lab_utils.dry_run.facts.jaxpr import callbacks
from lab_utils.dry_run.private import jax as _tracing
from lab_utils.dry_run.records import Finding, Stage
from lab_utils.dry_run.rules import finding
from lab_utils.dry_run.wording import some

_WIDE = ("float64", "complex128")


_LARGE_CONSTANT = 8 * 2**20  # bytes


_MOST_NAMES = 4


@rule("TPU240", needs=("jaxpr", "where"))
def wide(jaxpr: Any, where: Place) -> Iterator[Finding]:
    """A finding at each line where 64-bit floats begin."""
    arguments = [
        name
        for name, variable in zip(_tracing.names(jaxpr), jaxpr.invars, strict=True)
        if _is_wide(variable.aval)
    ]
    if arguments:
        what = f"The step takes {', '.join(arguments[:_MOST_NAMES])} as 64-bit floats"
        yield finding("TPU240", where, what=what)
        return
    lines: dict[Place, str] = {}
    for equation in _tracing.equations(jaxpr):
        takes = any(_is_wide(getattr(variable, "aval", None)) for variable in equation.invars)
        gives = next((out.aval for out in equation.outvars if _is_wide(out.aval)), None)
        if gives is not None and not takes and not any(True for _ in _tracing.bodies(equation)):
            lines.setdefault(_tracing.place(equation) or where, str(gives.dtype))
    for place, dtype in lines.items():
        yield finding("TPU240", place, what=f"From this line on, the step computes in {dtype}")


def _is_wide(aval: Any) -> bool:
    return str(getattr(aval, "dtype", "")) in _WIDE


@rule("TPU241", needs=("jaxpr", "where"))
def host_calls(jaxpr: Any, where: Place) -> Iterator[Finding]:
    """A finding at each line that calls Python on the host; at the step's where only a library does."""
    lines: dict[tuple[Place, str], bool] = {}  # whether each step calls it
    for equation, always in _host_calls(jaxpr):
        line = _tracing.place(equation) or where, equation.primitive.name
        lines[line] = always or lines.get(line, False)
    for (place, name), always in lines.items():
        case = "step" if always else "branch"
        yield finding("TPU241", place, note=not always, case=case, callback=name)


def _host_calls(jaxpr: Any, always: bool = True) -> Iterator[tuple[Any, bool]]:
    """The equations that call Python on the host, and whether no branch can spare a step the call."""
    for equation in jaxpr.eqns:
        if _tracing.is_callback(equation):
            yield equation, always
        bodies = list(_tracing.bodies(equation))
        may_spare = _is_branching(equation) and not all(map(callbacks, bodies))
        for body in bodies:
            yield from _host_calls(body, always and not may_spare)


def _is_branching(equation: Any) -> bool:
    """Whether a value decides in each step what is computed; with jax.lax.platform_dependent none does."""
    return equation.primitive.name == "cond" and not equation.params.get("branches_platforms")


@rule("TPU244", needs=("traced", "where"))
def constants(traced: Any, where: Place) -> Iterator[Finding]:
    """A finding for large arrays that the step closes over."""
    # jax.pmap leaves them in the function that it maps.
    inside = (part for op in _tracing.equations(traced.jaxpr.jaxpr) for part in op.params.values())
    consts = [item for part in (traced.jaxpr, *inside) for item in getattr(part, "consts", ())]
    large = [item for item in consts if getattr(item, "nbytes", 0) >= _LARGE_CONSTANT]
    if not large:
        return
    shapes = ", ".join(f"{array.dtype}{list(array.shape)}" for array in large[:_MOST_NAMES])
    size = memory(sum(array.nbytes for array in large))
    yield finding("TPU244", where, arrays=shapes, size=size)


@rule("TPU242", needs=("jaxpr", "state", "where"))
def state_types(jaxpr: Any, state: list[tuple[int, int]], where: Place) -> Iterator[Finding]:
    """A finding where the new state has other types than the old one: the second call compiles again."""
    names = _tracing.names(jaxpr)
    places: dict[tuple[bool, Place], list[str]] = {}
    for argument, result in state:
        old, new = jaxpr.invars[argument].aval, jaxpr.outvars[result].aval
        note = old.dtype == new.dtype
        if note and _is_weak(old) == _is_weak(new):
            continue
        maker = _tracing.maker(jaxpr, jaxpr.outvars[result])
        place = (_tracing.place(maker) if maker else None) or where
        kinds = [
            f"weak {aval.dtype}" if note and _is_weak(aval) else aval.dtype for aval in (old, new)
        ]
        places.setdefault((note, place), []).append(f"{names[argument]} ({kinds[0]} to {kinds[1]})")
    for (note, place), arrays in sorted(places.items(), key=lambda item: item[0][0]):
        yield finding("TPU242", place, note=note, arrays=some(arrays))


def _is_weak(aval: Any) -> bool:
    return getattr(aval, "weak_type", False)


def _different(statics: Sequence[Sequence[Any]]) -> int:
    """How many of the calls' static values differ."""
    kinds: list[Sequence[Any]] = []
    for values in statics:
        if not any(_equal(values, kind) for kind in kinds):
            kinds.append(values)
    return len(kinds)


def _equal(some: Sequence[Any], others: Sequence[Any]) -> bool:
    if len(some) != len(others):
        return False
    with contextlib.suppress(Exception):  # of a comparison of the learner's own classes
        return all(a is b or bool(a == b) for a, b in zip(some, others, strict=True))
    return True


@rule("TPU243", needs=("step", "where"))
def changing(step: Any, where: Place) -> Iterator[Finding]:
    """A finding where example calls differ in what JAX compiles for: structure, shapes, types, static values.

    Where the step has no statics, its traces come from the cache of one jitted function, so that equal calls
    have the same jaxpr.
    """
    traces, statics = step.traces, step.statics
    kinds = [tuple(str(var.aval) for var in traced.jaxpr.jaxpr.invars) for traced in traces]
    structures = [_tracing.trees(traced)[0] for traced in traces]
    programs = len(set(zip(kinds, structures, strict=True)))
    if programs > 1 and len(set(structures)) > 1:
        what = "the structure of its arguments"
    elif programs > 1:
        names = _tracing.names(traces[0].jaxpr.jaxpr)
        columns = zip(names, zip(*kinds, strict=True), strict=True)
        rows = [(name, dict.fromkeys(column)) for name, column in columns]
        what = some([f"{name} ({', then '.join(types)})" for name, types in rows if len(types) > 1])
    else:
        what = "the value of a static argument"
        programs = (
            len({id(traced.jaxpr) for traced in traces}) if statics is None else _different(statics)
        )
    if programs > 1:
        yield finding("TPU243", where, calls=len(traces), programs=programs, what=what)


@rule("TPU408", needs=("step", "where"), stage=Stage.READ)
def lost(step: Any, where: Place) -> Iterator[Finding]:
    """A finding where nothing that the step changes comes back from it."""
    if not step.state and step.loses_updates:
        yield finding("TPU408", where, steps=1, case="copied")
