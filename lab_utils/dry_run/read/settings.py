"""The estimator's settings: TPU209, TPU210."""

from collections.abc import Iterator
from typing import Any

from lab_utils.common.source import place
from lab_utils.dry_run.records import Finding
from lab_utils.dry_run.rules import finding

_TILE = 8  # rows of a tile in a core's memory


def batch(per_core: int | None, cores: int, model_fn: Any) -> Iterator[Finding]:
    """A note on a batch per core that does not fill the chip's tiles."""
    if per_core and per_core % _TILE:
        suggestion = -(-per_core // _TILE) * _TILE * cores
        yield finding("TPU209", place(model_fn), per_core=per_core, suggestion=suggestion)


def checkpoints(config: Any, model_fn: Any) -> Iterator[Finding]:
    """A finding where checkpoints are asked for in the middle of the device's loop."""
    every, loop = config.save_checkpoints_steps, config.tpu_config.iterations_per_loop
    if every and isinstance(loop, int) and every % loop:
        yield finding("TPU210", place(model_fn), iterations=loop, checkpoint=every)
