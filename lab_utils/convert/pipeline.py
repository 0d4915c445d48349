"""The transform of the Beam pipeline: the names of shards go in, and each shard is written by one worker.

The rows of a shard lie in a small file that the launcher wrote. A worker reads a few images ahead and writes
one after another, so memory grows with the text of one shard's rows only. No image and no row goes through
Beam's shuffle. Beam's own TFRecord sink would shuffle the finished records to get a set number of shards, and
loses data on engines without side inputs and finish_bundle.
"""

import collections
import contextlib
import json
import random
import secrets
import socket
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass
from typing import BinaryIO

import apache_beam as beam

from lab_utils.convert import records, storage
from lab_utils.convert.errors import ConversionError, RejectError, shortened
from lab_utils.convert.images import to_rgb_jpeg
from lab_utils.convert.manifest import SUMMARY, TFRECORD, ShardSummary
from lab_utils.convert.plan import read_rows
from lab_utils.convert.rows import parse_row, readable

_WAITS = (0.5, 2)  # seconds between the attempts on a shard
_Row = tuple[int, bytes]


@dataclass(eq=False)
class WriteShard(beam.DoFn):
    """Writes a shard and its summary into the staging folder.

    Attributes:
        csv_paths: the list of each split, by the split's name.
        ids: the class ids by their names.
        staging: where `plan.write_rows` left the rows.
        shorter_side: see `to_rgb_jpeg`.
        threads: how many images are read and decoded at once; both release the interpreter's lock.
        progress_file: a local file that grows by one byte for each row done, if there is one.
    """

    csv_paths: dict[str, str]
    ids: dict[str, int]
    staging: str
    shorter_side: int | None
    threads: int
    progress_file: str | None

    def process(self, shard: str) -> None:
        """Writes the shard of this name; raises ConversionError where the third attempt fails, too."""
        for wait in (*_WAITS, None):
            try:
                return self._attempt(shard)
            except Exception as error:
                if wait is None:
                    raise ConversionError(
                        f"shard {shard} failed {len(_WAITS) + 1} times on {socket.gethostname()}, the last "
                        f"time for this: {str(error) or type(error).__name__}"
                    ) from None
                time.sleep(wait)

    def _attempt(self, shard: str) -> None:
        rows = read_rows(self.staging, shard)
        # In the order of the list until now, in which classes may stand together.
        random.Random(shard).shuffle(rows)
        # An engine may try a shard twice, even at once. Each attempt writes in a folder of its own; its
        # summary, moved into place last and by itself, says which folder holds the shard that it describes.
        attempt = secrets.token_hex(4)
        folder = storage.join(self.staging, attempt)
        storage.make_folder(folder, parents=False)  # a cancelled run's folder is not to come back
        try:
            with storage.open_to_write(storage.join(folder, shard + TFRECORD)) as file:
                summary = self._write(file, self.csv_paths[shard.split("-")[0]], rows)
            summary.attempt = attempt
            with storage.open_to_write(storage.join(folder, shard + SUMMARY)) as file:
                file.write(json.dumps(asdict(summary)).encode())
            storage.move(folder, self.staging, [shard + SUMMARY])
        except BaseException:
            with contextlib.suppress(Exception):
                storage.remove_folder(folder)
            raise

    def _write(self, file: BinaryIO, csv_path: str, rows: list[_Row]) -> ShardSummary:
        summary = ShardSummary()
        with contextlib.ExitStack() as stack:
            path = self.progress_file
            progress = stack.enter_context(open(path, "ab", buffering=0)) if path else None
            for (number, line), encoded in self._in_order(csv_path, rows):
                try:
                    label, example = encoded.result()
                except RejectError as error:
                    summary.rejects.append((number, readable(line), str(error)))
                except Exception as error:
                    row = f"{csv_path}, row {number} ({shortened(readable(line))})"
                    raise ConversionError(f"{row}: {type(error).__name__}: {error}") from error
                else:
                    summary.bytes += file.write(records.frame(example))
                    summary.examples += 1
                    summary.per_class[label] = summary.per_class.get(label, 0) + 1
                if progress:
                    progress.write(b".")
        return summary

    def _in_order(self, csv_path: str, rows: list[_Row]) -> Iterator[tuple[_Row, Future]]:
        """Yields each row with its label and example, which threads make, a few rows ahead."""
        under_way: collections.deque[tuple[_Row, Future]] = collections.deque()
        with ThreadPoolExecutor(self.threads) as pool:
            for row in rows:
                under_way.append((row, pool.submit(self._encode, row[1], csv_path)))
                if len(under_way) > 2 * self.threads:
                    yield under_way.popleft()
            yield from under_way

    def _encode(self, line: bytes, csv_path: str) -> tuple[str, bytes]:
        row = parse_row(line, csv_path, self.ids)
        image = to_rgb_jpeg(storage.read_image(row.path), self.shorter_side)
        number = self.ids[row.label]
        return row.label, records.encode_example(image, row.filename, number, row.label)
