"""The flowers port, handed to the dry run: is it ready for a TPU?"""

from pathlib import Path
from typing import Any

from lab_utils.dry_run import dry_run
from lab_utils.flowers.settings import Settings
from lab_utils.flowers.task import inputs, make_estimator
from lab_utils.runtime import chips

BATCH_PER_CORE = 128  # fills the 128 lanes that a TPU lays the batch along


def make_port(records: Path, cores: int, image_size: int = Settings.image_size) -> tuple:
    """The estimator as a TPU of `cores` cores would run it, over converted photographs.

    Args:
        records: folder that `lab_utils.convert` wrote.
        cores: of the TPU; the global batch is 128 for each.
        image_size: side of the square that the model sees, in pixels.

    Returns:
        (TPUEstimator, training input_fn, evaluation input_fn).

    Raises:
        ConversionError: `records` holds no finished conversion.
        ValueError: an image_size that the model cannot take.
    """
    settings = Settings(
        train_data_path=f"{records}/train-*",
        eval_data_path=f"{records}/eval-*",
        output_dir=f"{records}/.dry_run",  # never made: nothing is written there
        train_batch_size=BATCH_PER_CORE * cores,
        eval_batch_size=BATCH_PER_CORE * cores,
        image_size=image_size,
        use_bfloat16=True,
    )
    data = inputs(settings)
    return make_estimator(settings, data.labels), data.train_from(0), data.evaluate


def report(records: Path, image_size: int, topology: str = "v2:2x2", **options: Any) -> Any:
    """The dry run's Report on the flowers port; `options` are those of `dry_run`."""
    estimator, train, evaluate = make_port(records, chips.cores(topology), image_size)
    return dry_run(estimator, train, topology, eval_input_fn=evaluate, **options)
