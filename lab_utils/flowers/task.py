"""Train, evaluate and export the flowers model: `python -m lab_utils.flowers.task --help`."""

import errno
import json
import math
import os
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass

from lab_utils import runtime
from lab_utils.common import command, files, scratch
from lab_utils.common.figures import counted
from lab_utils.convert import ManifestError
from lab_utils.flowers import run_folder
from lab_utils.flowers.records import Records, naming_bad
from lab_utils.flowers.run_folder import difference, keep_labels, read_history, write_history
from lab_utils.flowers.settings import Settings, parse

_STORAGE = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EFBIG, errno.ENOENT)


@dataclass(frozen=True)
class Inputs:
    """What a run reads: both splits, and an input_fn of each.

    Attributes:
        train_from: the training input_fn from a global step on. Each call of TPUEstimator.train starts the
            input again: with one seed for all, every stretch of steps would see the same first images, and
            never the rest of a large set.
        evaluate: the evaluation input_fn, for `eval_steps` steps.
    """

    train: Records
    evaluation: Records
    train_from: Callable[[int], Callable]
    evaluate: Callable
    eval_steps: int

    @property
    def labels(self) -> list[str]:
        """The class names."""
        return self.train.labels


def make_estimator(settings: Settings, labels: list[str]):
    """Builds the TPUEstimator: on a CPU or GPU as it stands, on a TPU with `use_tpu`.

    Returns:
        tf.compat.v1.estimator.tpu.TPUEstimator

    Raises:
        RuntimeError: the TPU cannot be reached.
    """
    from lab_utils.estimator import tf, tpu
    from lab_utils.flowers.model import model_fn

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
    config = tpu.RunConfig(
        cluster=cluster,
        model_dir=settings.output_dir,
        tf_random_seed=settings.seed,
        save_checkpoints_steps=settings.eval_steps_between,
        save_summary_steps=settings.eval_steps_between,
        log_step_count_steps=settings.eval_steps_between,
        tpu_config=tpu.TPUConfig(
            iterations_per_loop=min(settings.iterations_per_loop, settings.eval_steps_between),
            # One input_fn a host, which gives each core whole batches: none is split on the way.
            per_host_input_for_training=tpu.InputPipelineConfig.PER_HOST_V2,
        ),
    )
    params = {
        "labels": labels,
        "image_size": settings.image_size,
        "train_steps": settings.train_steps,
        "learning_rate": settings.learning_rate,
        "model_dir": settings.output_dir,
        "use_bfloat16": settings.use_bfloat16,
        "seed": settings.seed,
    }
    return tpu.TPUEstimator(
        model_fn,
        config=config,
        use_tpu=settings.use_tpu,
        train_batch_size=settings.train_batch_size,
        eval_batch_size=settings.eval_batch_size,
        predict_batch_size=settings.eval_batch_size,
        params=params,
        export_to_tpu=False,  # serving one image at a time is work for a CPU
    )


