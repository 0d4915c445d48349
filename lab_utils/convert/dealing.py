"""The rows of each shard, dealt out before the pipeline starts: one small file a shard.

So the pipeline's elements are the names of shards, one each, which every engine can spread over its
workers, and nothing is shuffled between machines.
"""

import os
from collections import defaultdict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

from lab_utils.common.figures import counted
from lab_utils.convert import storage
from lab_utils.convert.errors import ConversionError
from lab_utils.convert.plan import SplitPlan
from lab_utils.convert.rows import deal, read_lines

ROWS = ".rows"
_BUFFER = 4 << 20  # bytes of text held before they are written


def deal_rows(splits: list[SplitPlan], staging: str, scratch: str) -> None:
    """Writes the rows of each shard into a file `SHARD.rows` in the staging folder.

    Args:
        splits: what to convert.
        staging: the folder to write into.
        scratch: a local folder; files in a bucket cannot grow, so that theirs grow there first.

    Raises:
        ConversionError: if a list has changed since its rows were counted.
    """
    folder = scratch if storage.is_remote(staging) else staging
    for split in splits:
        _deal_split(split, folder)
        if storage.is_remote(staging):
            with ThreadPoolExecutor(16) as pool:
                list(pool.map(lambda name: _upload(folder, staging, name), split.shard_names))


def _deal_split(split: SplitPlan, folder: str) -> None:
    waiting: defaultdict[int, list[bytes]] = defaultdict(list)
    size = rows = 0

    def write() -> None:
        for shard, lines in waiting.items():
            with open(os.path.join(folder, split.shard_name(shard) + ROWS), "ab") as file:
                file.writelines(lines)
        waiting.clear()

    for shard, (number, line) in deal(read_lines(split.csv_path), split.shards, seed=split.name):
        row = b"%d %b\n" % (number, line)
        waiting[shard].append(row)
        rows += 1
        size += len(row)
        if size >= _BUFFER:
            write()
            size = 0
    write()
    if rows != split.rows:
        raise ConversionError(
            f"{split.csv_path} changed while it was read: {counted(split.rows, 'row')}, then {rows:,}; "
            "run again"
        )


def _upload(folder: str, staging: str, name: str) -> None:
    local = os.path.join(folder, name + ROWS)
    with (
        open(local, "rb") as source,
        storage.open_to_write(storage.join(staging, name + ROWS)) as f,
    ):
        f.write(source.read())
    os.remove(local)


def read_rows(staging: str, shard: str) -> Iterator[tuple[int, bytes]]:
    """Yields (row number, the row's text) of a shard, in the order of its list; raises OSError."""
    with storage.open_to_read(storage.join(staging, shard + ROWS)) as file:
        for line in file:
            number, _, text = line.rstrip(b"\n").partition(b" ")
            yield int(number), text
