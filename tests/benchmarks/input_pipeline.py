"""How fast the input pipeline feeds a model, beside a naive reader of JPEG files and the bare decoder.

    python tests/benchmarks/input_pipeline.py --data ../shared/flower_photos --output_dir out/benchmarks

Variants: ours, keeping the decoded images (from the second epoch on); ours, decoding (a first epoch, or a set
too large to keep), also from records that were converted with --shorter_side; the pipeline of the old flowers
job, which augments on the host and reads 64 streams; a naive reader (CSV, read, decode, resize, one image
after the other); and the decoder alone on all cores, from memory, which nothing that decodes images whole
can beat. No model takes part: the batches are
thrown away, and tf.data holds more memory for so fast a consumer than for training. Each measurement is a
process of its own, and the variants take turns, so that a busy machine is unfair to none. Read the ratios:
medians of those of the rounds, with the least and the greatest. "Start" is from the making of the pipeline to
its first batch, "buffers" by how much the process grew from before that to its largest.
"""

import argparse
import csv
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from rounds import round_ratios, spread

BATCH = 32
SMALLER = "ours, from smaller"
VARIANTS = ("ours, kept", "ours, decoding", SMALLER, "old job", "naive reader", "decoder alone")


def rows(csv_file: Path) -> list[tuple[str, str]]:
    with csv_file.open(newline="", encoding="utf-8") as file:
        return [(str(csv_file.parent / path), label) for path, label in csv.reader(file)]


def ours(records: Path, size: int, keep: bool):
    """The training pipeline of the flowers job, endless."""
    from lab_utils.flowers import input_pipeline
    from lab_utils.flowers.records import Records

    input_pipeline.CACHE_LIMIT = 2**62 if keep else 0
    train = Records.find(f"{records}/train-*")
    input_fn = input_pipeline.make_input_fn(train, training=True, image_size=size)
    return input_fn({"batch_size": BATCH})


def old_job(records: Path, size: int):
    """The old job's algorithm: 64 streams of 8 MiB; shuffled, decoded, resized, augmented one by one."""
    import tensorflow as tf

    from lab_utils.flowers.input_pipeline import train_size

    side = train_size(size)
    features = {
        "image/encoded": tf.io.FixedLenFeature([], tf.string),
        "image/class/label": tf.io.FixedLenFeature([], tf.int64),
    }

    def read(record):
        example = tf.io.parse_single_example(record, features)
        image = tf.io.decode_jpeg(example["image/encoded"], channels=3)
        image = tf.image.convert_image_dtype(image, tf.float32)
        image = tf.image.resize(image, [side + 10, side + 10])
        image = tf.image.random_crop(image, [side, side, 3])
        image = tf.image.random_flip_left_right(image)
        image = tf.image.random_brightness(image, 63 / 255)
        image = tf.image.random_contrast(image, 0.2, 1.8)
        return image, example["image/class/label"]

    files = tf.data.Dataset.list_files(f"{records}/train-*", seed=0).repeat(64)
    streams = files.interleave(
        lambda path: tf.data.TFRecordDataset(path, buffer_size=8 * 2**20).repeat(),
        cycle_length=64,
        num_parallel_calls=64,
        deterministic=False,
    )
    images = streams.shuffle(1024, seed=0).map(read, num_parallel_calls=os.cpu_count())
    return images.batch(BATCH, drop_remainder=True).prefetch(tf.data.AUTOTUNE)


def naive_reader(train_csv: Path, size: int):
    """What one writes first: no shards, no parallel calls, nothing kept, no prefetching."""
    import tensorflow as tf

    from lab_utils.flowers.input_pipeline import train_size

    side = train_size(size)
    paths, labels = zip(*rows(train_csv), strict=True)
    classes = sorted(set(labels))

    def read(path, label):
        image = tf.io.decode_jpeg(tf.io.read_file(path), channels=3)
        return tf.image.resize(image, [side, side]), label

    images = tf.data.Dataset.from_tensor_slices((list(paths), [classes.index(x) for x in labels]))
    return images.shuffle(1024, seed=0).repeat().map(read).batch(BATCH)


