"""The input pipelines: TPU211, TPU214, TPU216, TPU218, TPU225, TPU226, TPU232, TPU236."""

from collections.abc import Callable, Iterator
from typing import Any

from lab_utils.common.figures import counted
from lab_utils.common.source import Place, place
from lab_utils.dry_run.engine import rule
from lab_utils.dry_run.facts.blame import BATCHES, computed_size
from lab_utils.dry_run.facts.pipeline import (
    Asked,
    LastBatch,
    Link,
    Pipeline,
    batch_of,
    input_of,
    is_repeated,
    sizes,
)
from lab_utils.dry_run.graphs import attribute, everywhere
from lab_utils.dry_run.records import Finding, Mode
from lab_utils.dry_run.rules import finding
from lab_utils.dry_run.unavailable import Unavailable
from lab_utils.estimator import tf


@rule("TPU214", "TPU226", needs=("pipeline", "twice", "input_fn", "reads_batches"))
def batch_size(
    pipeline: Pipeline, twice: Pipeline, input_fn: Callable, reads_batches: bool
) -> Iterator[Finding]:
    """A finding where the batches are not of params['batch_size']; a note where the step reads none of them.

    `twice` is the same pipeline where TPUEstimator asked for twice as much: the sizes that grow
    with it are those of the batch, on whatever axis.
    """
    op = pipeline.last_batch() if pipeline.last is not None else batch_of(pipeline.graph)
    where = place(op) if op is not None else place(input_fn)
    unread = "" if reads_batches else ", of which the step reads nothing"
    facts = {"asked": pipeline.batch, "unread": unread, "note": not reads_batches}
    pairs = [
        (size, other)
        for shape, larger in zip(pipeline.shapes, twice.shapes, strict=True)
        for size, other in zip(shape, larger, strict=False)  # of other ranks: as far as both go
    ]
    growing = {size for size, other in pairs if size is not None and size != other}
    if growing:
        # Two or three times as many may be views of a picture; as many times as there are cores is a mistake.
        times = {size / pipeline.batch for size in growing}
        if all(ratio % 1 for ratio in times) or (pipeline.cores > 1 and times == {pipeline.cores}):
            yield finding("TPU214", computed_size(where), got=min(growing), **facts)
        for shape, larger in zip(pipeline.shapes, twice.shapes, strict=True):
            if shape == larger and shape[:1] == [pipeline.batch]:  # others grow with params
                fixed = _batch_of_shape(pipeline, shape)
                yield finding("TPU226", where if fixed is None else place(fixed))
        return
    sizes = {shape[0] for shape in pipeline.shapes if shape}
    if not sizes or None in sizes:
        return
    if any(pipeline.batch in shape for shape in pipeline.shapes):
        yield finding("TPU226", where)
    else:
        static = op is not None and tf.get_static_value(input_of(op, "batch_size"))
        size = int(static) if static else min(sizes)
        yield finding("TPU214", where, got=size, **facts)


def _batch_of_shape(pipeline: Pipeline, shape: list[int | None]) -> tf.Operation | None:
    """The op that makes batches with a tensor of that shape."""
    for op in pipeline.chain():
        if op.type in BATCHES and shape in map(sizes, attribute(op, "output_shapes")):
            return op
    return pipeline.last_batch()


@rule("TPU211", needs=("batches", "asked", "mode", "source_of_data", "place_of_batches"))
def too_short(
    batches: float | None, asked: Asked | None, mode: Mode, source: str, where: Place
) -> Iterator[Finding]:
    """A finding where the data end before the steps do; a note where fewer steps may be asked for.

    Raises:
        Unavailable: nobody knows how many batches there are.
    """
    if batches is None and asked:
        raise Unavailable(
            f"{asked.what} asks for {counted(asked.need, 'batch')}, and nobody knows how many {source} has"
        )
    if batches is None:
        return
    if batches < 1:
        yield _too_few(mode, source, where)
    elif asked and batches < asked.need:
        have, note = int(batches), not asked.sure
        yield _too_few(mode, source, where, have, asked.what, asked.need, note)


