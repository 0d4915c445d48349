"""The whole conversion: check, plan, run, account, publish."""

import contextlib
import logging
import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from lab_utils.common import files
from lab_utils.convert import plan, publishing, rows, storage
from lab_utils.convert.accounting import SUMMARY, account
from lab_utils.convert.errors import ConversionError
from lab_utils.convert.logs import quiet
from lab_utils.convert.manifest import Manifest
from lab_utils.convert.text import printable

if TYPE_CHECKING:
    from lab_utils.convert.engines import Engine

# Packages of the clients of buckets: what they raise is told in one line.
_CLIENTS = {"google", "requests", "urllib3", "botocore", "boto3", "azure", "hdfs", "apache_beam"}


def convert(
    train_csv: str | os.PathLike[str],
    eval_csv: str | os.PathLike[str],
    labels_file: str | os.PathLike[str],
    output_dir: str | os.PathLike[str],
    *,
    shard_mb: float = 100,
    train_shards: int | None = None,
    eval_shards: int | None = None,
    shorter_side: int | None = None,
    max_reject_share: float = 0.01,
    overwrite: bool = False,
    workers: int | None = None,
    stall_minutes: float = 30,
    beam_flags: Sequence[str] = (),
) -> Manifest:
    """Converts images named in CSV files into TFRecord shards, and returns the manifest.

    The folder gets `train-00000-of-00008.tfrecord` and so on, rejects.csv (rows that gave no example, and
    why) and manifest.json, which comes last: without it, nothing in the folder is to be trusted. The same
    input and number of shards give the same bytes, whatever the number of workers.

    Args:
        train_csv: rows `path,label` without a header; paths are absolute, relative to the CSV, or gs://...
        eval_csv: the same, for evaluation.
        labels_file: one class a line; the first has id 1 in the records, 0 being the background.
        output_dir: a new or empty folder, local or gs://...
        shard_mb: size of a shard to aim at, in millions of bytes; up to 1,000 images are asked for theirs.
        train_shards: number of training shards, instead.
        eval_shards: number of evaluation shards, instead.
        shorter_side: pixels; larger images are scaled down to it and compressed again, which makes records
            that hold less and are decoded faster. None stores every image as it is.
        max_reject_share: the conversion fails if more than this share of a split's rows gave no example.
        overwrite: replace an earlier result; it stays until the new one is complete.
        workers: processes on this machine; 0 for one a core. Starting them takes seconds, so one, the
            default, is faster for some thousands of images.
        stall_minutes: the job is ended after so long without another image converted.
        beam_flags: Beam's own, for example ["--runner=DataflowRunner", "--project=...", "--region=..."].

    Raises:
        ConversionError: if it cannot start or did not finish; the output folder then has no new manifest.
        OSError: the same, where a disk is full or refuses.
    """
    paths = _paths(
        train_csv=train_csv, eval_csv=eval_csv, labels_file=labels_file, output_dir=output_dir
    )
    for flag, valid, limits in (
        ("shard_mb", shard_mb > 0, "above 0"),
        ("shorter_side", shorter_side is None or shorter_side >= 1, "1 or more"),
        ("max_reject_share", 0 <= max_reject_share <= 1, "from 0 to 1"),
        ("workers", workers is None or workers >= 0, "0 or more"),
    ):
        if not valid:
            raise ConversionError(f"--{flag} must be {limits}")
    with quiet(), _bucket_errors():
        publishing.check_output(paths["output_dir"], overwrite=overwrite)
        labels = rows.read_labels(paths["labels_file"])

        # Imported here: Beam takes two seconds, and the mistakes above can be told at once.
        from lab_utils.convert import engines

        engine = engines.find_engine(list(beam_flags), workers, paths)
        if engine.remote:  # a worker may be in another folder
            paths = {name: storage.absolute(path) for name, path in paths.items()}
        output = paths["output_dir"]
        splits = [
            plan.plan_split("train", paths["train_csv"], train_shards, shard_mb),
            plan.plan_split("eval", paths["eval_csv"], eval_shards, shard_mb),
        ]
        for note in plan.notes(*splits):
            print(f"note: {printable(note)}", file=sys.stderr)
        with publishing.staging(output) as staging:
            try:
                for split in splits:
                    plan.write_rows(split, staging)
                _run(engine, splits, labels, staging, shorter_side, workers, stall_minutes)
                manifest = account(splits, labels, staging, output, max_reject_share, shorter_side)
            except BaseException:
                storage.remove_folder(staging)
                raise
            # If this is struck the staging folder stays: the next run learns from it what was moved.
            publishing.publish(staging, output, overwrite=overwrite)
        return manifest


def _run(
    engine: "Engine",
    splits: list[plan.SplitPlan],
    labels: list[str],
    staging: str,
    shorter_side: int | None,
    workers: int | None,
    stall_minutes: float,
) -> None:
    """Has the engine write all shards into the staging folder."""
    from lab_utils.convert import pipeline, running

    with contextlib.ExitStack() as stack:
        scratch = stack.enter_context(tempfile.TemporaryDirectory(ignore_cleanup_errors=True))
        progress_file, done = None, _rows_of_shards(staging, splits)
        if engine.local:
            progress_file = os.path.join(scratch, "progress")
            done = _bytes_of(progress_file)
            # What goes wrong comes back as an exception; Beam's log tells it once a thread and process.
            stack.enter_context(quiet(logging.CRITICAL))
        shards = sum(split.shards for split in splits)
        beam_pipeline = engine.pipeline(shards, workers)
        # Beam removes this folder in the end, unless it is interrupted or runs in a notebook.
        beam_folder = os.path.join(scratch, "beam")
        os.rename(beam_pipeline.local_tempdir, beam_folder)
        beam_pipeline.local_tempdir = beam_folder
        pipeline.add_steps(beam_pipeline, splits, labels, staging, progress_file, shorter_side)
        running.run(
            beam_pipeline,
            engine,
            rows=sum(split.rows for split in splits),
            done=done,
            stall_minutes=stall_minutes,
        )


def _bytes_of(progress_file: str) -> Callable[[], int]:
    open(progress_file, "wb").close()
    return lambda: os.path.getsize(progress_file)


def _rows_of_shards(staging: str, splits: list[plan.SplitPlan]) -> Callable[[], int]:
    """Counts the rows of the shards that lie finished in the staging folder: one more or less for each."""
    per_shard = {name: s.rows / s.shards for s in splits for name in s.shard_names}

    def done() -> int:
        names = storage.list_names(staging)
        return round(sum(count for name, count in per_shard.items() if name + SUMMARY in names))

    return done


def _paths(**paths: str | os.PathLike[str]) -> dict[str, str]:
    """Returns the paths by their flags, ~ replaced by the home folder; refuses what cannot be meant."""
    for flag, path in paths.items():
        if not os.fspath(path).strip() or "\0" in os.fspath(path):
            raise ConversionError(f"--{flag} is empty, or holds a zero byte: give a path")
    try:
        return {flag: files.expanded(path) for flag, path in paths.items()}
    except ValueError as error:
        raise ConversionError(str(error)) from None


@contextlib.contextmanager
def _bucket_errors() -> Iterator[None]:
    """Tells what a bucket's client raises as a conversion's error."""
    try:
        yield
    except Exception as error:
        if type(error).__module__.split(".")[0] not in _CLIENTS:
            raise
        message = " ".join(str(error).split())
        raise ConversionError(
            f"a bucket did not answer as it should: {message[:400]}; nothing was published. Is its name "
            "right, is this account allowed to use it (gcloud auth application-default login), is there a "
            "network?"
        ) from None
