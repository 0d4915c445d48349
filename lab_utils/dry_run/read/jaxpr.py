"""What the jaxpr of a JAX step tells: 64-bit types, host callbacks, constants, what is compiled again.

TPU240 to TPU244, and TPU408.
"""

import contextlib
import itertools
import math
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any

from lab_utils.common.figures import memory
from lab_utils.common.source import NOWHERE, Place
from lab_utils.dry_run.engine import rule
from lab_utils.dry_run.private import jax as _tracing
from lab_utils.dry_run.program import Matmul
from lab_utils.dry_run.records import Finding, Stage
from lab_utils.dry_run.rules import finding, some

_WIDE = ("float64", "complex128")
_LARGE_CONSTANT = 8 * 2**20  # bytes
_MOST_NAMES = 4
_HLO_NAMES = {"float32": "f32", "bfloat16": "bf16", "float16": "f16", "float64": "f64"}
# jax.lax.Precision, and the DotAlgorithmPresets that round less.
_PRECISE = re.compile(r"HIGH|F32_|F64_|TF32_|BF16_BF16_F32_X")
_DEPTH = 3  # of the parts of arguments and results that may be state


def primitives(jaxpr: Any) -> set[str]:
    """The names of all primitives of a jaxpr."""
    return {equation.primitive.name for equation in _tracing.equations(jaxpr)}


def matmuls(jaxpr: Any, times: int = 1) -> Iterator[Matmul]:
    """The matmuls and convolutions of a jaxpr; one round of a `while`, and none of a Pallas kernel's."""
    for equation in jaxpr.eqns:
        name = equation.primitive.name
        if name in ("dot_general", "conv_general_dilated"):
            left, right = (variable.aval for variable in equation.invars)
            result, numbers = equation.outvars[0].aval, equation.params["dimension_numbers"]
            if name == "dot_general":
                inner_size = math.prod(left.shape[axis] for axis in numbers[0][0])
            else:
                inner_size = right.size // right.shape[numbers.rhs_spec[0]]
            dtypes = tuple(
                _HLO_NAMES.get(str(each.dtype), str(each.dtype)) for each in (left, right)
            )
            precise = _is_precise(equation.params["precision"])
            yield Matmul(2.0 * times * result.size * inner_size, dtypes, precise)
        elif name != "pallas_call":
            rounds = equation.params["length"] if name == "scan" else 1
            for body in _tracing.bodies(equation):
                yield from matmuls(body, times * rounds)


def _is_precise(precision: Any) -> bool:
    """Whether more is asked for than the one rounding of operands to bfloat16 that TPUs do by default."""
    parts = precision if isinstance(precision, tuple) else (precision,)
    return any(_PRECISE.match(getattr(part, "name", "")) for part in parts)


def callbacks(jaxpr: Any) -> set[Any]:
    """The primitives of a jaxpr that call Python on the host."""
    return {
        equation.primitive
        for equation in _tracing.equations(jaxpr)
        if _tracing.is_callback(equation)
    }


def silent_kernels(jaxpr: Any, where: Place) -> list[Place]:
    """Where Pallas kernels are called that give no cost_estimate: the compiler counts no FLOPs of theirs."""
    return lines_of_kernels(jaxpr, where, lambda kernel: kernel.get("cost_estimate") is None)


def lines_of_kernels(
    jaxpr: Any, where: Place, keep: Callable[[Any], bool] = lambda kernel: True
) -> list[Place]:
    """Where Pallas kernels are called of whose parameters `keep` holds; `where` is the step's own line."""
    calls = (op for op in _tracing.equations(jaxpr) if op.primitive.name == "pallas_call")
    kept = (op for op in calls if not op.params.get("interpret") and keep(op.params))
    return list(dict.fromkeys(_tracing.place(op) or where for op in kept))


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


def state_numbers(traced: Any, among: Collection[int] | None = None) -> list[tuple[int, int]]:
    """Pairs (number of an argument's array, number of the result that is its new value).

    An argument of the step, or a part of one, is state where the results hold its structure and its shapes.

    Args:
        among: the numbers of the positional arguments that are state, where somebody said so.
    """
    arguments, results = _tracing.trees(traced)
    takes, gives = traced.jaxpr.jaxpr.invars, traced.jaxpr.jaxpr.outvars
    old, new = [var.aval for var in takes], [var.aval for var in gives]
    whole = list(itertools.chain(*map(children, children(arguments))))
    return paired(whole, results, old, new, among)