def inputs(settings: Settings) -> Inputs:
    """Finds the records of a run.

    Raises:
        ManifestError: a split is not a finished conversion, or the two have not the same classes.
    """
    from lab_utils.flowers.input_pipeline import make_input_fn

    train, evaluation = map(Records.find, (settings.train_data_path, settings.eval_data_path))
    for records in (train, evaluation):
        if records.strangers:
            names = records.strangers[:3] + ["..."] * (len(records.strangers) > 3)
            print(
                f"Not read, since no manifest lists them: {', '.join(names)}, beside {records.files[0]}."
            )
    if shared := set(train.files) & set(evaluation.files):
        print(
            f"--train_data_path and --eval_data_path share {counted(len(shared), 'file')}, such as "
            f"{min(shared)}: the evaluation says less about new images."
        )
    if differs := difference(train.labels, evaluation.labels):
        raise ManifestError(
            f"the training records and those of the evaluation have different classes: {differs}"
        )

    def train_from(step: int) -> Callable:
        return make_input_fn(
            train, training=True, image_size=settings.image_size, seed=settings.seed + step
        )

    evaluate = make_input_fn(evaluation, training=False, image_size=settings.image_size)
    eval_steps = -(-evaluation.examples // settings.eval_batch_size)
    return Inputs(train, evaluation, train_from, evaluate, eval_steps)


def _evaluate(estimator, input_fn, steps: int) -> dict:
    """One evaluation; every image counts once. `confusion` is a list of rows, labels down."""
    metrics = estimator.evaluate(input_fn, steps=steps)
    return {
        "step": int(metrics["global_step"]),
        "accuracy": round(float(metrics["accuracy"]), 6),
        "cross_entropy": round(float(metrics["cross_entropy"]), 6),
        "images": int(metrics["confusion"].sum()),
        "confusion": metrics["confusion"].astype(int).tolist(),
    }


def run(settings: Settings) -> dict:
    """Trains to `train_steps`, evaluating at each checkpoint, and exports a SavedModel.

    Goes on from the newest whole checkpoint in `output_dir`. Writes there, beside what the Estimator
    writes: `labels.txt` before the first step, `history.jsonl`, an evaluation a line, and at the end
    `result.json`. A folder on this machine is locked meanwhile.

    Returns:
        The contents of result.json: the last evaluation, "labels", "saved_model".

    Raises:
        ManifestError: the data is not a finished conversion.
        RuntimeError: no checkpoint in `output_dir` can be read, the folder is of other classes, a record
            cannot be decoded, or the loss is not a number any more.
        files.InUseError: another process trains in `output_dir`.
        OSError: `output_dir` cannot be written.
    """
    data = inputs(settings)
    if not files.is_remote(settings.output_dir):
        os.makedirs(settings.output_dir, exist_ok=True)
    with (
        files.locked(os.path.join(settings.output_dir, ".lock")),
        naming_bad(data.train, data.evaluation),
    ):
        run_folder.remove_unfinished(settings.output_dir)
        return _run(settings, data)


def _run(settings: Settings, data: Inputs) -> dict:
    from lab_utils.estimator import v1
    from lab_utils.flowers import checkpoints, progress, serving

    labels_file = keep_labels(settings.output_dir, data.labels)
    estimator = make_estimator(settings, data.labels)
    history_path = os.path.join(settings.output_dir, "history.jsonl")

    step = checkpoints.resume_point(settings.output_dir)
    # Evaluations of checkpoints that are lost do not count: those steps are taken again.
    history = [
        each for each in read_history(history_path, len(data.labels)) if each["step"] <= step
    ]
    if step:
        print(f"Going on from step {step} of {settings.train_steps}.")
    with progress.bar(step, settings.train_steps, settings.train_batch_size) as hook:
        while True:
            if step and step not in {record["step"] for record in history}:
                record = _evaluate(estimator, data.evaluate, data.eval_steps)
                if not math.isfinite(record["cross_entropy"]):
                    raise RuntimeError(_diverged(settings))
                history.append(record)
                write_history(history_path, history)
                hook.say(
                    f"step {step}: accuracy {record['accuracy']:.3f} on {counted(record['images'], 'image')}"
                )
            if step >= settings.train_steps:
                break
            start, between = step, settings.eval_steps_between
            step = min(start - start % between + between, settings.train_steps)
            try:
                estimator.train(data.train_from(start), hooks=[hook], max_steps=step)
            except v1.train.NanLossDuringTrainingError:
                raise RuntimeError(_diverged(settings)) from None

    saved_model = estimator.export_saved_model(
        os.path.join(settings.output_dir, "export"),
        serving.make_serving_input_fn(settings.image_size),
        assets_extra={"labels.txt": labels_file},
    )
    exported = run_folder.as_newest(saved_model.decode())
    last = max(history, key=lambda record: record["step"])
    result = last | {"labels": data.labels, "saved_model": exported}
    result_path = os.path.join(settings.output_dir, "result.json")
    files.write(result_path, json.dumps(result, indent=2) + "\n")
    return result


def _diverged(settings: Settings) -> str:
    return (
        f"the loss is not a number any more: train with a --learning_rate below {settings.learning_rate:g}. "
        "The same --output_dir goes on from its last checkpoint with finite weights"
    )


def main(arguments: list[str] | None = None) -> int:
    """Runs the command line; returns its exit status."""
    settings = parse(arguments)
    runtime.quiet()
    scratch.of_process()  # what AutoGraph writes goes, too, where this is killed
    # TensorFlow turns oneDNN on by itself only where the CPU has AVX-512; with AVX2 alone, training takes a
    # fifth less time and memory with it (measured).
    os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "1")
    from lab_utils.estimator import tf

    try:
        result = run(settings)
    except tf.errors.DataLossError as error:
        found = re.search(r"\w+ record at \d+", error.message)
        return _failed(
            f"a TFRecord file is damaged ({found[0] if found else error.message}): convert again"
        )
    except tf.errors.UnimplementedError as error:
        if "File system scheme" not in error.message:
            raise
        return _failed(f"{error.message.splitlines()[0]}: give a local path, or one in gs://")
    except tf.errors.OpError as error:
        told = next((os.strerror(code) for code in _STORAGE if os.strerror(code) in str(error)), "")
        if not told:
            raise
        return _failed(_stopped(told, settings))
    except BrokenPipeError:
        raise
    except (FileExistsError, NotADirectoryError):
        return _failed(f"{settings.output_dir} is a file, or below one: give a new folder")
    except OSError as error:
        return _failed(_stopped(f"{error.strerror or error}: {error.filename}", settings))
    except RuntimeError as error:  # ManifestError and InUseError among them
        return _failed(str(error))
    except KeyboardInterrupt:
        print(
            "\ntask: interrupted; the same command goes on from the last checkpoint.",
            file=sys.stderr,
        )
        return 130
    print(
        f"Accuracy {result['accuracy']:.3f} on {result['images']} held-out images (measured here)."
    )
    print(f"SavedModel: {result['saved_model']}")
    return 0


def _stopped(problem: str, settings: Settings) -> str:
    return (
        f"{problem}. {settings.output_dir} must be writable, with room; the same command then goes on "
        "from the last checkpoint"
    )


def _failed(message: str) -> int:
    print(f"task: {message}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    command.run(main)
