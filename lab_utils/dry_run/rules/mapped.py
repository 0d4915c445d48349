"""Whether the cores of a mapped step (jax.pmap, jax.shard_map) hold the same state after it.

TPU245, TPU246 and TPU258.
"""

from collections.abc import Iterator
from typing import Any

from lab_utils.common.source import Place
from lab_utils.dry_run.engine import rule
from lab_utils.dry_run.facts.mapped import GRADIENT, Followed, Labels, Rows, axes
from lab_utils.dry_run.private import jax as _tracing
from lab_utils.dry_run.records import Finding
from lab_utils.dry_run.rules import finding
from lab_utils.dry_run.wording import some

_TAKEN = "But an evaluation or a checkpoint uses the values of only one core."


_ROWS = (
    "Each row describes the examples of one core, so code that uses a single row ignores the "
    "other cores."
)


@rule("TPU245", "TPU246", needs=("jaxpr", "state", "followed", "is_pmap", "where"))
def held_apart(
    jaxpr: Any, state: list[tuple[int, int]], followed: Followed, is_pmap: bool, where: Place
) -> Iterator[Finding]:
    """A finding for trained arrays that the cores do not join, else for statistics."""
    apart = list(_apart(jaxpr, state, followed.labels, is_pmap=is_pmap))
    trained = [(argument, result) for argument, result, is_trained in apart if is_trained]
    arrays = trained or [(argument, result) for argument, result, _ in apart]
    if not arrays:
        return
    names = _tracing.names(jaxpr)
    some_are_joined = len(arrays) < sum(
        "float" in str(jaxpr.invars[n].aval.dtype) for n, _ in state
    )
    maker = _tracing.maker(jaxpr, jaxpr.outvars[arrays[0][1]]) if some_are_joined else None
    place = (_tracing.place(maker) if maker else None) or where
    facts = {"arrays": some(names[argument] for argument, _ in arrays)}
    if trained:
        yield finding("TPU245", place, **facts)
        return
    taken = _TAKEN if is_pmap or not _rows_stay(followed.labels, arrays) else _ROWS
    yield finding("TPU246", place, taken=taken, **facts)


@rule("TPU258", needs=("followed", "where"))
def drawn_alike(followed: Followed, where: Place) -> Iterator[Finding]:
    """A finding at each line where all cores draw the same numbers for their examples."""
    for place in followed.drawn_alike:
        yield finding("TPU258", place or where)


def _rows_stay(found: list[Labels], arrays: list[tuple[int, int]]) -> bool:
    """Whether the cores' values are rows of one array, and not copies that only one core's stand for."""
    return all(any(isinstance(label, Rows) for label in found[result]) for _, result in arrays)


def _apart(
    jaxpr: Any, state: list[tuple[int, int]], found: list[Labels], *, is_pmap: bool
) -> Iterator[tuple[int, int, bool]]:
    """Arrays of the state that cores hold otherwise after a step: the pair of numbers, and whether trained.

    Without a gradient in the step all arrays of floats count as trained. Single numbers are left out.
    `found` are the labels of the results.
    """
    has_gradients = any(GRADIENT in of for of in found)
    for argument, result in state:
        aval = jaxpr.invars[argument].aval
        size = aval.size // aval.shape[0] if is_pmap and aval.shape and aval.shape[0] else aval.size
        if "float" in str(aval.dtype) and size > 1 and axes(found[result]):
            yield argument, result, GRADIENT in found[result] or not has_gradients
