"""Every row accounted for: shard summaries, the list of rejects, and the manifest, which comes last.

Where the manifest is absent, the conversion did not finish.
"""

import csv
import importlib.metadata
import io
import json
import platform
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field

from lab_utils import DISTRIBUTION
from lab_utils.common.figures import counted
from lab_utils.convert import storage
from lab_utils.convert.errors import ConversionError, printable, shortened
from lab_utils.convert.plan import SplitPlan

MANIFEST = "manifest.json"
_FORMAT = 1
_SHOWN = 30  # classes in the text; the file has all
_OF_AN_ERROR = 80  # characters; a binary file's holds its bytes
TFRECORD = ".tfrecord"
SUMMARY = ".json"
REJECTS = "rejects.csv"
# A run with too many rejects leaves only this; the name tells it from an earlier result's list.
FAILED_REJECTS = "rejects_of_failed_run.csv"


@dataclass(frozen=True)
class Shard:
    """One TFRecord file: its name in the folder, and how many examples and bytes it holds."""

    file: str
    examples: int
    bytes: int


@dataclass(frozen=True)
class Split:
    """One split: its examples, those of each class, its shards, and how many rows were set aside."""

    examples: int
    per_class: dict[str, int]
    shards: list[Shard]
    rejected: int


@dataclass(frozen=True)
class Manifest:
    """What a finished conversion holds.

    Attributes:
        folder: where it lies.
        labels: the classes; the id of `labels[i]` in the records is i + 1.
        splits: "train" and "eval".
        versions: of the software that wrote it.
        shorter_side: pixels that larger images were scaled down to; None where they are as they were.
    """

    folder: str
    labels: list[str]
    splits: dict[str, Split]
    versions: dict[str, str]
    shorter_side: int | None = None

    def paths(self, split: str) -> list[str]:
        """Returns the paths of a split's shards."""
        return [storage.join(self.folder, shard.file) for shard in self.splits[split].shards]

    def to_json(self) -> str:
        """Returns the text of manifest.json."""
        content = {"format": _FORMAT} | asdict(self)
        del content["folder"]
        return json.dumps(content, indent=2, ensure_ascii=False) + "\n"

    def __str__(self) -> str:
        lines = [printable(self.folder)]
        for name, split in self.splits.items():
            megabytes = sum(shard.bytes for shard in split.shards) / 1e6
            lines.append(
                f"  {name}: {counted(split.examples, 'example')} in {counted(len(split.shards), 'shard')}, "
                f"{megabytes:,.1f} MB; {counted(split.rejected, 'row')} set aside in rejects.csv"
            )
            classes = list(split.per_class.items())
            lines.extend(f"    {shortened(label)}: {count:,}" for label, count in classes[:_SHOWN])
            if len(classes) > _SHOWN:
                lines.append(f"    and {counted(len(classes) - _SHOWN, 'class')} more")
        return "\n".join(lines)


def read_manifest(folder: str) -> Manifest:
    """Returns the manifest of a conversion's output folder (a local path, or gs://...).

    Raises:
        ConversionError: if there is none, or it cannot be understood.
    """
    path = storage.join(folder, MANIFEST)
    if not storage.exists(path):
        raise ConversionError(
            f"{folder} has no {MANIFEST}, because the conversion did not finish or has not been "
            "run: run python -m lab_utils.convert"
        )
    with storage.open_to_read(path) as file:
        text = file.read()
    try:
        content = json.loads(text)
        if content["format"] != _FORMAT:
            raise ValueError(f"format {content['format']!r}")
        labels = content["labels"]
        if not isinstance(labels, list) or not all(type(name) is str and name for name in labels):
            raise TypeError("labels should be a list of class names")
        splits = {
            name: Split(**split | {"shards": [Shard(**shard) for shard in split["shards"]]})
            for name, split in content["splits"].items()
        }
        for name, split in splits.items():
            if not set(split.per_class) <= set(labels):
                raise ValueError(f"{name} counts classes that are not in labels")
            for number, shard in enumerate(split.shards):
                kinds = [type(each) for each in (shard.file, shard.examples, shard.bytes)]
                if kinds != [str, int, int]:
                    raise TypeError(
                        f"shard {number} of {name} should have a file's name and two whole numbers"
                    )
        return Manifest(folder, labels, splits, content["versions"], content.get("shorter_side"))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ConversionError(
            f"{path} is damaged, or not a manifest of format {_FORMAT} "
            f"({printable(str(error)[:_OF_AN_ERROR])}): convert the images again, with --overwrite"
        ) from None


