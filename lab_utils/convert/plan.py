"""What a conversion does with one split: its rows, and the shards that they go into."""

import random
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from lab_utils.convert import storage
from lab_utils.convert.errors import ConversionError
from lab_utils.convert.rows import read_lines

ROWS = ".rows"
_ROWS = 1000  # of a shard: 110 MB of ImageNet, 60 MB of flower_photos


@dataclass(frozen=True)
class SplitPlan:
    """One split to convert. Its list is held in memory: about 150 bytes a row.

    Attributes:
        name: "train" or "eval".
        csv_path: its list.
        lines: (line number, text) of each row.
        shards: the number to make.
    """

    name: str
    csv_path: str
    lines: list[tuple[int, bytes]]
    shards: int

    @property
    def rows(self) -> int:
        """The number of rows."""
        return len(self.lines)

    @property
    def shard_names(self) -> list[str]:
        """The names of all its shards, without their extension."""
        return [f"{self.name}-{shard:05d}-of-{self.shards:05d}" for shard in range(self.shards)]


def plan_split(name: str, csv_path: str, shards: int | None) -> SplitPlan:
    """Reads a list and chooses the number of shards.

    Args:
        name: "train" or "eval".
        csv_path: its list.
        shards: their number; None for one for about 1,000 rows.

    Raises:
        ConversionError: if the CSV cannot be read or is empty, or has fewer rows than shards are asked for.
    """
    lines = list(read_lines(csv_path))
    if not lines:
        raise ConversionError(f"{csv_path} is empty; it must hold rows path,label")
    if shards is None:
        shards = max(1, round(len(lines) / _ROWS))
    if not 1 <= shards <= len(lines):
        raise ConversionError(
            f"--{name}_shards {shards}: must be from 1 to the number of rows, {len(lines)}"
        )
    return SplitPlan(name, csv_path, lines, shards)


def write_rows(plan: SplitPlan, staging: str) -> None:
    """Deals the rows out, and writes those of each shard into a file `SHARD.rows` in the staging folder.

    So the pipeline's elements are the names of shards, which every engine can spread over its workers, and
    nothing is shuffled between machines. Of each run of rows, as many as there are shards, every shard gets
    one, in an order drawn again for each run: so a CSV that is sorted by class, too, puts its share of each
    class in every shard.
    """
    contents = [bytearray() for _ in range(plan.shards)]
    order = random.Random(plan.name)
    deck: list[int] = []
    for number, line in plan.lines:
        if not deck:
            deck = list(range(plan.shards))
            order.shuffle(deck)
        contents[deck.pop()] += b"%d %b\n" % (number, line)

    def write(name: str, content: bytearray) -> None:
        with storage.open_to_write(storage.join(staging, name + ROWS)) as file:
            file.write(content)

    with ThreadPoolExecutor(16) as pool:
        list(pool.map(write, plan.shard_names, contents))


def read_rows(staging: str, shard: str) -> list[tuple[int, bytes]]:
    """Returns (row number, the row's text) of a shard, in the order of its list; raises OSError."""
    with storage.open_to_read(storage.join(staging, shard + ROWS)) as file:
        parts = [line.rstrip(b"\n").partition(b" ") for line in file]
    return [(int(number), text) for number, _, text in parts]
