"""The whole flowers job in one command: photographs, TFRecords, training, export, predictions, a page.

    python -m lab_utils.flowers [--data FOLDER]

Each stage is a process of its own, so that none holds memory while the next one works. Run again, it goes
on where it was: what is converted stays converted, and training continues from its last checkpoint.
"""

import argparse
import hashlib
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

from lab_utils import datasets
from lab_utils.flowers.memory import PeakMemory

CONFIG = Path(__file__).parent / "flowers.yaml"
# glibc keeps an arena of freed memory a thread; with two, training holds about a tenth less.
STAGE_ENVIRONMENT = {"MALLOC_ARENA_MAX": "2"}
DRAWN = "The pictures are drawn by lab_utils.synthetic_flowers: no photographs, nobody to credit."


def _photographs(data: str, output_dir: Path) -> tuple[datasets.Photos, str]:
    """The photographs to use, and whom to credit for them."""
    if data == "bundled":
        return datasets.bundled(), DRAWN
    folder = Path(data)
    photos = datasets.from_folder(folder, output_dir / "csv")
    licence = folder / "LICENSE.txt"
    credit = (
        f"Photographs: see {licence} for their authors and licence." if licence.exists() else ""
    )
    return photos, credit


def _stage(title: str, module: str, *arguments: object, accept: tuple[int, ...] = (0,)) -> float:
    """Runs one stage; returns its seconds. Its own messages say what went wrong, if anything does."""
    print(f"\n== {title}", flush=True)
    start = time.monotonic()
    command = [sys.executable, "-m", f"lab_utils.{module}", *map(str, arguments)]
    status = subprocess.run(command, env=os.environ | STAGE_ENVIRONMENT).returncode
    if status not in accept:
        sys.exit(f"flowers: stopped, {title.lower()} did not succeed (exit status {status}).")
    return time.monotonic() - start


def main() -> int:
    """Runs the command line; returns its exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m lab_utils.flowers",
        description="The whole flowers job: photographs, TFRecords, training with TPUEstimator, "
        "evaluation, export, predictions, and a page of pictures.",
    )
    parser.add_argument(
        "--data",
        default="bundled",
        help="a folder of photographs in class sub-folders (default: the bundled pictures)",
    )
    parser.add_argument("--output_dir", type=Path, default=Path("out"), help="default: out")
    parser.add_argument("--config", type=Path, default=CONFIG, help="training settings, YAML")
    arguments, training = parser.parse_known_args()

    start = time.monotonic()
    name = "bundled" if arguments.data == "bundled" else Path(arguments.data).resolve().name
    name = re.sub(r"[^\w.-]+", "_", name)  # part of globs later on
    try:
        photos, credit = _photographs(arguments.data, arguments.output_dir / name)
    except datasets.DatasetError as error:
        sys.exit(f"flowers: {error}")

    # Other photographs get folders of their own: nothing is overwritten, nothing old is mixed in.
    csv_files = (photos.train_csv, photos.eval_csv, photos.labels_file)
    content = b"".join(file.read_bytes() for file in csv_files)
    job = arguments.output_dir / name / hashlib.sha256(content).hexdigest()[:8]
    records, run, page = job / "records", job / "run", job / "page"
    seconds = {}
    with PeakMemory() as memory:
        if (records / "manifest.json").exists():
            print(f"{records} is converted already.")
        else:
            seconds["conversion"] = _stage(
                "Photographs to TFRecords",
                "convert",
                *("--train_csv", photos.train_csv, "--eval_csv", photos.eval_csv),
                *("--labels_file", photos.labels_file, "--output_dir", records),
            )
        seconds["training, evaluation, export"] = _stage(
            "Train, evaluate, export",
            "flowers.task",
            *("--config", arguments.config, "--output_dir", run),
            *("--train_data_path", records / "train-*", "--eval_data_path", records / "eval-*"),
            *training,
        )
        page.mkdir(parents=True, exist_ok=True)
        seconds["dry run for a TPU"] = _stage(
            "The same port, through the TPU compiler",
            "flowers.port",
            *("--records", records, "--html", page / "dry_run.html"),
            accept=(0, 1, 2),  # what it says of the port does not stop the job
        )
        facts = {name: f"{value:.0f} s (measured here)" for name, value in seconds.items()}
        facts["most memory held, all processes together"] = (
            f"{memory.peak / 2**20:,.0f} MiB (measured here)"
        )
        facts["colour histogram with logistic regression, for comparison"] = (
            f"{datasets.histogram_baseline(photos.train_csv, photos.eval_csv):.1%} of the held-out "
            "images named rightly (measured here)"
        )
        facts_file = job / "facts.json"
        facts_file.write_text(json.dumps(facts, indent=2))
        _stage(
            "Predictions and a page of pictures",
            "flowers.page",
            *("--run_dir", run, "--eval_csv", photos.eval_csv, "--output_dir", page),
            *("--facts", facts_file, "--credit", credit),
        )
    print(
        f"\nDone in {time.monotonic() - start:.0f} s; at most {memory.peak / 2**20:,.0f} MiB resident, "
        f"all processes together (measured here).\nOpen {page / 'index.html'} in a browser."
    )
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit("flowers: interrupted; the same command goes on where it was.")
