"""The Beam pipeline: the names of shards go in, and each shard is written by one worker.

The rows of a shard lie in a small file that the launcher wrote. A worker reads and writes one image after
another, so memory grows with the text of one shard's rows only, and an image is copied once. No image and
no row goes through Beam's shuffle. Beam's own TFRecord sink would shuffle the finished records to get a set
number of shards, and loses data on engines without side inputs and finish_bundle (Dask's).
"""

import contextlib
import random
import secrets
import socket
import time
from typing import BinaryIO

import apache_beam as beam

from lab_utils.convert import records, storage
from lab_utils.convert.accounting import SUMMARY, TFRECORD, ShardSummary
from lab_utils.convert.errors import RejectError, ShardError
from lab_utils.convert.images import to_rgb_jpeg
from lab_utils.convert.plan import SplitPlan, read_rows
from lab_utils.convert.rows import parse_labelled, shown
from lab_utils.convert.sources import read_image
from lab_utils.convert.text import shortened

_WAITS = (0.5, 2)  # seconds between the attempts on a shard


def add_steps(
    pipeline: beam.Pipeline,
    splits: list[SplitPlan],
    labels: list[str],
    staging: str,
    progress_file: str | None,
    shorter_side: int | None,
) -> None:
    """Makes the pipeline write every shard of the splits, and its summary, into the staging folder.

    `plan.write_rows` has written their rows there. The local `progress_file`, if there is one, grows by one
    byte for each row done.
    """
    csv_paths = {split.name: split.csv_path for split in splits}
    write = _WriteShard(csv_paths, labels, staging, progress_file, shorter_side)
    names = [name for split in splits for name in split.shard_names]
    _ = pipeline | "Shards" >> beam.Create(names) | "Write shards" >> beam.ParDo(write)


class _WriteShard(beam.DoFn):
    def __init__(
        self,
        csv_paths: dict[str, str],
        labels: list[str],
        staging: str,
        progress_file: str | None,
        shorter_side: int | None,
    ):
        self._csv_paths = csv_paths
        self._ids = {label: number for number, label in enumerate(labels, 1)}
        self._staging = staging
        self._progress_file = progress_file
        self._shorter_side = shorter_side

    def process(self, shard: str) -> None:
        for wait in (*_WAITS, None):
            try:
                return self._attempt(shard)
            except Exception as error:
                if wait is None:
                    raise ShardError(
                        f"shard {shard} failed {len(_WAITS) + 1} times on {socket.gethostname()}, the last "
                        f"time for this: {str(error) or type(error).__name__}"
                    ) from None
                time.sleep(wait)

    def _attempt(self, shard: str) -> None:
        rows = read_rows(self._staging, shard)
        # In the order of the list until now, in which classes may stand together.
        random.Random(shard).shuffle(rows)
        # An engine may try a shard twice, even at once. Each attempt writes in a folder of its own; its
        # summary, moved into place last and by itself, says which folder holds the shard that it describes.
        attempt = secrets.token_hex(4)
        folder = storage.join(self._staging, attempt)
        storage.make_folder(folder, parents=False)  # a cancelled run's folder is not to come back
        try:
            with storage.open_to_write(storage.join(folder, shard + TFRECORD)) as file:
                summary = self._write(file, self._csv_paths[shard.split("-")[0]], rows)
            summary.attempt = attempt
            with storage.open_to_write(storage.join(folder, shard + SUMMARY)) as file:
                file.write(summary.to_json())
            storage.move(folder, self._staging, [shard + SUMMARY])
        except BaseException:
            with contextlib.suppress(Exception):
                storage.remove_folder(folder)
            raise

    def _write(self, file: BinaryIO, csv_path: str, rows: list[tuple[int, bytes]]) -> ShardSummary:
        summary = ShardSummary()
        with contextlib.ExitStack() as stack:
            path = self._progress_file
            progress = stack.enter_context(open(path, "ab", buffering=0)) if path else None
            for number, line in rows:
                try:
                    label, example = self._encode(line, csv_path)
                except RejectError as error:
                    summary.rejects.append((number, shown(line), str(error)))
                except Exception as error:
                    row = f"{csv_path}, row {number} ({shortened(shown(line))})"
                    raise ShardError(f"{row}: {type(error).__name__}: {error}") from error
                else:
                    summary.bytes += file.write(records.frame(example))
                    summary.examples += 1
                    summary.per_class[label] = summary.per_class.get(label, 0) + 1
                if progress:
                    progress.write(b".")
        return summary

    def _encode(self, line: bytes, csv_path: str) -> tuple[str, bytes]:
        row = parse_labelled(line, csv_path, self._ids)
        image = to_rgb_jpeg(read_image(row.path), self._shorter_side)
        number = self._ids[row.label]
        return row.label, records.encode_example(image, row.filename, number, row.label)
