"""Accuracy for the same wall time: the flowers model, and the one that it descends from.

    python -m lab_utils.convert ... --output_dir RECORDS
    python tests/benchmarks/flowers_quality.py --records RECORDS --output_dir out/benchmarks

The old model is that of GoogleCloudPlatform/training-data-analyst, 08_image/flowersmodeltpu, written anew on
today's API: 299 x 299 float32 pixels, two convolutions, one dense layer of 33 million weights, Adam with its
own rate of 0.01, and with 0.001 so that it is not beaten for that alone; its augmentation in tf.data. Unlike
the original it does not augment in evaluation, and evaluates every image.

Both train with TPUEstimator, oneDNN and batches of 32 for `--seconds`, in `--stretches` with an evaluation
after each. The seconds run from the start of a stretch's first step to the end of its last: imports, graphs,
evaluations and checkpoints are left out, as those of the old model (400 MB) would weigh on it. The schedule
of ours wants the number of steps beforehand: a trial of 15 seconds, thrown away, estimates it. Trial and
trainings are processes of their own, one after the other, since two at once would share the cores: use an
idle machine.

The first step is counted from the start of the process; beside it stands what `import tensorflow` alone
takes, which no job of either kind can go below. For speed, memory and start alone, short runs in many rounds:

    python tests/benchmarks/flowers_quality.py --records RECORDS --seconds 15 --stretches 1 --rounds 5
"""

import argparse
import itertools
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from rounds import round_ratios, spread

from lab_utils.flowers.__main__ import CONFIG

BATCH = 32
TRIAL, TRIAL_ROLE = 15, "trial"  # seconds
IMPORT = "import tensorflow"
STARTED = "FLOWERS_QUALITY_STARTED"  # variable of the environment: when a process was started
FORMS = {"accuracy": "{:.1%}", "s": "{:,.1f}"}  # by the last word of a figure's name
CONTENDERS = {"ours": None, "old, rate 0.001": 0.001, "old, rate 0.01": 0.01}
COLOURS = {"ours": "#2b7a3d", "old, rate 0.001": "#4c6a92", "old, rate 0.01": "#c77f3a"}


@dataclass
class Contender:
    """How to train and evaluate one model; `train_from` gives the input_fn from a step on."""

    estimator: object
    train_from: Callable
    eval_input_fn: Callable
    eval_steps: int | None


def old_model(classes: int, rate: float) -> Callable:
    """The old model_fn: float32 images [B, 299, 299, 3] in [-1, 1], int32 labels [B]."""
    from lab_utils import estimator  # noqa: F401

    import tensorflow as tf  # isort: skip

    v1 = tf.compat.v1

    def model_fn(features, labels, mode, params):
        training = mode == v1.estimator.ModeKeys.TRAIN
        x = v1.layers.conv2d(features, 10, 5, padding="same", activation=tf.nn.relu)
        x = v1.layers.max_pooling2d(x, 2, 2)
        x = v1.layers.conv2d(x, 20, 5, padding="same", activation=tf.nn.relu)
        x = v1.layers.flatten(v1.layers.max_pooling2d(x, 2, 2))
        x = v1.layers.dense(x, 300, activation=tf.nn.relu)
        x = v1.layers.dropout(x, 0.25, training=training)
        logits = v1.layers.dense(x, classes)
        loss = v1.losses.sparse_softmax_cross_entropy(labels, logits)
        spec = v1.estimator.tpu.TPUEstimatorSpec
        if training:
            optimizer = v1.train.AdamOptimizer(rate)
            if params["use_tpu"]:
                optimizer = v1.tpu.CrossShardOptimizer(optimizer)
            train_op = optimizer.minimize(loss, global_step=v1.train.get_global_step())
            return spec(mode, loss=loss, train_op=train_op)

        def metric_fn(labels, logits):
            return {"accuracy": v1.metrics.accuracy(labels, tf.argmax(logits, 1))}

        return spec(mode, loss=loss, eval_metrics=(metric_fn, [labels, logits]))

    return model_fn


