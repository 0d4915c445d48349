"""Train, evaluate and export the flowers model: `python -m lab_utils.flowers.task --help`."""

import json
import math
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tqdm import tqdm

from lab_utils import runtime
from lab_utils.common import command, files, scratch
from lab_utils.common.figures import counted
from lab_utils.convert import ConversionError
from lab_utils.datasets import DatasetError
from lab_utils.flowers.records import Records, plain
from lab_utils.flowers.settings import Settings, parse

# What to do, and the words of TensorFlow's errors.
_REMEDIES = {
    "convert again": ("corrupted record", "truncated record", "JPEG", "Example", "Feature:"),
    "the output folder must be writable and have enough room": (
        *("No space", "quota exceeded", "Read-only", "Permission denied", "File too large"),
        "No such file",
    ),
    "move away what is at this path": ("is not a directory", "Not a directory", "Is a directory"),
    "give a local path, or one in gs://": ("File system scheme",),
}

# Bytes of address space; the smallest model trained with 3e9 here, and with 2e9 did not.
_ADDRESSES = 4e9


@dataclass(frozen=True)
class Inputs:
    """What a run reads: the class names, and an input_fn of each split.

    Attributes:
        train_from: the training input_fn from a global step on. Each call of TPUEstimator.train starts the
            input again: with one seed for all, every stretch of steps would see the same first images, and
            never the rest of a large set.
        evaluate: the evaluation input_fn, for `eval_steps` steps.
    """

    labels: list[str]
    train_from: Callable[[int], Callable]
    evaluate: Callable
    eval_steps: int


def make_estimator(settings: Settings, labels: list[str], model_fn: Callable | None = None) -> Any:
    """Builds the TPUEstimator: on a CPU or GPU as it stands, on a TPU with `use_tpu`.

    Args:
        settings: of the run.
        labels: the class names.
        model_fn: another model than that of `lab_utils.flowers.model`, with the same params.

    Returns:
        tf.compat.v1.estimator.tpu.TPUEstimator

    Raises:
        RuntimeError: the TPU cannot be reached.
    """
    from lab_utils.estimator import tf, tpu
    from lab_utils.flowers import model

    cluster = None
    if settings.use_tpu:
        try:
            cluster = tf.distribute.cluster_resolver.TPUClusterResolver(
                settings.tpu, zone=settings.tpu_zone or None, project=settings.project or None
            )
            runtime.answers(cluster.master())
        except Exception as error:  # each way to ask for a TPU by its name has errors of its own
            raise RuntimeError(
                f"--tpu {settings.tpu} cannot be reached ({error}): give its name with --tpu_zone and "
                "--project, or 'local' on a TPU VM"
            ) from error
    every = settings.eval_steps_between
    config = tpu.RunConfig(
        cluster=cluster,
        model_dir=settings.output_dir,
        tf_random_seed=settings.seed,
        save_checkpoints_steps=every,
        save_summary_steps=every,
        log_step_count_steps=every,
        tpu_config=tpu.TPUConfig(
            iterations_per_loop=min(settings.iterations_per_loop, every),
            # One input_fn a host, which gives each core whole batches: none is split on the way.
            per_host_input_for_training=tpu.InputPipelineConfig.PER_HOST_V2,
        ),
    )
    names = ("image_size", "train_steps", "learning_rate", "use_bfloat16", "seed")
    params = {name: getattr(settings, name) for name in names}
    return tpu.TPUEstimator(
        model_fn or model.model_fn,
        config=config,
        use_tpu=settings.use_tpu,
        train_batch_size=settings.train_batch_size,
        eval_batch_size=settings.eval_batch_size,
        predict_batch_size=settings.eval_batch_size,
        params=params | {"labels": labels, "model_dir": settings.output_dir},
        export_to_tpu=False,  # serving one image at a time is work for a CPU
    )


