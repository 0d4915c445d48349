"""The whole flowers job in one command: photographs, TFRecords, training, export, predictions, a page.

    python -m lab_utils.flowers [--data FOLDER]

Run again, it goes on where it was: what is converted stays converted, and training continues from its
last checkpoint.
"""

import argparse
import contextlib
import dataclasses
import re
import time
from collections.abc import Iterator
from pathlib import Path

from lab_utils import datasets
from lab_utils.common import command, files
from lab_utils.convert import convert
from lab_utils.flowers import settings, task

CONFIG = Path(__file__).parent / "flowers.yaml"
DRAWN = "The pictures are drawn by datasets/flowers/make, so there are no photographers to credit."


def _prepare(folder: Path, output_dir: Path) -> tuple[datasets.Photos, Path, str]:
    """The photographs, the job's own folder, and whom to credit for the photographs."""
    if str(folder) == "bundled":
        return datasets.bundled(), output_dir / "bundled", DRAWN
    job = output_dir / re.sub(r"[^\w.-]+", "_", folder.resolve().name)  # part of globs later on
    if (job / "records").exists() and not (job / "csv" / "train.csv").exists():
        raise datasets.DatasetError(
            f"{job} holds results from other photographs: move it away, or give another "
            "--output_dir"
        )
    photos = datasets.from_folder(folder, job / "csv")
    licence = folder / "LICENSE.txt"
    credit = f"Photographs: see {licence} for their authors and licence."
    return photos, job, credit if licence.exists() else ""


def _baseline(photos: datasets.Photos) -> str:
    """What colour alone would reach, in words."""
    baseline = datasets.histogram_baseline(photos.train_csv, photos.eval_csv)
    left_out = f"; {baseline.left_out} of all photographs cannot be opened" * bool(
        baseline.left_out
    )
    return f"{baseline.accuracy:.1%} accuracy on the held-out images (measured here{left_out})"


def _carry_out(arguments: argparse.Namespace, training: settings.Settings) -> None:
    """Runs all stages, with the settings of the training but for its paths."""
    start = time.monotonic()
    photos, job, credit = _prepare(arguments.data, arguments.output_dir)
    records, run, output = job / "records", job / "run", job / "page"
    facts: dict[str, str] = {}

    @contextlib.contextmanager
    def stage(title: str, fact: str) -> Iterator[None]:
        print(f"\n== {title}", flush=True)
        start = time.monotonic()
        yield
        facts[fact] = f"{time.monotonic() - start:.0f} s (measured here)"

    output.mkdir(parents=True, exist_ok=True)
    with files.locked(job / ".lock"):
        if (records / "manifest.json").exists():
            print(f"{records} is converted already.")
        else:
            with stage("Photographs to TFRecords", "conversion"):
                manifest = convert(
                    photos.train_csv,
                    photos.eval_csv,
                    photos.labels_file,
                    records,
                    max_reject_share=arguments.max_reject_share,
                    overwrite=True,  # no manifest: at most what a killed run left
                )
                print(manifest)
        from lab_utils.flowers import page, port

        with stage("Train, evaluate, export", "training, evaluation, export"):
            paths = {f"{split}_data_path": f"{records}/{split}-*" for split in ("train", "eval")}
            result = task.run(dataclasses.replace(training, output_dir=str(run), **paths))
            task.show(result)
        with stage("The same port, through the TPU compiler", "dry run for a TPU"):
            report = port.report(records, training.image_size)
            report.write_html(output / "dry_run.html")
            print(f"{report.verdict_sentence}\nReport: {output / 'dry_run.html'}")
        print("\n== Predictions and a page of pictures", flush=True)
        facts["colour histogram with logistic regression, for comparison"] = _baseline(photos)
        html = page.make(run, photos.eval_csv, output, facts, credit)
    print(f"\nDone in {time.monotonic() - start:.0f} s (measured here).")
    print(f"Open {html} in a browser.")


def main() -> int:
    """Runs the command line; returns its exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m lab_utils.flowers",
        description="The whole flowers job: photographs, TFRecords, training with TPUEstimator, "
        "evaluation, export, predictions, and a page of pictures.",
        epilog=(
            "All other flags are passed on to the training: see python -m lab_utils.flowers.task "
            "--help."
        ),
        allow_abbrev=False,
    )
    parser.add_argument(
        "--data",
        type=files.path_argument,
        default="bundled",
        help="a folder of photographs in class sub-folders (default: the bundled pictures)",
    )
    parser.add_argument(
        "--output_dir", type=files.path_argument, default=Path("out"), help="default: out"
    )
    parser.add_argument(
        "--max_reject_share",
        type=float,
        default=0.01,
        help="largest share of damaged photographs, which are set aside (default: 0.01)",
    )
    arguments, flags = parser.parse_known_args()
    # A mistaken flag is refused before the work begins; the paths of the records come later.
    flags = [f"--{name}={arguments.output_dir}" for name in settings.PATHS] + flags
    training = settings.parse([f"--config={CONFIG}", *flags])  # another --config wins
    task.prepare()
    return task.status_of(
        "flowers", lambda: _carry_out(arguments, training), str(arguments.output_dir)
    )


if __name__ == "__main__":
    command.run(main)