def old(records: Path, model_dir: str, rate: float) -> Contender:
    """The old model, input pipeline and optimizer."""
    from lab_utils import estimator  # noqa: F401

    import tensorflow as tf  # isort: skip

    from lab_utils.convert import read_manifest

    v1 = tf.compat.v1
    size, classes = 299, len(read_manifest(str(records)).labels)

    def parse(record, training):
        example = tf.io.parse_single_example(
            record,
            {
                "image/encoded": tf.io.FixedLenFeature([], tf.string),
                "image/class/label": tf.io.FixedLenFeature([], tf.int64),
            },
        )
        image = tf.io.decode_jpeg(example["image/encoded"], channels=3)
        image = tf.image.convert_image_dtype(image, tf.float32)
        if training:
            image = tf.image.resize(image, [size + 10, size + 10])
            image = tf.image.random_crop(image, [size, size, 3])
            image = tf.image.random_flip_left_right(image)
            image = tf.image.random_brightness(image, 63 / 255)
            image = tf.image.random_contrast(image, 0.2, 1.8)
        else:
            image = tf.image.resize(image, [size, size])
        return 2 * image - 1, tf.cast(example["image/class/label"], tf.int32) - 1

    def input_fn(split, training):
        def read(params):
            files = tf.data.Dataset.list_files(f"{records}/{split}-*", shuffle=training)
            data = (files.repeat() if training else files).interleave(
                lambda file: tf.data.TFRecordDataset(file, buffer_size=8 * 2**20),
                cycle_length=64 if training else 1,
                num_parallel_calls=tf.data.AUTOTUNE,
                deterministic=not training,
            )
            data = data.shuffle(1024) if training else data
            data = data.map(
                lambda record: parse(record, training), num_parallel_calls=tf.data.AUTOTUNE
            )
            return data.batch(params["batch_size"], drop_remainder=training).prefetch(
                tf.data.AUTOTUNE
            )

        return read

    built = v1.estimator.tpu.TPUEstimator(
        old_model(classes, rate),
        config=run_config(model_dir),
        use_tpu=False,
        train_batch_size=BATCH,
        eval_batch_size=BATCH,
    )
    return Contender(built, lambda step: input_fn("train", True), input_fn("eval", False), None)


def ours(records: Path, model_dir: str, steps: int) -> Contender:
    """The flowers model as `make flowers` trains it, its schedule fitted to `steps`."""
    from lab_utils.flowers import settings, task

    chosen = settings.parse(
        [
            f"--config={CONFIG}",
            f"--train_data_path={records}/train-*",
            f"--eval_data_path={records}/eval-*",
            f"--output_dir={model_dir}",
            f"--train_batch_size={BATCH}",
            f"--train_steps={steps}",
            f"--eval_steps_between={10**9}",  # checkpoints at the ends of stretches alone
        ]
    )
    data = task.inputs(chosen)
    estimator = task.make_estimator(chosen, data.labels)
    return Contender(estimator, data.train_from, data.evaluate, data.eval_steps)


def run_config(model_dir: str):
    import tensorflow as tf

    return tf.compat.v1.estimator.tpu.RunConfig(
        model_dir=model_dir,
        save_checkpoints_steps=10**9,
        save_summary_steps=10**9,
        log_step_count_steps=10**9,
        keep_checkpoint_max=1,
    )


def stop_after(seconds: float):
    """A hook that ends training `seconds` after the first step began; `times` holds when each was done."""
    import tensorflow as tf

    class StopAfter(tf.compat.v1.train.SessionRunHook):
        def __init__(self):
            self.start = None
            self.times = []
            self.since_process_began = None  # s, at the end of the first step

        def before_run(self, run_context):
            self.start = self.start or time.monotonic()

        def after_run(self, run_context, run_values):
            self.times.append(time.monotonic() - self.start)
            self.since_process_began = self.since_process_began or process_age()
            if self.times[-1] > seconds:
                run_context.request_stop()

    return StopAfter()