def line_of(jaxpr: Any, primitive: str, around: Place = NOWHERE) -> Place | None:
    """The first line that uses a primitive, or calls a function of JAX's own that does; None: none."""
    for equation in jaxpr.eqns:
        place = _tracing.place(equation) or around
        if equation.primitive.name == primitive:
            return place
        found = (line_of(body, primitive, place) for body in _tracing.bodies(equation))
        if (line := next((each for each in found if each is not None), None)) is not None:
            return line
    return None


def argument_numbers(traced: Any) -> list[int]:
    """For each array that a step takes the number of the positional argument that holds it; -1: none."""
    positional, keywords = children(_tracing.trees(traced)[0])
    numbers = [n for n, tree in enumerate(children(positional)) for _ in range(tree.num_leaves)]
    return numbers + [-1] * keywords.num_leaves


def children(tree: Any) -> list[Any]:
    """The structures in a structure."""
    return list(tree.children())


def paired(
    whole: list[Any],
    results: Any,
    old: Sequence[Any],
    new: Sequence[Any],
    among: Collection[int] | None = None,
) -> list[tuple[int, int]]:
    """As state_numbers: `whole` are the arguments' structures; `old` and `new` have shapes and types."""
    outputs = list(_subtrees([results], _DEPTH))
    roots = [tree for n, tree in enumerate(whole) if among is None or n in among]
    chosen = {id(tree) for tree in roots}
    new_value: dict[int, int] = {}  # number of an argument's array -> number of the result
    start = 0
    for root in whole:
        if id(root) in chosen:
            for first, tree in _subtrees([root], _DEPTH, start):
                # One array alone is state only as the whole first argument, and not as a number: others have
                # its shape by chance, as an iteration's number has the loss's.
                may_be_alone = tree is root and (among is not None or (start == 0 and old[0].shape))
                if tree.num_leaves > 1 or (tree.num_leaves and may_be_alone):
                    _pair(first, tree, outputs, old, new, new_value)
        start += root.num_leaves
    return list(new_value.items())


def _pair(
    start: int,
    tree: Any,
    outputs: list[tuple[int, Any]],
    old: Sequence[Any],
    new: Sequence[Any],
    new_value: dict[int, int],
) -> None:
    """Adds the first result that has the structure and the shapes of a part of the arguments."""
    leaves = range(start, start + tree.num_leaves)
    for first, output in outputs:
        places = range(first, first + tree.num_leaves)
        if output != tree or [old[n].shape for n in leaves] != [new[n].shape for n in places]:
            continue
        if len(leaves) == 1 and _is_float(old[start]) != _is_float(new[first]):
            continue
        if not new_value.keys().isdisjoint(leaves):
            continue
        if set(new_value.values()).isdisjoint(places):
            new_value.update(zip(leaves, places, strict=True))
            return


def _is_float(array: Any) -> bool:
    return "float" in str(array.dtype)


def _subtrees(trees: Sequence[Any], depth: int, start: int = 0) -> Iterator[tuple[int, Any]]:
    """Structures and those in them, outer ones first, each with the number of its first array."""
    for tree in trees:
        yield start, tree
        if depth:
            yield from _subtrees(tree.children(), depth - 1, start)
        start += tree.num_leaves


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


@rule("TPU243", needs=("traces", "statics", "where"))
def changing(
    traces: Sequence[Any], statics: Sequence[Sequence[Any]] | None, where: Place
) -> Iterator[Finding]:
    """A finding where example calls differ in what JAX compiles for: structure, shapes, types, static values.

    `statics` has of each call the values that are constants of its program. None: the traces come from the
    cache of one jitted function, so that equal calls have the same jaxpr.
    """
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


@rule("TPU408", needs=("state", "loses_updates", "where"), stage=Stage.READ)
def lost(state: list[tuple[int, int]], loses_updates: bool, where: Place) -> Iterator[Finding]:
    """A finding where nothing that the step changes comes back from it."""
    if not state and loses_updates:
        yield finding("TPU408", where, steps=1, case="copied")
