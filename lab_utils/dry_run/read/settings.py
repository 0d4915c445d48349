"""What a TPUEstimator was constructed with: TPU209, TPU210."""

from collections.abc import Iterator
from typing import Any

from lab_utils.common.source import place
from lab_utils.dry_run.engine import rule
from lab_utils.dry_run.records import Finding, Mode
from lab_utils.dry_run.rules import finding
from lab_utils.dry_run.trace.blame import argument

_TILE = 8  # rows of a tile in a core's memory


@rule("TPU210", needs=("settings",), modes=(Mode.TRAIN,))
def checkpoints(settings: Any) -> Iterator[Finding]:
    """A finding where checkpoints are asked for in the middle of the device's loop."""
    every, loop = (
        settings.config.save_checkpoints_steps,
        settings.config.tpu_config.iterations_per_loop,
    )
    if every and isinstance(loop, int) and every % loop:
        where = argument(settings.model_fn, "RunConfig", "save_checkpoints_steps")
        where = where or place(settings.model_fn)  # it is made in another file
        yield finding("TPU210", where, iterations=loop, checkpoint=every)


@rule("TPU209", needs=("settings", "per_core_batch", "cores"), modes=(Mode.TRAIN,))
def tiles(settings: Any, per_core: int | None, cores: int) -> Iterator[Finding]:
    """A note on a batch per core that does not fill the chip's tiles."""
    if per_core and per_core % _TILE:
        suggestion = -(-per_core // _TILE) * _TILE * cores
        where = place(settings.model_fn)
        yield finding("TPU209", where, per_core=per_core, suggestion=suggestion)