def decoder_alone(train_csv: Path):
    """Decodes the bytes of all images, held in memory, on all cores; keeps one number of each."""
    import tensorflow as tf

    encoded = [Path(path).read_bytes() for path, _ in rows(train_csv)]
    return (
        tf.data.Dataset.from_tensor_slices(encoded)
        .repeat()
        .map(
            lambda one: tf.size(tf.io.decode_jpeg(one, channels=3)),
            num_parallel_calls=os.cpu_count(),
            deterministic=False,
        )
        .batch(BATCH)
    )


def role(variant: str, records: Path, train_csv: Path, size: int, seconds: float) -> None:
    """Takes batches for `seconds` after two epochs, and prints what that cost as JSON."""
    makers: dict[str, Callable] = {
        "ours, kept": lambda: ours(records, size, keep=True),
        "ours, decoding": lambda: ours(records, size, keep=False),
        SMALLER: lambda: ours(records, size, keep=False),
        "old job": lambda: old_job(records, size),
        "naive reader": lambda: naive_reader(train_csv, size),
        "decoder alone": lambda: decoder_alone(train_csv),
    }
    from lab_utils import runtime

    runtime.quiet()
    import resource

    import psutil
    import tensorflow as tf

    tf.constant(0)  # the runtime starts
    before, start = psutil.Process().memory_info().rss, time.perf_counter()
    batches = iter(makers[variant]())
    next(batches)
    first_batch = time.perf_counter() - start
    for _ in range(2 * len(rows(train_csv)) // BATCH):
        next(batches)
    taken, cpu, start = 0, time.process_time(), time.perf_counter()
    while (elapsed := time.perf_counter() - start) < seconds:
        next(batches)
        taken += BATCH
    cpu_ms = (time.process_time() - cpu) / taken * 1e3
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    measured = {
        "images_per_second": taken / elapsed,
        "cpu_ms_per_image": cpu_ms,
        "peak_rss_mib": peak,
        "buffers_mib": peak - before / 2**20,
        "first_batch_s": first_batch,
    }
    print(json.dumps(measured))


def measure(variant: str, records: Path, train_csv: Path, flags: argparse.Namespace) -> dict:
    command = [sys.executable, __file__, "--role", variant, str(records), str(train_csv)]
    command += ["--image_size", str(flags.image_size), "--seconds", str(flags.seconds)]
    ran = subprocess.run(command, capture_output=True, text=True)
    if ran.returncode:
        sys.exit(f"{variant} failed:\n{ran.stderr[-3000:]}")
    return json.loads(ran.stdout.splitlines()[-1])


def ratios(runs: dict[str, list[dict]], variant: str, base: str, figure: str) -> list[float]:
    """variant / base in each round."""
    one, other = ([run[figure] for run in runs[name]] for name in (variant, base))
    return round_ratios(one, other)


def table(runs: dict[str, list[dict]]) -> str:
    lines = [
        f"{'':18}{'images/s':>10}{'CPU ms/image':>14}{'peak MiB':>10}{'buffers':>9}{'start, s':>10}"
        f"{'speed / old job':>24}{'speed / decoder':>24}{'buffers / old job':>24}"
    ]
    for variant, measured in runs.items():
        medians = [statistics.median(run[figure] for run in measured) for figure in measured[0]]
        line = f"{variant:18}{medians[0]:10,.0f}{medians[1]:14.2f}{medians[2]:10,.0f}"
        line += f"{medians[3]:9,.0f}{medians[4]:10.2f}"
        for base, figure in (
            ("old job", "images_per_second"),
            ("decoder alone", "images_per_second"),
            ("old job", "buffers_mib"),
        ):
            line += f"{spread(ratios(runs, variant, base, figure)):>24}"
        lines.append(line)
    return "\n".join(lines)


def picture(runs: dict[str, list[dict]], title: str, path: Path) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 3.2), layout="constrained")
    figure.suptitle(title, fontsize=10)
    panels = {
        "images_per_second": "images/s, log scale, higher is better",
        "cpu_ms_per_image": "process CPU per image, ms",
        "peak_rss_mib": "peak resident memory, MiB",
    }
    for axes, (name, label) in zip(figure.subplots(1, 3, sharey=True), panels.items(), strict=True):
        values = [[run[name] for run in runs[variant]] for variant in runs]
        medians = [statistics.median(value) for value in values]
        ranges = [
            [median - min(value) for median, value in zip(medians, values, strict=True)],
            [max(value) - median for median, value in zip(medians, values, strict=True)],
        ]
        colours = ["#2b7a3d" if variant.startswith("ours") else "#9aa5b4" for variant in runs]
        axes.barh(list(runs), medians, xerr=ranges, color=colours, ecolor="#444444", capsize=3)
        for place, (median, value) in enumerate(zip(medians, values, strict=True)):
            text = f"{median:.2f}" if median < 10 else f"{median:,.0f}"
            axes.text(max(value), place, f"  {text}", va="center", fontsize=8)
        axes.set_xlabel(f"{label}\n(median, range of the rounds)", fontsize=9)
        if name == "images_per_second":  # three orders of magnitude
            axes.set_xscale("log")
            axes.set_xlim(min(map(min, values)) / 4, 12 * max(map(max, values)))
        else:
            axes.set_xlim(0, 1.3 * max(map(max, values)))
        axes.spines[["top", "right"]].set_visible(False)
    axes.invert_yaxis()
    figure.savefig(path, dpi=150)


