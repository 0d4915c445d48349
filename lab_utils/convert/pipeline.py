"""The Beam pipeline: CSV rows are dealt out to shards, and each shard is written by one worker.

Only rows of text go through Beam's shuffle (its GroupByKey), never images. A worker that has all the rows
of a shard reads and writes one image after another, so memory grows with the rows' text alone, and an image
is copied once. Beam's own TFRecord sink would shuffle the finished records to get a set number of shards.
"""

import itertools
import os
import random
import secrets
import stat
from collections import defaultdict
from collections.abc import Iterable, Iterator

import apache_beam as beam

from lab_utils.convert import records, storage
from lab_utils.convert.accounting import SUMMARY, TFRECORD, ShardSummary
from lab_utils.convert.errors import RejectError
from lab_utils.convert.images import to_rgb_jpeg
from lab_utils.convert.plan import SplitPlan
from lab_utils.convert.rows import deal, decode, parse_row, read_lines

_PROGRESS_STEP = 16  # rows
_BLOCK = 64  # rows


def add_steps(
    pipeline: beam.Pipeline,
    splits: list[SplitPlan],
    labels: list[str],
    staging: str,
    progress_file: str | None,
    shorter_side: int | None,
) -> None:
    """Make the pipeline write every shard of the splits, and its summary, into the staging folder.

    Args:
        pipeline: an empty one.
        splits: what to convert.
        labels: the classes, in the order of their ids.
        staging: the folder to write into.
        progress_file: a local file that grows by one byte for each row done, or None.
        shorter_side: see `images.to_rgb_jpeg`.
    """
    write = _WriteShard(splits, labels, staging, progress_file, shorter_side)
    _ = (
        pipeline
        | "Splits" >> beam.Create(splits, reshuffle=False)
        | "Deal rows to shards" >> beam.ParDo(_DealRows())
        | "Rows of each shard" >> beam.GroupByKey()
        | "Write shards" >> beam.ParDo(write)
    )


class _DealRows(beam.DoFn):
    def process(self, split: SplitPlan) -> Iterator[tuple[str, list[tuple[int, bytes]]]]:
        # In blocks, since Beam's shuffle costs more for an element than for the text of a row.
        blocks: defaultdict[int, list[tuple[int, bytes]]] = defaultdict(list)
        for shard, row in deal(read_lines(split.csv_path), split.shards, seed=split.name):
            blocks[shard].append(row)
            if len(blocks[shard]) == _BLOCK:
                yield split.shard_name(shard), blocks.pop(shard)
        for shard, block in blocks.items():
            yield split.shard_name(shard), block


class _WriteShard(beam.DoFn):
    def __init__(
        self,
        splits: list[SplitPlan],
        labels: list[str],
        staging: str,
        progress_file: str | None,
        shorter_side: int | None,
    ):
        self._csv_paths = {split.name: split.csv_path for split in splits}
        self._ids = {label: number for number, label in enumerate(labels, 1)}
        self._staging = staging
        self._progress_file = progress_file
        self._shorter_side = shorter_side

    def process(self, shard: tuple[str, Iterable[list[tuple[int, bytes]]]]) -> None:
        name, blocks = shard
        # Beam hands over a group in any order: sort, so that every run writes the same bytes, then mix.
        rows = sorted(itertools.chain.from_iterable(blocks))
        random.Random(name).shuffle(rows)
        # A runner may try a bundle twice, even at once: each attempt works in a folder of its own.
        attempt = storage.join(self._staging, secrets.token_hex(4))
        storage.make_folder(attempt)
        with storage.open_to_write(storage.join(attempt, name + TFRECORD)) as file:
            summary = self._write(file, self._csv_paths[name.split("-")[0]], rows)
        with storage.open_to_write(storage.join(attempt, name + SUMMARY)) as file:
            file.write(summary.to_json())
        storage.move(attempt, self._staging, [name + TFRECORD, name + SUMMARY])

    def _write(self, file, csv_path: str, rows: list[tuple[int, bytes]]) -> ShardSummary:
        summary = ShardSummary()
        with _Progress(self._progress_file) as progress:
            for number, line in rows:
                try:
                    label, example = self._encode(line, csv_path)
                except RejectError as error:
                    summary.rejects.append((number, decode(line), str(error)))
                else:
                    summary.bytes += file.write(records.frame(example))
                    summary.examples += 1
                    summary.per_class[label] = summary.per_class.get(label, 0) + 1
                progress.advance()
        return summary

    def _encode(self, line: bytes, csv_path: str) -> tuple[str, bytes]:
        row = parse_row(line, csv_path)
        if row.label not in self._ids:
            raise RejectError(f"unknown label {row.label!r}: it is not in the labels file")
        image = to_rgb_jpeg(_read_first(row.paths), self._shorter_side)
        return row.label, records.encode_example(
            image, row.filename, self._ids[row.label], row.label
        )


def _read_first(paths: tuple[str, ...]) -> bytes:
    """Return the content of the first of the files that exists.

    Raises:
        RejectError: if none does, or it cannot be read. Trouble with a bucket is raised as it comes
            instead, for the runner to try again.
    """
    for path in paths:
        if storage.is_remote(path):
            try:
                with storage.open_to_read(path) as file:
                    return file.read()
            except Exception:  # each file system has its own errors
                if storage.exists(path):
                    raise
        else:
            try:
                # A pipe or a device would keep the reader for ever.
                if not stat.S_ISREG(os.stat(path).st_mode):
                    raise RejectError(f"not a file: {path}")
                with open(path, "rb") as file:
                    return file.read()
            except (FileNotFoundError, NotADirectoryError):
                pass
            except (OSError, ValueError) as error:  # ValueError: a zero byte in the name
                reason = getattr(error, "strerror", error)
                raise RejectError(f"cannot be read ({reason}): {path}") from None
    raise RejectError(f"file not found: {paths[-1]}")


class _Progress:
    """Counts rows across processes: each adds a byte to one small file, whose size the bar asks for."""

    def __init__(self, path: str | None):
        self._path = path
        self._pending = 0

    def __enter__(self) -> "_Progress":
        self._file = os.open(self._path, os.O_WRONLY | os.O_APPEND) if self._path else None
        return self

    def __exit__(self, *_) -> None:
        if self._file is not None:
            os.write(self._file, bytes(self._pending))
            os.close(self._file)

    def advance(self) -> None:
        self._pending += 1
        if self._file is not None and self._pending == _PROGRESS_STEP:
            os.write(self._file, bytes(self._pending))
            self._pending = 0