@rule(
    "TPU211",
    needs=("batches", "last_batch", "source_of_data", "place_of_batches"),
    modes=(Mode.EVAL,),
)
def fills_no_batch(
    batches: float | None, last: LastBatch | None, source: str, where: Place
) -> Iterator[Finding]:
    """A finding where an evaluation that repeats has too few examples for a single batch.

    TensorFlow takes what it cannot count for endless once it is repeated.
    """
    if batches in (None, float("inf")) and last and last.fills_none():
        yield _too_few(Mode.EVAL, source, where)


def _too_few(
    mode: Mode,
    source: str,
    where: Place,
    have: int = 0,
    what: str = "one step",
    need: int = 1,
    note: bool = False,
) -> Finding:
    facts = {"mode": mode.activity, "source": source, "case": source}
    return finding("TPU211", where, note=note, have=have, what=what, need=need, **facts)


@rule(
    "TPU218",
    needs=("pipeline", "batches", "loop", "place_of_batches", "steps"),
    modes=(Mode.TRAIN,),
)
def not_repeated(
    pipeline: Pipeline, batches: float | None, loop: Any, where: Place, steps: int | None
) -> Iterator[Finding]:
    """A finding where the training data are given once; a note where they may be enough for each call.

    Raises:
        Unavailable: it cannot be told.
    """
    enough_for_steps = batches is not None and steps is not None and batches >= steps
    if pipeline.last is None or is_repeated(pipeline) or batches == 0 or enough_for_steps:
        return
    if any("Generator" in op.type for op in everywhere(pipeline.graph)):
        raise Unavailable(
            "the data come from a Python generator, and nobody knows whether it ever ends"
        )
    # Some call train once for each epoch, with as many steps as there are batches.
    enough_for_loop = batches is not None and isinstance(loop, int) and batches >= loop
    yield finding("TPU218", where, note=enough_for_loop and steps is None)


@rule("TPU216", needs=("links",), modes=(Mode.TRAIN,))
def shuffling(links: list[Link]) -> Iterator[Finding]:
    """A finding where whole batches are shuffled, and examples never."""
    kinds = [link.kind for link in links]
    batch = next((n for n, link in enumerate(links) if link.makes_batches), None)
    if batch is None or any("Unbatch" in kind for kind in kinds):
        return
    late = [link for link in links[:batch] if "Shuffle" in link.kind]
    if late and not any("Shuffle" in kind for kind in kinds[batch + 1 :]):
        yield finding("TPU216", late[0].where)


@rule("TPU225", needs=("last_batch", "steps"), modes=(Mode.EVAL,))
def remainder(batch: LastBatch | None, steps: int | None) -> Iterator[Finding]:
    """A note on examples that an evaluation never sees; `steps` are those that it asks for, if known.

    Raises:
        Unavailable: it cannot be told.
    """
    if batch is None or not batch.drops:
        return
    number = batch.examples()
    if number == float("inf"):
        return
    if number is None:
        raise Unavailable(
            "the number of examples in the files is unknown, and drop_remainder drops the last "
            f"batch unless {batch.size} divides that number"
        )
    whole = number // batch.size
    seen = whole if steps is None else min(whole, steps)
    if left := int(number - seen * batch.size):
        what = "drop_remainder drops a shorter last batch"
        if seen < whole:
            what = f"the program asks for {steps} steps of {batch.size} examples"
        yield finding("TPU225", batch.where, left=left, examples=int(number), what=what)


@rule("TPU232", needs=("unsized",), modes=(Mode.TRAIN,))
def no_fixed_size(batch: LastBatch | None) -> Iterator[Finding]:
    """A note on batches of a dataset whose size is not fixed: a TPUEstimator refuses them itself."""
    if batch is None or batch.drops:  # what is mapped over batches has lost their size
        return
    rest = batch.rest()
    last = "" if rest == 0 else ", and the TPU compiles the step once more for the last batch"
    if rest is None:
        last += ", if it is shorter"
    elif rest:
        last += f", which has {rest} examples"
    yield finding("TPU232", batch.where, size=batch.size, last=last)


@rule("TPU236", needs=("endless",), modes=(Mode.TRAIN, Mode.EVAL))
def never_ends(endless: tuple[str, Place] | None) -> Iterator[Finding]:
    """A finding where fit reads data that never end, and was not told how many batches to take."""
    if endless:
        argument, where = endless
        yield finding("TPU236", where, argument=argument)