def main() -> None:
    """Measures, prints, writes."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", help="folder of photographs in class sub-folders (bundled)")
    parser.add_argument("--image_size", type=int, default=128)
    parser.add_argument("--seconds", type=float, default=5, help="a measurement (default 5)")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--output_dir", type=Path, default=Path("out/benchmarks"))
    parser.add_argument("--role", nargs=3, help=argparse.SUPPRESS)
    flags = parser.parse_args()
    if flags.role:
        variant, records, train_csv = flags.role
        role(variant, Path(records), Path(train_csv), flags.image_size, flags.seconds)
        return

    runs: dict[str, list[dict]] = {variant: [] for variant in VARIANTS}
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        prepare = (
            "import sys; from lab_utils import convert, datasets\n"
            "data, csv, records, smaller, side = sys.argv[1:]\n"
            "photos = datasets.from_folder(data, csv) if data else datasets.bundled()\n"
            "inputs = photos.train_csv, photos.eval_csv, photos.labels_file\n"
            "convert.convert(*inputs, records)\n"
            "convert.convert(*inputs, smaller, shorter_side=int(side))\n"
            "print(photos.train_csv)"
        )  # in a process of its own: what it needs must not count towards the variants' memory
        ran = subprocess.run(
            [
                *(sys.executable, "-c", prepare, flags.data or "", folder / "csv"),
                *(folder / "records", folder / "smaller", str(flags.image_size * 5 // 4)),
            ],
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
        train_csv = Path(ran.stdout.splitlines()[-1])
        images = len(rows(train_csv))
        for number in range(flags.rounds):
            for variant in VARIANTS:
                records = folder / ("smaller" if variant == SMALLER else "records")
                run = measure(variant, records, train_csv, flags)
                runs[variant].append(run)
                print(f"round {number + 1}, {variant}: {run['images_per_second']:,.0f} images/s")
    print(table(runs))

    flags.output_dir.mkdir(parents=True, exist_ok=True)
    machine = f"{os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}"
    data = f"{images} images of {Path(flags.data).name if flags.data else 'the bundled set'}"
    content = {
        "data": data,
        "image_size": flags.image_size,
        "batch": BATCH,
        "machine": machine,
        "runs": runs,
        "kind": "measured here",
    }
    written = flags.output_dir / "input_pipeline.json"
    written.write_text(json.dumps(content, indent=2) + "\n")
    title = f"Feeding a model: {data}, {flags.image_size} pixels (measured here: {machine})"
    picture(runs, title, written.with_suffix(".png"))
    print(f"written: {written}, {written.with_suffix('.png')}")


if __name__ == "__main__":
    main()