def process_age() -> float:
    """Seconds since `run_role` started this process."""
    return time.time() - float(os.environ[STARTED])


def steps_in(records: Path, seconds: float, stretches: int) -> int:
    """How many steps ours will take in `seconds`, by a short trial; somewhat too few rather than too many."""
    with tempfile.TemporaryDirectory() as folder:
        trial = ours(records, folder, steps=10**6)
        hook = stop_after(TRIAL)
        trial.estimator.train(trial.train_from(0), hooks=[hook])
    step = statistics.median(b - a for a, b in itertools.pairwise(hook.times))
    return max(10, int(0.9 * (seconds - stretches * hook.times[0]) / step))


def role(name: str, flags: argparse.Namespace) -> None:
    """Trains and evaluates one contender; prints the points of its curve as JSON. Or the trial: its steps."""
    from lab_utils import runtime

    runtime.quiet()
    import resource

    if name == TRIAL_ROLE:
        print(steps_in(flags.records, flags.seconds, flags.stretches))
        return
    rate, steps, first_step = CONTENDERS[name], flags.steps, None
    with tempfile.TemporaryDirectory() as folder:
        contender = old(flags.records, folder, rate) if rate else ours(flags.records, folder, steps)
        spent, step, points = 0.0, 0, []
        while spent < flags.seconds and step != steps:
            hook = stop_after(flags.seconds * (len(points) + 1) / flags.stretches - spent)
            contender.estimator.train(contender.train_from(step), hooks=[hook], max_steps=steps)
            spent += hook.times[-1]
            first_step = first_step or hook.since_process_began
            metrics = contender.estimator.evaluate(
                contender.eval_input_fn, steps=contender.eval_steps
            )
            step = int(metrics["global_step"])
            points.append({"seconds": spent, "step": step, "accuracy": float(metrics["accuracy"])})
            print(
                f"{name}: {spent:.0f} s, step {step}, accuracy {metrics['accuracy']:.3f}",
                file=sys.stderr,
            )
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"points": points, "peak_rss_mib": peak, "first_step_s": first_step}))


def run_role(name: str, flags: argparse.Namespace, *more: str) -> str:
    """Carries out a role in a process of its own; returns the last line that it prints."""
    command = [sys.executable, __file__, "--role", name, "--records", flags.records]
    command += ["--seconds", str(flags.seconds), "--stretches", str(flags.stretches), *more]
    # oneDNN as our job has it: the old one gains more.
    environment = os.environ | {"TF_ENABLE_ONEDNN_OPTS": "1", STARTED: str(time.time())}
    ran = subprocess.run(command, stdout=subprocess.PIPE, text=True, env=environment)
    if ran.returncode:
        sys.exit(f"{name} failed")
    return ran.stdout.splitlines()[-1]


def measure(name: str, flags: argparse.Namespace) -> dict:
    more = ("--steps", run_role(TRIAL_ROLE, flags)) if name == "ours" else ()
    return json.loads(run_role(name, flags, *more))


def import_seconds() -> float:
    """How long a process takes that imports TensorFlow and does nothing else."""
    start = time.monotonic()
    subprocess.run([sys.executable, "-c", IMPORT], check=True, stderr=subprocess.DEVNULL)
    return time.monotonic() - start


def figures(runs: list[dict]) -> dict[str, list[float]]:
    """By the name of the figure, its value in each round."""
    last = [run["points"][-1] for run in runs]
    return {
        "last accuracy": [point["accuracy"] for point in last],
        "best accuracy": [max(p["accuracy"] for p in run["points"]) for run in runs],
        "steps": [point["step"] for point in last],
        "images/s": [point["step"] * BATCH / point["seconds"] for point in last],
        "peak MiB": [run["peak_rss_mib"] for run in runs],
        "first step, s": [run["first_step_s"] for run in runs],
    }


