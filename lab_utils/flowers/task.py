"""Train, evaluate and export the flowers model: `python -m lab_utils.flowers.task --help`."""

import fnmatch
import json
import os
import re
import sys
from collections.abc import Callable

from lab_utils import runtime
from lab_utils.convert import ManifestError, read_manifest, storage
from lab_utils.flowers.settings import Settings, parse


def _examples(pattern: str) -> tuple[list[str], int]:
    """The labels, and the number of examples in the shards that `pattern` names."""
    folder, _, names = pattern.rpartition("/")
    manifest = read_manifest(folder or ".")
    shards = [shard for split in manifest.splits.values() for shard in split.shards]
    matching = [shard for shard in shards if fnmatch.fnmatch(shard.file, names)]
    if not matching:
        known = ", ".join(sorted({shard.file.split("-")[0] + "-*" for shard in shards}))
        raise ManifestError(
            f"{pattern} matches no shard of the manifest beside it; there are {known}"
        )
    for shard in matching:
        path = storage.join(manifest.folder, shard.file)
        found = storage.size(path) if storage.exists(path) else "no"
        if found != shard.bytes:
            raise ManifestError(
                f"{path} has {found} bytes, not the {shard.bytes} of its manifest: copy it again, or convert "
                "again with --overwrite"
            )
    return manifest.labels, sum(shard.examples for shard in matching)


def make_estimator(settings: Settings, labels: list[str]):
    """Builds the TPUEstimator: on a CPU or GPU as it stands, on a TPU with `use_tpu`.

    Returns:
        tf.compat.v1.estimator.tpu.TPUEstimator
    """
    import tensorflow as tf

    from lab_utils.flowers.model import model_fn

    tpu = tf.compat.v1.estimator.tpu
    cluster = None
    if settings.use_tpu:
        cluster = tf.distribute.cluster_resolver.TPUClusterResolver(
            settings.tpu, zone=settings.tpu_zone or None, project=settings.project or None
        )
    config = tpu.RunConfig(
        cluster=cluster,
        model_dir=settings.output_dir,
        tf_random_seed=settings.seed,
        save_checkpoints_steps=settings.eval_steps_between,
        save_summary_steps=settings.eval_steps_between,
        log_step_count_steps=settings.eval_steps_between,
        tpu_config=tpu.TPUConfig(
            iterations_per_loop=min(settings.iterations_per_loop, settings.eval_steps_between),
            # One input_fn a host, and a whole batch for each core: a transposed batch is never split.
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
        "transpose_input": settings.transpose_input,
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


def input_fns(settings: Settings) -> tuple:
    """Returns (training input_fn from a step on, evaluation input_fn, evaluation steps, labels).

    The first is a function of the step. Each call of TPUEstimator.train starts the input anew: with one seed
    for all, every stretch of steps would see the same first images, and never the rest of a large set.
    """
    from lab_utils.flowers.input_pipeline import make_input_fn

    labels, train_examples = _examples(settings.train_data_path)
    _, eval_examples = _examples(settings.eval_data_path)
    common = {"image_size": settings.image_size, "transpose": settings.transpose_input}

    def train_from(step: int) -> Callable:
        return make_input_fn(
            settings.train_data_path,
            training=True,
            examples=train_examples,
            seed=settings.seed + step,
            **common,
        )

    evaluate = make_input_fn(
        settings.eval_data_path, training=False, examples=eval_examples, **common
    )
    return train_from, evaluate, -(-eval_examples // settings.eval_batch_size), labels


def _history(path: str) -> list[dict]:
    """The evaluations so far."""
    import tensorflow as tf

    if not tf.io.gfile.exists(path):
        return []
    with tf.io.gfile.GFile(path) as file:
        return [json.loads(line) for line in file]


def _write(path: str, text: str) -> None:
    """Writes a file that is never half there: a reader finds the old text or the new."""
    import tensorflow as tf

    partial = path + ".partial"
    with tf.io.gfile.GFile(partial, "w") as file:
        file.write(text)
    tf.io.gfile.rename(partial, path, overwrite=True)


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
    writes: `history.jsonl`, an evaluation a line, and at the end `result.json`.

    Returns:
        The contents of result.json: the last evaluation, "labels", "saved_model".

    Raises:
        ManifestError: the data is not a finished conversion.
        RuntimeError: no checkpoint in `output_dir` can be read.
    """
    from lab_utils.flowers import checkpoints, progress, serving

    train_from, evaluate, eval_steps, labels = input_fns(settings)
    estimator = make_estimator(settings, labels)
    history_path = os.path.join(settings.output_dir, "history.jsonl")

    step = checkpoints.resume_point(settings.output_dir)
    # Evaluations of checkpoints that are lost do not count: those steps are taken again.
    history = [record for record in _history(history_path) if record["step"] <= step]
    if step:
        print(f"Going on from step {step} of {settings.train_steps}.")
    with progress.bar(step, settings.train_steps, settings.train_batch_size) as hook:
        while True:
            if step and step not in {record["step"] for record in history}:
                record = _evaluate(estimator, evaluate, eval_steps)
                history.append(record)
                _write(history_path, "".join(json.dumps(record) + "\n" for record in history))
                hook.say(
                    f"step {step}: accuracy {record['accuracy']:.3f} on {record['images']} images"
                )
            if step >= settings.train_steps:
                break
            start, between = step, settings.eval_steps_between
            step = min(start - start % between + between, settings.train_steps)
            estimator.train(train_from(start), hooks=[hook], max_steps=step)

    labels_file = os.path.join(settings.output_dir, "labels.txt")
    _write(labels_file, "\n".join(labels) + "\n")
    saved_model = estimator.export_saved_model(
        os.path.join(settings.output_dir, "export"),
        serving.make_serving_input_fn(settings.image_size),
        assets_extra={"labels.txt": labels_file},
    )
    last = max(history, key=lambda record: record["step"])
    result = last | {"labels": labels, "saved_model": saved_model.decode()}
    _write(os.path.join(settings.output_dir, "result.json"), json.dumps(result, indent=2) + "\n")
    return result


def main(arguments: list[str] | None = None) -> int:
    """Runs the command line; returns its exit status."""
    settings = parse(arguments)
    runtime.quiet()
    # TensorFlow turns oneDNN on by itself only where the CPU has AVX-512; with AVX2 alone, training takes a
    # fifth less time and memory with it (measured).
    os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "1")
    import tensorflow as tf

    try:
        result = run(settings)
    except (ManifestError, FileNotFoundError, RuntimeError) as error:
        print(f"task: {error}", file=sys.stderr)
        return 1
    except tf.errors.DataLossError as error:
        found = re.search(r"\w+ record at \d+", error.message)
        print(
            f"task: a TFRecord file is damaged ({found[0] if found else error.message}): convert again with "
            "--overwrite",
            file=sys.stderr,
        )
        return 1
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


if __name__ == "__main__":
    sys.exit(main())
