"""What a TPUEstimator was constructed with: TPU210, TPU237."""

from collections.abc import Iterator
from typing import Any

from lab_utils.common.source import NOWHERE, Place, place
from lab_utils.dry_run.engine import rule
from lab_utils.dry_run.facts.blame import argument
from lab_utils.dry_run.records import Finding, Mode
from lab_utils.dry_run.remote import is_elsewhere
from lab_utils.dry_run.rules import finding


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


@rule("TPU237", needs=("settings", "address", "estimator_at"))
def local_model_dir(settings: Any, address: str, estimator_at: Place) -> Iterator[Finding]:
    """A finding where the TPU's host would write the checkpoints to a path of this machine."""
    folder = str(settings.config.model_dir or "")
    if not is_elsewhere(address) or "://" in folder:
        return
    config_at = getattr(settings.config, "made_at", NOWHERE)
    calls = (("RunConfig", config_at), ("TPUEstimator", estimator_at))
    lines = (argument(settings.model_fn, name, "model_dir", made_at) for name, made_at in calls)
    where = next(filter(None, lines), NOWHERE) or config_at or estimator_at
    facts = {"does": "writes the checkpoints to", "path": folder, "case": "model_dir"}
    yield finding("TPU237", where or place(settings.model_fn), **facts)