def inputs(settings: Settings) -> Inputs:
    """Finds the records of a run.

    Raises:
        ConversionError: a split is not a finished conversion, or the two have not the same classes.
    """
    from lab_utils.flowers.input_pipeline import make_input_fn

    train, evaluation = map(Records.find, (settings.train_data_path, settings.eval_data_path))
    if train.labels != evaluation.labels:
        raise ConversionError(
            "the records for training and for evaluation have different classes: "
            f"{', '.join(train.labels)} and {', '.join(evaluation.labels)}"
        )

    def train_from(step: int) -> Callable:
        return make_input_fn(
            train, training=True, image_size=settings.image_size, seed=settings.seed + step
        )

    evaluate = make_input_fn(evaluation, training=False, image_size=settings.image_size)
    eval_steps = -(-evaluation.examples // settings.eval_batch_size)
    return Inputs(train.labels, train_from, evaluate, eval_steps)


def run(settings: Settings) -> dict[str, Any]:
    """Trains to `train_steps`, evaluating at each checkpoint, and exports a SavedModel.

    Goes on from the newest whole checkpoint in `output_dir`; a run that is finished exports nothing new.
    Writes there, beside what the Estimator writes: `labels.txt` before the first step, `history.jsonl`, an
    evaluation a line, and at the end `result.json`. A folder on this machine is locked meanwhile.

    Returns:
        The contents of result.json: the last evaluation, "labels", "image_size", "saved_model".

    Raises:
        ConversionError: the data is not a finished conversion.
        RuntimeError: no checkpoint in `output_dir` can be read, the folder is of other classes, or the loss
            is not a number any more.
        files.InUseError: another process trains in `output_dir`.
        OSError: `output_dir` cannot be written.
    """
    from lab_utils.estimator import v1

    data = inputs(settings)
    if not files.is_remote(settings.output_dir):
        os.makedirs(settings.output_dir, exist_ok=True)
    with files.locked(os.path.join(settings.output_dir, ".lock")):
        try:
            return _run(settings, data)
        except v1.train.NanLossDuringTrainingError:
            raise RuntimeError(
                "the loss has become NaN: train with a --learning_rate below "
                f"{settings.learning_rate:g}. With the same --output_dir, the job resumes from its "
                "last checkpoint with finite weights"
            ) from None


def _run(settings: Settings, data: Inputs) -> dict[str, Any]:
    from lab_utils.estimator import tf, v1
    from lab_utils.flowers import checkpoints, progress
    from lab_utils.flowers.input_pipeline import make_serving_input_fn

    folder, between = settings.output_dir, settings.eval_steps_between
    labels_file = checkpoints.keep_labels(folder, data.labels)
    estimator = make_estimator(settings, data.labels)
    step = checkpoints.resume_point(folder)
    # Evaluations of checkpoints that are lost do not count: those steps are taken again.
    history = [record for record in checkpoints.read_history(folder) if record["step"] <= step]
    if step:
        print(f"Going on from step {step} of {settings.train_steps}.")
    with progress.bar(step, settings.train_steps) as hook:
        while True:
            if step and step not in {record["step"] for record in history}:
                record = _evaluate(estimator, data.evaluate, data.eval_steps)
                if not math.isfinite(record["cross_entropy"]):
                    raise v1.train.NanLossDuringTrainingError
                history.append(record)
                lines = "".join(json.dumps(record) + "\n" for record in history)
                files.write(os.path.join(folder, "history.jsonl"), lines)
                tqdm.write(
                    f"step {step}: accuracy {record['accuracy']:.3f} on {counted(record['images'], 'image')}"
                )
            if step >= settings.train_steps:
                break
            start = step
            step = min(start - start % between + between, settings.train_steps)
            estimator.train(data.train_from(start), hooks=[hook], max_steps=step)

    result_path = os.path.join(folder, "result.json")
    last = max(history, key=lambda record: record["step"])
    result = last | {"labels": data.labels, "image_size": settings.image_size}
    earlier = checkpoints.read_result(result_path)
    saved_model = str(earlier.get("saved_model", ""))
    same = earlier == result | {"saved_model": saved_model}
    if same and tf.io.gfile.exists(os.path.join(saved_model, "saved_model.pb")):
        return earlier
    exports = os.path.join(folder, "export")
    for unfinished in tf.io.gfile.glob(os.path.join(exports, "temp-*")):  # of a kill, a full disk
        tf.io.gfile.rmtree(unfinished)
    saved_model = estimator.export_saved_model(
        exports,
        make_serving_input_fn(settings.image_size),
        assets_extra={"labels.txt": labels_file},
    )
    result["saved_model"] = saved_model.decode()
    files.write(result_path, json.dumps(result, indent=2) + "\n")
    return result


def _evaluate(estimator: Any, input_fn: Callable, steps: int) -> dict[str, Any]:
    """One evaluation; every image counts once. `confusion` is a list of rows, labels down."""
    metrics = estimator.evaluate(input_fn, steps=steps)
    return {
        "step": int(metrics["global_step"]),
        "accuracy": round(float(metrics["accuracy"]), 6),
        "cross_entropy": round(float(metrics["cross_entropy"]), 6),
        "images": int(metrics["confusion"].sum()),
        "confusion": metrics["confusion"].astype(int).tolist(),
    }


def problem(error: Exception, output_dir: str) -> str:
    """What ended a run, in a sentence; "" for an error that should show where it was raised."""
    from lab_utils.estimator import tf

    if isinstance(error, tf.errors.OpError):
        for line in str(error).splitlines():
            for remedy, words in _REMEDIES.items():
                if any(word in line for word in words):
                    return f"{plain(line)}: {remedy}"
    if isinstance(error, OSError) and error.filename:  # others command.py explains
        reason = f"{error.strerror or error}: {error.filename}"
        return f"{reason}. {output_dir} must be a writable folder with enough room"
    return str(error) if isinstance(error, RuntimeError | DatasetError) else ""


def prepare() -> None:
    """What a process needs before TensorFlow is imported in it; SystemExit where it has too little memory."""
    import resource  # not on Windows

    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    if 0 <= limit < _ADDRESSES:  # TensorFlow would wait for ever, or abort in a thread of its own
        sys.exit(
            f"{limit / 1e9:.1f} GB of memory are allowed here, but TensorFlow needs "
            f"{_ADDRESSES / 1e9:.0f}: raise the limit with `ulimit -v`"
        )
    runtime.quiet()
    scratch.use_process_folder()  # what AutoGraph writes goes, too, where this is killed
    # TensorFlow turns oneDNN on by itself only where the CPU has AVX-512; with AVX2 alone, training takes a
    # fifth less time and memory with it (measured).
    os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "1")


def show(result: dict[str, Any]) -> None:
    """Prints what a run came to."""
    accuracy, images = result["accuracy"], result["images"]
    print(f"Accuracy {accuracy:.3f} on {images} held-out images (measured here).")
    print(f"SavedModel: {result['saved_model']}")


def status_of(name: str, work: Callable[[], object], output_dir: str) -> int:
    """Does a command's work; returns its exit status, and says in a sentence what ended it early."""
    try:
        work()
        return 0
    except (KeyboardInterrupt, Exception) as error:
        if "KeyboardInterrupt" in repr(error):  # or an error of pybind in its place
            print(f"\n{name}: interrupted; the same command goes on where it was.", file=sys.stderr)
            return 130
        if not (message := problem(error, output_dir)):
            raise
        print(f"{name}: {message}", file=sys.stderr)
        return 1


def main(arguments: list[str] | None = None) -> int:
    """Runs the command line; returns its exit status."""
    settings = parse(arguments)
    prepare()
    return status_of("task", lambda: show(run(settings)), settings.output_dir)


if __name__ == "__main__":
    command.run(main)
