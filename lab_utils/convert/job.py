"""The whole conversion: check, plan, run, account, publish."""

import contextlib
import os
import sys
from collections.abc import Iterator, Sequence

from lab_utils.common import files
from lab_utils.convert import plan, publishing, rows, storage
from lab_utils.convert.errors import ConversionError
from lab_utils.convert.logs import quiet
from lab_utils.convert.manifest import Manifest, account

# Packages of the clients of buckets: what they raise is told in one line.
_CLIENTS = {"google", "requests", "urllib3", "botocore", "boto3", "azure", "hdfs", "apache_beam"}


def convert(  # noqa: PLR0913  each is a flag of the command
    train_csv: str | os.PathLike[str],
    eval_csv: str | os.PathLike[str],
    labels_file: str | os.PathLike[str],
    output_dir: str | os.PathLike[str],
    *,
    train_shards: int | None = None,
    eval_shards: int | None = None,
    shorter_side: int | None = None,
    max_reject_share: float = 0.01,
    overwrite: bool = False,
    workers: int | None = None,
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
        train_shards: number of training shards; None for one for about 1,000 rows.
        eval_shards: number of evaluation shards, likewise.
        shorter_side: pixels; larger images are scaled down to it and compressed again, which makes records
            that hold less and are decoded faster. None stores every image as it is.
        max_reject_share: the conversion fails if more than this share of a split's rows gave no example.
        overwrite: replace an earlier result; it stays until the new one is complete.
        workers: threads that read and decode the images of a shard, in each process that writes one; None
            for one a core on this machine, and one on another engine.
        beam_flags: Beam's own, for example ["--runner=DataflowRunner", "--project=...", "--region=..."].

    Raises:
        ConversionError: if it cannot start or did not finish; the output folder then has no new manifest.
        OSError: the same, where a disk is full or refuses.
    """
    paths = _paths(
        train_csv=train_csv, eval_csv=eval_csv, labels_file=labels_file, output_dir=output_dir
    )
    for flag, valid, limits in (
        ("shorter_side", shorter_side is None or shorter_side >= 1, "1 or more"),
        ("max_reject_share", 0 <= max_reject_share <= 1, "from 0 to 1"),
        ("workers", workers is None or workers >= 1, "1 or more"),
    ):
        if not valid:
            raise ConversionError(f"--{flag} must be {limits}")
    if any(map(files.is_remote, paths.values())):
        print(
            "note: if a bucket does not answer, the conversion stops after two minutes",
            file=sys.stderr,
        )
    with quiet(), _bucket_errors():
        publishing.check_output(paths["output_dir"], overwrite=overwrite)
        labels = rows.read_labels(paths["labels_file"])

        # Imported here: Beam takes two seconds, and the mistakes above can be told at once.
        from lab_utils.convert import engines

        engine = engines.find_engine(list(beam_flags))
        if engine.remote:  # a worker may be in another folder
            paths = {name: storage.join(os.getcwd(), path) for name, path in paths.items()}
        output = paths["output_dir"]
        splits = [
            plan.plan_split("train", paths["train_csv"], train_shards),
            plan.plan_split("eval", paths["eval_csv"], eval_shards),
        ]
        with publishing.staging(output) as staging:
            try:
                for split in splits:
                    plan.write_rows(split, staging)
                engines.run(
                    engine,
                    splits,
                    labels,
                    staging,
                    shorter_side=shorter_side,
                    workers=workers,
                )
                manifest = account(splits, labels, staging, output, max_reject_share, shorter_side)
            except BaseException:
                storage.remove_folder(staging)
                raise
            # If this is struck the staging folder stays: the next run learns from it what was moved.
            publishing.publish(staging, output, overwrite=overwrite)
        return manifest


def _paths(**paths: str | os.PathLike[str]) -> dict[str, str]:
    """Returns the paths by their flags, ~ replaced by the home folder; refuses what cannot be meant."""
    for flag, path in paths.items():
        if not os.fspath(path).strip() or "\0" in os.fspath(path):
            raise ConversionError(f"--{flag} is empty, or contains a zero byte: give a path")
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
            f"a bucket did not answer as it should: {message[:400]}; nothing was published. Is the "
            "name right, may this account use the bucket (gcloud auth application-default login), "
            "and is there a network?"
        ) from None
