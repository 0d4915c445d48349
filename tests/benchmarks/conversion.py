"""How fast the converter is, beside a naive job, a plain loop and a copy of the bytes, all in one run.

Two workers are threads of the converter. What the launcher holds is told for a list of a million rows that
name no file: it counts and deals them.

    python tests/benchmarks/conversion.py --output_dir out/conversion

Each measurement is a whole process, start-up included; the variants take turns, so that a busy machine is
unfair to none of them. Read the ratios: each is the median of those of the rounds, with least and greatest.

Heavy packages are imported where they are used: a variant must not pay for another's, and the kernel counts
the memory of the process that starts a child towards the child's peak.
"""

import argparse
import contextlib
import csv
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from rounds import round_ratios

PHOTOGRAPHS = Path(__file__).parents[3] / "shared" / "flower_photos"


def read_rows(csv_path: Path) -> Iterator[list[str]]:
    with open(csv_path, newline="") as file:
        yield from csv.reader(file)


def run_naive(folder: Path, output: Path) -> None:
    """Convert as the course's forerunner did: for each image a session, and one more decoder in the graph."""
    import apache_beam as beam
    import tensorflow as tf

    labels = (folder / "labels.txt").read_text().split()

    def encode(line: str) -> bytes:
        path, label = line.split(",")
        data = Path(path).read_bytes()
        with tf.compat.v1.Session() as session:
            holder = tf.compat.v1.placeholder(tf.string)
            decoder = tf.io.decode_jpeg(holder, channels=3)
            height, width, _ = session.run(decoder, {holder: data}).shape

        def feature(value):
            if isinstance(value, bytes):
                return tf.train.Feature(bytes_list=tf.train.BytesList(value=[value]))
            return tf.train.Feature(int64_list=tf.train.Int64List(value=[value]))

        values = {
            "image/encoded": data,
            "image/height": height,
            "image/width": width,
            "image/class/label": labels.index(label) + 1,
        }
        features = tf.train.Features(feature={name: feature(v) for name, v in values.items()})
        return tf.train.Example(features=features).SerializeToString()

    tf.compat.v1.disable_eager_execution()
    with beam.Pipeline(runner="FnApiRunner") as pipeline:
        for split in ("train", "eval"):
            _ = (
                pipeline
                | f"{split} list" >> beam.io.ReadFromText(str(folder / f"{split}.csv"))
                | f"{split} examples" >> beam.Map(encode)
                | f"{split} records" >> beam.io.WriteToTFRecord(str(output / split))
            )


def run_loop(folder: Path, output: Path) -> None:
    """Do what the converter does to each image, with neither Beam nor checks around it."""
    from lab_utils.convert.images import to_rgb_jpeg
    from lab_utils.convert.records import encode_example, frame

    ids = {label: n for n, label in enumerate((folder / "labels.txt").read_text().split(), 1)}
    for split in ("train", "eval"):
        with open(output / split, "wb") as file:
            for path, label in read_rows(folder / f"{split}.csv"):
                image = to_rgb_jpeg(Path(path).read_bytes())
                file.write(frame(encode_example(image, path.encode(), ids[label], label)))


def run_copy(folder: Path, output: Path) -> None:
    """Copy the bytes of all images into one file a split."""
    for split in ("train", "eval"):
        with open(output / split, "wb") as file:
            for path, _ in read_rows(folder / f"{split}.csv"):
                file.write(Path(path).read_bytes())


def run_launcher(folder: Path, output: Path) -> None:
    """Do what the launcher does with rows before any image is read, for so many that memory would show."""
    from lab_utils.convert.plan import plan_split, write_rows

    splits = [plan_split(split, str(folder / f"{split}.csv"), 1000) for split in ("train", "eval")]
    for split in splits:
        write_rows(split, str(output))


ROLES = {"naive": run_naive, "loop": run_loop, "copy": run_copy, "launcher": run_launcher}


def command(variant: str, folder: Path, output: Path) -> list[str]:
    if variant in ROLES:
        return [sys.executable, __file__, "--role", variant, str(folder), str(output)]
    return [
        *(sys.executable, "-m", "lab_utils.convert"),
        *("--train_csv", str(folder / "train.csv"), "--eval_csv", str(folder / "eval.csv")),
        *("--labels_file", str(folder / "labels.txt"), "--output_dir", str(output)),
        *("--train_shards", "4"),
        *("--workers", "2" if variant == "two workers" else "1"),
    ]


