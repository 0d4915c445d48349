"""The whole conversion: check, plan, run, account, publish."""

import contextlib
import logging
import os
import tempfile
from collections.abc import Sequence

from lab_utils.convert import publishing, storage
from lab_utils.convert.accounting import account
from lab_utils.convert.errors import ConversionError
from lab_utils.convert.logs import quiet
from lab_utils.convert.manifest import Manifest
from lab_utils.convert.plan import plan_split
from lab_utils.convert.rows import read_labels


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
    beam_flags: Sequence[str] = (),
) -> Manifest:
    """Convert images named in CSV files into TFRecord shards, and return the manifest.

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
        shorter_side: pixels; larger images are scaled down to it and compressed anew, which makes records
            that hold less and are decoded faster. None stores every image as it is.
        max_reject_share: the conversion fails if more than this share of a split's rows gave no example.
        overwrite: replace an earlier result; it stays until the new one is complete.
        workers: processes on this machine; 0 for one a core. Starting them takes seconds, so one, the
            default, is faster for some thousands of images.
        beam_flags: Beam's own, for example ["--runner=DataflowRunner", "--project=...", "--region=..."].

    Raises:
        ConversionError: if it cannot start or did not finish; the output folder then has no new manifest.
    """
    train_csv, eval_csv, labels_file, output_dir = map(
        os.fspath, (train_csv, eval_csv, labels_file, output_dir)
    )
    if shard_mb <= 0:
        raise ConversionError(f"--shard_mb must be above 0, not {shard_mb}")
    if shorter_side is not None and shorter_side < 1:
        raise ConversionError(f"--shorter_side must be 1 or more, not {shorter_side}")
    if not 0 <= max_reject_share <= 1:
        raise ConversionError(f"--max_reject_share must be from 0 to 1, not {max_reject_share}")
    if workers is not None and workers < 0:
        raise ConversionError(f"--workers must be 0 or more, not {workers}")
    with quiet(), contextlib.ExitStack() as stack:
        publishing.check_output(output_dir, overwrite=overwrite)
        labels = read_labels(labels_file)

        # Imported here: Beam takes two seconds, and the mistakes above can be told at once.
        from lab_utils.convert import pipeline, running

        scratch = stack.enter_context(tempfile.TemporaryDirectory())
        beam_pipeline, local = running.make_pipeline(list(beam_flags), workers, scratch)
        splits = [
            plan_split("train", train_csv, train_shards, shard_mb),
            plan_split("eval", eval_csv, eval_shards, shard_mb),
        ]
        if local:
            # What goes wrong here comes back as an exception; Beam's log tells it once a thread and process.
            stack.enter_context(quiet(logging.CRITICAL))
        progress_file = os.path.join(scratch, "progress") if local else None
        rows = sum(split.rows for split in splits)
        staging = publishing.make_staging(output_dir)
        try:
            pipeline.add_steps(beam_pipeline, splits, labels, staging, progress_file, shorter_side)
            running.run(beam_pipeline, rows=rows, progress_file=progress_file, scratch=scratch)
            manifest = account(splits, labels, staging, output_dir, max_reject_share, shorter_side)
        except BaseException:
            storage.remove_folder(staging)
            raise
        # From here on the staging folder stays if this is struck: the next run learns from it what was moved.
        publishing.publish(staging, output_dir, overwrite=overwrite)
        return manifest