def ratios(runs: dict[str, list[dict]]) -> str:
    """Ours beside each old one, each ratio taken within a round."""
    ours, lines = figures(runs["ours"]), []
    for contender in list(CONTENDERS)[1:]:
        theirs = figures(runs[contender])
        told = [
            f"{name} {spread(round_ratios(ours[name], theirs[name]))}"
            for name in ("images/s", "peak MiB", "first step, s")
        ]
        lines.append(f"ours / {contender}: {', '.join(told)}")
    return "\n".join(lines)


def table(runs: dict[str, list[dict]]) -> str:
    """Medians of the rounds, with the least and the greatest where there are several."""
    names = list(figures(next(iter(runs.values()))))
    lines = [f"{'':18}" + "".join(f"{name:>26}" for name in names)]
    for contender, measured in runs.items():
        line = f"{contender:18}"
        for name, values in figures(measured).items():
            unit = name.split()[-1]
            line += f"{spread(values, FORMS.get(unit, '{:,.0f}')):>26}"
        lines.append(line)
    return "\n".join(lines)


def picture(runs: dict[str, list[dict]], chance: float, title: str, path: Path) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 4.2), layout="constrained")
    axes = figure.add_subplot()
    for contender, measured in runs.items():
        for number, run in enumerate(measured):
            peak = statistics.median(figures(measured)["peak MiB"])
            axes.plot(
                [point["seconds"] for point in run["points"]],
                [100 * point["accuracy"] for point in run["points"]],
                "o-",
                color=COLOURS[contender],
                label=None if number else f"{contender} (at most {peak:,.0f} MiB)",
            )
    axes.axhline(100 * chance, color="#888888", linestyle=":", label="a guess")
    axes.set_xlabel("wall time of training, s")
    axes.set_ylabel("accuracy on held-out images, %")
    axes.set_xlim(left=0)
    axes.set_ylim(0, 100)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, loc="upper left")
    axes.set_title(title, fontsize=9)
    figure.savefig(path, dpi=150)


def main() -> None:
    """Measures, prints, writes."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--records", type=Path, required=True, help="folder that lab_utils.convert wrote"
    )
    parser.add_argument(
        "--seconds", type=float, default=240, help="of training for each (default 240)"
    )
    parser.add_argument("--stretches", type=int, default=5, help="evaluations in it (default 5)")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--output_dir", type=Path, default=Path("out/benchmarks"))
    parser.add_argument("--role", choices=[*CONTENDERS, TRIAL_ROLE], help=argparse.SUPPRESS)
    parser.add_argument("--steps", type=int, help=argparse.SUPPRESS)
    flags = parser.parse_args()
    if flags.role:
        role(flags.role, flags)
        return

    manifest = json.loads((flags.records / "manifest.json").read_text())
    runs: dict[str, list[dict]] = {name: [] for name in CONTENDERS}
    imports = []
    for _ in range(flags.rounds):
        imports.append(import_seconds())
        for name in CONTENDERS:
            runs[name].append(measure(name, flags))
    print(table(runs))
    print(ratios(runs))
    print(f"{IMPORT} alone: {spread(imports, '{:.1f}')} s")

    flags.output_dir.mkdir(parents=True, exist_ok=True)
    machine = f"{os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}"
    sizes = {name: split["examples"] for name, split in manifest["splits"].items()}
    content = {
        "images": sizes,
        "classes": manifest["labels"],
        "seconds": flags.seconds,
        "batch": BATCH,
        "machine": machine,
        "runs": runs,
        "import_s": imports,
        "kind": "measured here",
    }
    written = flags.output_dir / "flowers_quality.json"
    written.write_text(json.dumps(content, indent=2) + "\n")
    title = (
        f"{sizes['train']} images to train on, {sizes['eval']} held out (measured here: {machine})"
    )
    picture(runs, 1 / len(manifest["labels"]), title, written.with_suffix(".png"))
    print(f"written: {written}, {written.with_suffix('.png')}")


if __name__ == "__main__":
    main()