@dataclass
class ShardSummary:
    """What became of a shard's rows; as JSON it lies beside the shard until all is published.

    Attributes:
        attempt: the folder, within the staging folder, that holds the shard.
        examples: how many it has.
        bytes: its size.
        per_class: examples of each class.
        rejects: (row number, the row's text, reason) of each row that gave none.
    """

    attempt: str = ""
    examples: int = 0
    bytes: int = 0
    per_class: dict[str, int] = field(default_factory=dict)
    rejects: list[tuple[int, str, str]] = field(default_factory=list)


def account(
    splits: list[SplitPlan],
    labels: list[str],
    staging: str,
    output_dir: str,
    max_reject_share: float,
    shorter_side: int | None,
) -> Manifest:
    """Writes rejects and manifest into the staging folder, once every row is found in one or a shard.

    The shards are moved there, too, out of the folders of the attempts that wrote them.

    Raises:
        ConversionError: if a shard is missing or has a different size from what its writer says, the rows do
            not add up, or too many of a split were rejected; in the last case the list of rejects is put into
            the output folder.
    """
    counts, rejects = {}, []
    for split in splits:
        with ThreadPoolExecutor(16) as pool:  # a bucket takes tens of milliseconds for each request
            summaries = list(
                pool.map(lambda name: _collect_shard(name, staging), split.shard_names)
            )
        counts[split.name] = _count(split, labels, summaries)
        rows = sorted(reject for summary in summaries for reject in summary.rejects)
        rejects += [(split.name, *row) for row in rows]
    for split in splits:
        rejected = counts[split.name].rejected
        if rejected > max_reject_share * split.rows or rejected == split.rows:
            path = storage.join(output_dir, FAILED_REJECTS)
            _write_rejects(path, rejects)
            _, number, text, reason = next(reject for reject in rejects if reject[0] == split.name)
            raise ConversionError(
                f"{rejected:,} of {counted(split.rows, 'row')} of {split.csv_path} gave no "
                f"example, which is more than --max_reject_share {max_reject_share:g} allows, or "
                "all of them. Repair or remove these rows, or allow more. The first is row "
                f"{number} ({shortened(text)}): {printable(reason)}. All rows with their reasons "
                f"are in {path}"
            )
    _write_rejects(storage.join(staging, REJECTS), rejects)
    manifest = Manifest(output_dir, labels, counts, _versions(), shorter_side)
    with storage.open_to_write(storage.join(staging, MANIFEST)) as file:
        file.write(manifest.to_json().encode())
    return manifest


def _collect_shard(name: str, staging: str) -> ShardSummary:
    path = storage.join(staging, name + SUMMARY)
    if not storage.exists(path):
        raise ConversionError(
            f"shard {name} was not written where this process can see it ({path}). Workers on other "
            "machines need the output folder, the CSV files and the images in a bucket, or in folders that "
            "all machines share under the same paths"
        )
    with storage.open_to_read(path) as file:
        summary = ShardSummary(**json.loads(file.read()))
    attempt = storage.join(staging, summary.attempt)
    size = storage.size(storage.join(attempt, name + TFRECORD))
    if size != summary.bytes:
        raise ConversionError(
            f"shard {name} has {size:,} bytes, not the {summary.bytes:,} that its worker wrote: is the disk "
            "full, or was the upload cut off? Run the same command again"
        )
    storage.move(attempt, staging, [name + TFRECORD])
    return summary


def _count(split: SplitPlan, labels: list[str], summaries: list[ShardSummary]) -> Split:
    shards = [
        Shard(name + TFRECORD, summary.examples, summary.bytes)
        for name, summary in zip(split.shard_names, summaries, strict=True)
    ]
    examples = sum(shard.examples for shard in shards)
    rejected = sum(len(summary.rejects) for summary in summaries)
    if examples + rejected != split.rows:
        raise ConversionError(
            f"{split.name}: {counted(examples, 'example')} and {counted(rejected, 'reject')} "
            f"do not add up to {counted(split.rows, 'row')}"
        )
    per_class = {label: sum(s.per_class.get(label, 0) for s in summaries) for label in labels}
    return Split(examples, per_class, shards, rejected)


def _write_rejects(path: str, rejects: list[tuple[str, int, str, str]]) -> None:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(("split", "row", "text", "reason"))
    writer.writerows(rejects)
    with storage.open_to_write(path) as file:
        file.write(text.getvalue().encode("utf-8", "surrogateescape"))


def _versions() -> dict[str, str]:
    packages = {"apache_beam": "apache-beam", "pillow": "pillow", "lab_utils": DISTRIBUTION}
    versions = {name: importlib.metadata.version(package) for name, package in packages.items()}
    return {"python": platform.python_version()} | versions
