"""What a conversion will do with one split: how many rows it has, and into how many shards they go."""

import os
import random
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from lab_utils.common.figures import counted
from lab_utils.convert import habits, storage
from lab_utils.convert.errors import ConversionError, RejectError
from lab_utils.convert.rows import decode, parse_labelled, parse_row, read_lines
from lab_utils.convert.text import shortened

_SAMPLE = 1000  # images whose size is asked for; the mean of so many is good to a few per cent


@dataclass(frozen=True)
class SplitPlan:
    """One split to convert.

    Attributes:
        name: "train" or "eval".
        csv_path: its list.
        rows: how many that has.
        shards: the number to make.
        sample: up to 1,000 of them, every one as likely as another.
    """

    name: str
    csv_path: str
    rows: int
    shards: int
    sample: list[bytes]

    @property
    def folder(self) -> bytes:
        """The folder of its list, from which relative paths are taken."""
        return os.fsencode(storage.parent(self.csv_path))

    @property
    def shard_names(self) -> list[str]:
        """Returns the names of all its shards, without their extension."""
        return [self.shard_name(shard) for shard in range(self.shards)]

    def shard_name(self, shard: int) -> str:
        """Returns the name of a shard, without its extension."""
        return f"{self.name}-{shard:05d}-of-{self.shards:05d}"

    def shard_rows(self) -> list[tuple[str, int]]:
        """Returns each shard's name, and about how many rows it gets: one more or less."""
        return [
            (self.shard_name(shard), len(range(shard, self.rows, self.shards)))
            for shard in range(self.shards)
        ]


def plan_split(name: str, csv_path: str, shards: int | None, shard_mb: float) -> SplitPlan:
    """Counts the rows of a CSV and chooses the number of shards.

    Args:
        name: "train" or "eval".
        csv_path: the split's list.
        shards: their number, or None for as many as make them `shard_mb` million bytes each.
        shard_mb: see there.

    Raises:
        ConversionError: if the CSV cannot be read or is empty, or has fewer rows than shards are asked for.
    """
    rows = 0
    sample: list[bytes] = []
    random_source = random.Random(name)
    # Vitter's algorithm R: a fair sample of a list of unknown length.
    for _, line in read_lines(csv_path):
        rows += 1
        if len(sample) < _SAMPLE:
            sample.append(line)
        elif (place := random_source.randrange(rows)) < _SAMPLE:
            sample[place] = line
    if not rows:
        raise ConversionError(f"{csv_path} is empty; it must hold rows path,label")
    if shards is None:
        with ThreadPoolExecutor(16) as pool:  # a bucket takes tens of milliseconds to tell one size
            sizes = list(pool.map(lambda line: _image_bytes(line, csv_path), sample))
        split_bytes = sum(sizes) / len(sizes) * rows
        shards = max(1, round(min(rows, split_bytes / (shard_mb * 1e6))))
    elif not 1 <= shards <= rows:
        raise ConversionError(
            f"--{name}_shards {shards}: must be from 1 to the number of rows, {rows}"
        )
    return SplitPlan(name, csv_path, rows, shards, sample)


def check_sample(plan: SplitPlan, labels: list[str]) -> None:
    """Ends a long conversion before it begins where no row of the sample can give an example.

    A short list is converted, and then each row has its reason.

    Raises:
        ConversionError: that is so; it gives the reason of one row.
    """
    if plan.rows <= len(plan.sample):
        return
    known, reason = dict.fromkeys(labels), ""
    for line in plan.sample:
        try:
            parse_labelled(line, plan.csv_path, known)
            return
        except RejectError as error:
            reason = str(error)
    raise ConversionError(
        f"none of {counted(len(plan.sample), 'row')} of {plan.csv_path}, taken at random, gives an example; "
        f"one is {shortened(decode(line))}: {reason}. Nothing was begun"
    )


def shared(train: SplitPlan, evaluation: SplitPlan) -> float:
    """Returns the share of the images to evaluate with, or of a sample, that are listed for training, too."""
    rows = (line for line in evaluation.sample if b"," in line and not habits.is_header(line))
    wanted = {image_of(line.rpartition(b",")[0], evaluation.folder) for line in rows}
    folder = train.folder
    listed = (image_of(line.rpartition(b",")[0], folder) for _, line in read_lines(train.csv_path))
    return len(wanted.intersection(listed)) / max(1, len(wanted))


def image_of(path: bytes, folder: bytes) -> bytes:
    """Returns the path of a row's image, well enough to compare two rows of a million quickly."""
    path = path.strip(b' "')
    if not (path.startswith(b"/") or b"://" in path):
        path = folder + b"/" + path
    return os.path.normpath(path) if b"/." in path or b"//" in path else path


def _image_bytes(line: bytes, csv_path: str) -> int:
    try:
        return storage.size(parse_row(line, csv_path).paths[0])
    except Exception:  # whatever it is, the pipeline will tell the reason
        return 0
