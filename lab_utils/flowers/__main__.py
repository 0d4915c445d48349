"""The whole flowers job in one command: photographs, TFRecords, training, export, predictions, a page.

    python -m lab_utils.flowers [--data FOLDER]

Each stage is a process of its own, so that none holds memory while the next one works. Run again, it goes
on where it was: what is converted stays converted, and training continues from its last checkpoint.
"""

import argparse
import errno
import hashlib
import json
import re
import sys
import tempfile
import time
from pathlib import Path

from lab_utils import datasets
from lab_utils.common import command, files, interrupts, scratch
from lab_utils.flowers import settings, stage
from lab_utils.flowers.memory import PeakMemory

CONFIG = Path(__file__).parent / "flowers.yaml"
PATIENCE = 3 * stage.GRACE  # seconds that the stage of a killed run may still need to end
DRAWN = "The pictures are drawn by datasets/flowers/make: no photographs, nobody to credit."


def _prepare(folder: Path, output_dir: Path) -> tuple[datasets.Photos, Path, str]:
    """The photographs, the job's own folder, and whom to credit for the photographs.

    Other photographs get a job folder of their own: nothing is overwritten, nothing old is mixed in.
    """
    if str(folder) == "bundled":
        photos = datasets.bundled()
        return photos, output_dir / "bundled" / _digest(photos), DRAWN
    datasets.check_outside(output_dir, folder)
    name = re.sub(r"[^\w.-]+", "_", folder.resolve().name)  # part of globs later on
    with tempfile.TemporaryDirectory() as scratch:
        photos = datasets.from_folder(folder, scratch)
        job = output_dir / name / _digest(photos)
        csv = job / "csv"
        csv.mkdir(parents=True, exist_ok=True)
        for file in (photos.train_csv, photos.eval_csv, photos.labels_file):
            files.write(csv / file.name, file.read_bytes())
    licence = folder / "LICENSE.txt"
    credit = (
        f"Photographs: see {licence} for their authors and licence." if licence.exists() else ""
    )
    return datasets.Photos.at(folder, csv), job, credit


def _digest(photos: datasets.Photos) -> str:
    lists = (photos.train_csv, photos.eval_csv, photos.labels_file)
    content = b"".join(file.read_bytes() for file in lists)
    return hashlib.sha256(content).hexdigest()[:8]


def _stage(
    title: str, module: str, *arguments: object, lock: int, accept: tuple[int, ...] = (0,)
) -> float:
    """Runs one stage; returns its seconds. Its own messages say what went wrong, if anything does."""
    print(f"\n== {title}", flush=True)
    start = time.monotonic()
    status = stage.run(f"lab_utils.{module}", *arguments, lock=lock)
    if status not in accept:
        sys.exit(f"flowers: stopped, {title.lower()} did not succeed (exit status {status}).")
    return time.monotonic() - start


def _baseline(photos: datasets.Photos) -> str:
    """What colour alone would reach, in words."""
    try:
        baseline = datasets.histogram_baseline(photos.train_csv, photos.eval_csv)
    except datasets.DatasetError as error:
        return f"could not be measured: {error}"
    left_out = f", without {baseline.left_out} that cannot be opened" * bool(baseline.left_out)
    return f"{baseline.accuracy:.1%} accuracy on the held-out images{left_out} (measured here)"


def _carry_out(arguments: argparse.Namespace, training: list[str], image_size: int) -> Path:
    """Runs all stages, `training` being the flags of the training; returns the page."""
    photos, job, credit = _prepare(arguments.data, arguments.output_dir)
    records, run, page = job / "records", job / "run", job / "page"
    seconds = {}
    page.mkdir(parents=True, exist_ok=True)
    with files.locked(job / ".lock", wait=PATIENCE) as lock, PeakMemory() as memory:
        for folder in (job, page):
            files.remove_unfinished(folder)
        if (records / "manifest.json").exists():
            print(f"{records} is converted already.")
        else:
            seconds["conversion"] = _stage(
                "Photographs to TFRecords",
                "convert",
                *("--train_csv", photos.train_csv, "--eval_csv", photos.eval_csv),
                *("--labels_file", photos.labels_file, "--output_dir", records),
                *("--max_reject_share", arguments.max_reject_share),
                "--overwrite",  # no manifest: at most what a killed run left
                lock=lock,
            )
        seconds["training, evaluation, export"] = _stage(
            "Train, evaluate, export",
            "flowers.task",
            *("--config", arguments.config, "--output_dir", run),
            *("--train_data_path", records / "train-*", "--eval_data_path", records / "eval-*"),
            *training,
            lock=lock,
        )
        seconds["dry run for a TPU"] = _stage(
            "The same port, through the TPU compiler",
            "flowers.port",
            *("--records", records, "--html", page / "dry_run.html", "--image_size", image_size),
            lock=lock,
            accept=(0, 1, 2),  # what it says of the port does not stop the job
        )
        facts = {name: f"{value:.0f} s (measured here)" for name, value in seconds.items()}
        facts["most memory held, all processes together"] = (
            f"{memory.peak / 2**20:,.0f} MiB (measured here)"
        )
        facts["colour histogram with logistic regression, for comparison"] = _baseline(photos)
        facts_file = job / "facts.json"
        files.write(facts_file, json.dumps(facts, indent=2))
        _stage(
            "Predictions and a page of pictures",
            "flowers.page",
            *("--run_dir", run, "--eval_csv", photos.eval_csv, "--output_dir", page),
            *("--facts", facts_file, "--credit", credit),
            lock=lock,
        )
    print(
        f"\nAt most {memory.peak / 2**20:,.0f} MiB resident, all processes together (measured here)."
    )
    return page / "index.html"


def main() -> int:
    """Runs the command line; returns its exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m lab_utils.flowers",
        description="The whole flowers job: photographs, TFRecords, training with TPUEstimator, "
        "evaluation, export, predictions, and a page of pictures.",
        epilog="Every other flag goes to the training: see python -m lab_utils.flowers.task --help.",
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
        "--config", type=files.path_argument, default=CONFIG, help="training settings, YAML"
    )
    parser.add_argument(
        "--max_reject_share",
        default="0.01",
        help="share of the photographs that may be damaged: they are set aside (default: 0.01)",
    )
    arguments, training = parser.parse_known_args()
    # A mistaken flag is told before the work begins.
    paths = ["--train_data_path=later", "--eval_data_path=later"]
    paths.append(f"--output_dir={arguments.output_dir}")
    chosen = settings.parse([f"--config={arguments.config}", *paths, *training])
    interrupts.as_ctrl_c()
    scratch.of_process()  # of the stages, too
    start = time.monotonic()
    try:
        page = _carry_out(arguments, training, chosen.image_size)
    except (datasets.DatasetError, files.InUseError) as error:
        sys.exit(f"flowers: {error}")
    except BrokenPipeError:
        raise
    except OSError as error:
        elsewhere = "; name a folder elsewhere by --output_dir (make flowers OUT=...)"
        hint = elsewhere * (error.errno in (errno.EROFS, errno.EACCES, errno.EPERM))
        sys.exit(f"flowers: {error.strerror or error}: {error.filename}{hint}")
    print(f"Done in {time.monotonic() - start:.0f} s (measured here).\nOpen {page} in a browser.")
    return 0


def _job() -> int:
    try:
        return main()
    except KeyboardInterrupt:
        sys.exit("flowers: interrupted; the same command goes on where it was.")


if __name__ == "__main__":
    command.run(_job)
