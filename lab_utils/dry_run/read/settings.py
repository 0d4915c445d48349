"""What a TPUEstimator was constructed with: TPU210."""

from collections.abc import Iterator
from typing import Any

from lab_utils.common.source import NOWHERE, place
from lab_utils.dry_run.engine import rule
from lab_utils.dry_run.records import Finding, Mode
from lab_utils.dry_run.rules import finding
from lab_utils.dry_run.trace.blame import argument


@rule("TPU210", needs=("settings",), modes=(Mode.TRAIN,))
def checkpoints(settings: Any) -> Iterator[Finding]:
    """A finding where checkpoints are asked for in the middle of the device's loop."""
    every, loop = (
        settings.config.save_checkpoints_steps,
        settings.config.tpu_config.iterations_per_loop,
    )
    if every and isinstance(loop, int) and every % loop:
        where = argument(settings.model_fn, "RunConfig", "save_checkpoints_steps")
        where = where or getattr(settings.config, "made_at", NOWHERE)  # it is made in another file
        where = where or place(settings.model_fn)
        yield finding("TPU210", where, iterations=loop, checkpoint=every)
