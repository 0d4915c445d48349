"""The flowers port, handed to the dry run: is it ready for a TPU?

python -m lab_utils.flowers.port --records RECORDS [--image_size 96] [--topology v5e:2x2] [--html report.html]
"""

import argparse
from pathlib import Path
from typing import Any

from lab_utils import runtime
from lab_utils.common import command, files

BATCH_PER_CORE = 128  # fills the 128 lanes that a TPU lays the batch along


def make_port(records: Path, cores: int, image_size: int | None = None) -> tuple:
    """The estimator as a TPU of `cores` cores would run it, over converted photographs.

    Args:
        records: folder that `lab_utils.convert` wrote.
        cores: of the TPU; the global batch is 128 for each.
        image_size: side of the square that the model sees, in pixels; None for the training's own default.

    Returns:
        (TPUEstimator, training input_fn, evaluation input_fn).

    Raises:
        ManifestError: `records` holds no finished conversion.
        ValueError: an image_size that the model cannot take.
    """
    from lab_utils.flowers.settings import Settings
    from lab_utils.flowers.task import inputs, make_estimator

    size = {} if image_size is None else {"image_size": image_size}
    settings = Settings(
        **size,
        train_data_path=f"{records}/train-*",
        eval_data_path=f"{records}/eval-*",
        output_dir=f"{records}/.dry_run",  # never made: nothing is written there
        train_batch_size=BATCH_PER_CORE * cores,
        eval_batch_size=BATCH_PER_CORE * cores,
        use_bfloat16=True,
    )
    data = inputs(settings)
    return make_estimator(settings, data.labels), data.train_from(0), data.evaluate


def report(records: Path, image_size: int | None = None, topology: str = "v2:2x2") -> Any:
    """The dry run's Report on the flowers port; raises what `make_port` raises."""
    from lab_utils.dry_run import dry_run
    from lab_utils.runtime import chips

    estimator, train, evaluate = make_port(records, chips.cores(topology), image_size)
    return dry_run(estimator, train, topology, eval_input_fn=evaluate)


def main() -> int:
    """Runs the command line; returns the report's exit status: 0 ready, 1 findings, 2 could not run."""
    parser = argparse.ArgumentParser(
        prog="python -m lab_utils.flowers.port",
        description="Dry-run the flowers port, without a TPU.",
    )
    wrote = "folder that lab_utils.convert wrote"
    parser.add_argument("--records", type=files.path_argument, required=True, help=wrote)
    parser.add_argument("--topology", default="v2:2x2", help="default: v2:2x2, eight cores")
    parser.add_argument("--image_size", type=int, help="pixels a side (default: the training's)")
    parser.add_argument("--html", type=files.output(files.HTML), help="write the report as a page")
    arguments = parser.parse_args()
    runtime.quiet()
    from lab_utils.convert import ManifestError

    try:
        verdict = report(arguments.records, arguments.image_size, arguments.topology)
    except (ManifestError, ValueError) as error:
        parser.error(str(error))
    print(verdict)
    if arguments.html:
        verdict.write_html(arguments.html)
        print(f"Report: {arguments.html}")
    return verdict.exit_status


if __name__ == "__main__":
    command.run(main, cannot=2)