def measure(variant: str, folder: Path, pycache: Path) -> dict[str, float]:
    """Run one variant in a process of its own; return its wall and CPU seconds and its peak memory in MB.

    The memory is that of the largest process, as the kernel tells it (ru_maxrss).
    """
    output = folder / "out"
    output.mkdir()
    # Bytecode is kept as on a learner's machine; without, every process would compile all it imports.
    environment = os.environ | {"PYTHONPYCACHEPREFIX": str(pycache), "TF_CPP_MIN_LOG_LEVEL": "3"}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    with tempfile.TemporaryFile() as log:
        start = time.perf_counter()
        process = subprocess.Popen(
            command(variant, folder, output), stdout=log, stderr=log, env=environment
        )
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - start
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            log.seek(0)
            sys.exit(f"{variant} failed:\n{log.read().decode()[-3000:]}")
    shutil.rmtree(output)
    return {
        "seconds": seconds,
        "cpu_seconds": usage.ru_utime + usage.ru_stime,
        "peak_mb": usage.ru_maxrss / 1024,
    }


def find_images(photographs: Path, drawn: Path) -> list[tuple[str, str]]:
    """Return (path, label) of the real photographs, or of 100 drawn images where they are absent."""
    found = [(str(path), path.parent.name) for path in sorted(photographs.glob("*/*.jpg"))]
    if found:
        random.Random(0).shuffle(found)
        return found

    import numpy as np
    from PIL import Image

    noise = np.random.default_rng(0)
    for number in range(100):
        coarse = noise.integers(0, 256, (48, 64, 3), dtype=np.uint8)
        path = drawn / f"{number}.jpg"
        Image.fromarray(coarse).resize((500, 375), Image.Resampling.BICUBIC).save(path, quality=92)
        found.append((str(path), ("daisy", "roses")[number % 2]))
    return found


