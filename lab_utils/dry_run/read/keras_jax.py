"""What a model of Keras on JAX, its distribution and its batches tell before the step is lowered."""

from collections.abc import Iterator, Mapping
from typing import Any

import jax
import numpy as np

from lab_utils.common.source import Place
from lab_utils.dry_run.records import Finding
from lab_utils.dry_run.rules import finding


def has_strings(batches: list[Any]) -> bool:
    """Whether batches hold text, as arrays of strings or of Python's objects."""
    kinds = (getattr(np.asarray(leaf).dtype, "kind", "") for leaf in jax.tree.leaves(batches[:1]))
    return any(kind in "USOT" for kind in kinds)


def of_batches(data: Any, axis: str, mesh: Mapping[str, int], where: Place) -> Iterator[Finding]:
    """Findings on batches that the cores cannot share, and on a last, shorter batch of an epoch.

    `axis` is the axis of the mesh that batches are split over; "" where there is no distribution.
    """
    if has_strings(data.first):
        yield finding("TPU119", where, source="the data of fit")
        return
    parts, batch, rest = mesh.get(axis, 1), data.size, data.rest
    if batch % parts:
        what = (
            f"keras.distribution splits its first axis over the axis {axis!r} of the mesh, of size {parts}, "
            "and JAX refuses a batch that does not divide"
        )
        suggestion = max(parts, round(batch / parts) * parts)
        yield finding("TPU106", where, batch=batch, cores=parts, what=what, suggestion=suggestion)
    elif rest and rest % parts:
        yield finding("TPU250", where, rest=rest, batch=batch, parts=parts)
    elif rest:
        what = f"the last batch of an epoch has {rest} examples in place of {batch}"
        calls = data.adapter.num_batches or "an epoch's"
        yield finding("TPU243", where, note=True, calls=calls, programs=2, what=what)
