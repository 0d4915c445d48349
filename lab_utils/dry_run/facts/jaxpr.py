"""What the jaxpr of a JAX step tells: its primitives, kernels and callbacks, and its state."""

import itertools
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any

from lab_utils.common.source import NOWHERE, Place
from lab_utils.dry_run.private import jax as _tracing

_DEPTH = 3  # of the parts of arguments and results that may be state
_ADD_TO_ROWS = ("scatter-add", "scatter-sub")


def primitives(jaxpr: Any) -> set[str]:
    """The names of all primitives of a jaxpr."""
    return {equation.primitive.name for equation in _tracing.equations(jaxpr)}


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


def state_numbers(traced: Any, among: Collection[int] | None = None) -> list[tuple[int, int]]:
    """Pairs (number of an argument's array, number of the result that is its new value).

    An argument of the step, or a part of one, is state where the results hold its structure and its shapes. A
    gradient has these, too, and so has what a step without gradients makes of its only array. Those two are
    state only where somebody said so, or where the step adds to rows of that array.

    Args:
        among: the numbers of the positional arguments that are state, where somebody said so.
    """
    arguments, results = _tracing.trees(traced)
    takes, gives = traced.jaxpr.jaxpr.invars, traced.jaxpr.jaxpr.outvars
    old, new = [var.aval for var in takes], [var.aval for var in gives]
    whole = list(itertools.chain(*map(children, children(arguments))))
    if among is not None:
        return paired(whole, results, old, new, among)
    makers = [_tracing.maker(traced.jaxpr.jaxpr, result) for result in gives]
    # An optimizer makes the new state of these.
    gradients = {n for n, each in enumerate(makers) if each and _tracing.is_of_gradient(each)}
    added = {n for n, each in enumerate(makers) if each and each.primitive.name in _ADD_TO_ROWS}
    trains = any(map(_tracing.is_of_gradient, _tracing.equations(traced.jaxpr.jaxpr)))
    return [
        (of, result)
        for of, result in paired(whole, results, old, new, gradients=gradients)
        if trains or of or whole[0].num_leaves > 1 or result in added
    ]


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
    gradients: Collection[int] = (),
) -> list[tuple[int, int]]:
    """As state_numbers: `whole` are the arguments' structures; `old` and `new` have shapes and types.

    No structure with one of the results `gradients` is new state.
    """
    outputs = [
        (first, tree)
        for first, tree in _subtrees([results], _DEPTH)
        if not any(n in gradients for n in range(first, first + tree.num_leaves))
    ]
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