def write_lists(images: list[tuple[str, str]], count: int, folder: Path) -> Path:
    """Write lists of `count` rows, repeating the images; one in nine is for evaluation."""
    folder.mkdir()
    rows = [images[n % len(images)] for n in range(count)]
    for split, chosen in (("eval", rows[::9]), ("train", [r for n, r in enumerate(rows) if n % 9])):
        with open(folder / f"{split}.csv", "w", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows(chosen)
    (folder / "labels.txt").write_text("\n".join(sorted({label for _, label in images})) + "\n")
    return folder


def made_up(rows: int, scratch: Path) -> Path:
    """Write lists that name no file: nine rows of ten to train."""
    folder = scratch / f"made up {rows}"
    folder.mkdir()
    for split, share in (("train", 0.9), ("eval", 0.1)):
        with open(folder / f"{split}.csv", "w") as file:
            for number in range(max(1000, round(rows * share))):
                file.write(f"photographs/of/no/flower/{split}_{number:09d}.jpg,roses\n")
    return folder


def compare(rounds: list[dict], small: int, large: int) -> dict[str, dict[str, float]]:
    """Return the ratios, each taken within a round."""

    def values(variant: str, count: int, key: str = "seconds") -> list[float]:
        return [r[f"{variant}, {count:,}"][key] for r in rounds]

    def beyond_start(variant: str, key: str = "seconds") -> list[float]:
        pairs = zip(values(variant, large, key), values(variant, small, key), strict=True)
        return [(more - less) / (large - small) for more, less in pairs]

    def ratio(top: list[float], bottom: list[float]) -> dict[str, float]:
        found = round_ratios(top, bottom)
        return {"median": statistics.median(found), "min": min(found), "max": max(found)}

    ratios = {
        f"naive job's time / converter's, {small:,} images, start-up included": ratio(
            values("naive", small), values("converter", small)
        ),
        "converter's time / plain loop's, per image beyond start-up": ratio(
            beyond_start("converter"), beyond_start("loop")
        ),
        "converter's CPU time / plain loop's, per image beyond start-up": ratio(
            beyond_start("converter", "cpu_seconds"), beyond_start("loop", "cpu_seconds")
        ),
        "converter's time / plain copy's, per image beyond start-up": ratio(
            beyond_start("converter"), beyond_start("copy")
        ),
        f"one worker's time / two workers', {large:,} images": ratio(
            values("converter", large), values("two workers", large)
        ),
        "one worker's time / two workers', per image beyond start-up": ratio(
            beyond_start("converter"), beyond_start("two workers")
        ),
        f"converter's peak memory, {large:,} images / {small:,}": ratio(
            values("converter", large, "peak_mb"), values("converter", small, "peak_mb")
        ),
        "naive job's peak memory / converter's": ratio(
            values("naive", small, "peak_mb"), values("converter", small, "peak_mb")
        ),
    }
    return ratios


def draw(medians: dict[str, dict[str, float]], title: str, path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(11, 0.42 * len(medians) + 1.6), sharey=True)
    names = [f"{name} images" for name in medians][::-1]
    colours = ["0.65" if name.startswith(tuple(ROLES)) else "C0" for name in names]
    for axis, key, label in (
        (axes[0], "images_per_second", "images/s, start-up included (log scale)"),
        (axes[1], "peak_mb", "peak memory of the largest process (MB)"),
    ):
        values = [median[key] for median in medians.values()][::-1]
        bars = axis.barh(names, values, color=colours)
        axis.bar_label(bars, [f"{value:,.0f}" for value in values], padding=3, fontsize=9)
        axis.set_xlabel(label)
        axis.margins(x=0.18)
        axis.spines[["top", "right"]].set_visible(False)
    axes[0].set_xscale("log")
    figure.suptitle(title, fontsize=11)
    figure.tight_layout()
    figure.savefig(path, dpi=120)


def main() -> None:
    from tqdm import tqdm

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output_dir", type=Path, default=Path("out/benchmarks"))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--images", type=int, default=1000, help="small set, for the naive job")
    parser.add_argument(
        "--large", type=int, default=10_000, help="large set, not for the naive job"
    )
    parser.add_argument("--photographs", type=Path, default=PHOTOGRAPHS)
    flags = parser.parse_args()

    with contextlib.ExitStack() as stack:
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        (scratch / "drawn").mkdir()
        names = ["converter", "two workers", "loop", "copy"]
        variants = [("naive", flags.images)]
        for count in (flags.images, flags.large):
            variants += [(name, count) for name in names]
        images = find_images(flags.photographs, scratch / "drawn")
        folders = {
            count: write_lists(images, count, scratch / str(count))
            for count in (10, flags.images, flags.large)
        }
        for variant in ("naive", *names):  # fills caches
            measure(variant, folders[10], scratch / "pycache")
        launcher = {
            f"{rows:,}": measure("launcher", made_up(rows, scratch), scratch / "pycache")["peak_mb"]
            for rows in (1000, 1_000_000)
        }
        rounds = []
        with tqdm(total=flags.rounds * len(variants), desc="measuring") as bar:
            for _ in range(flags.rounds):
                measured = {}
                for variant, count in variants:
                    found = measure(variant, folders[count], scratch / "pycache")
                    measured[f"{variant}, {count:,}"] = found | {
                        "images_per_second": count / found["seconds"]
                    }
                    bar.update()
                rounds.append(measured)

    ratios = compare(rounds, flags.images, flags.large)
    medians = {
        name: {key: statistics.median(r[name][key] for r in rounds) for key in rounds[0][name]}
        for name in rounds[0]
    }
    source = (
        "real photographs" if images[0][0].startswith(str(flags.photographs)) else "drawn images"
    )
    title = f"Conversion of {source}, {os.cpu_count()} cores, median of {flags.rounds} rounds, measured here"
    print(title)
    for name, median in medians.items():
        print(
            f"  {name} images: {median['seconds']:.2f} s, {median['images_per_second']:,.0f} images/s, "
            f"{median['cpu_seconds']:.2f} s CPU, {median['peak_mb']:.0f} MB"
        )
    for name, ratio in ratios.items():
        print(f"  {name}: {ratio['median']:.2f} [{ratio['min']:.2f} to {ratio['max']:.2f}]")
    for rows, peak in launcher.items():
        print(f"  the launcher's peak memory for {rows} rows: {peak:.0f} MB")
    flags.output_dir.mkdir(parents=True, exist_ok=True)
    report = {
        "title": title,
        "ratios": ratios,
        "medians": medians,
        "rounds": rounds,
        "launcher": launcher,
    }
    (flags.output_dir / "conversion.json").write_text(json.dumps(report, indent=2) + "\n")
    draw(medians, title, flags.output_dir / "conversion.png")
    print(f"  written to {flags.output_dir}")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--role"]:
        role, *paths = sys.argv[2:]
        ROLES[role](*map(Path, paths))
    else:
        main()
