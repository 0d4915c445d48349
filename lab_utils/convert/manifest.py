"""The manifest: what a finished conversion holds. Where it is absent, the conversion did not finish."""

import dataclasses
import json
from dataclasses import dataclass
from typing import Any

from lab_utils.common.figures import counted
from lab_utils.convert import storage
from lab_utils.convert.errors import printable, shortened

MANIFEST = "manifest.json"
_FORMAT = 1
_SHOWN = 30  # classes in the text; the file has all


class ManifestError(RuntimeError):
    """A folder holds no finished conversion, or one that does not match its manifest."""


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
        content = {"format": _FORMAT} | dataclasses.asdict(self)
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
        ManifestError: if there is none, or it cannot be understood.
    """
    path = storage.join(folder, MANIFEST)
    if not storage.exists(path):
        raise ManifestError(
            f"{folder} has no {MANIFEST}: the conversion did not finish or has not been run; "
            "run python -m lab_utils.convert"
        )
    with storage.open_to_read(path) as file:
        text = file.read()
    try:
        return _parsed(folder, json.loads(text))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ManifestError(f"{path} is not a manifest of format {_FORMAT}: {error!r}") from None


def _parsed(folder: str, content: dict[str, Any]) -> Manifest:
    if content["format"] != _FORMAT:
        raise ValueError(f"format {content['format']!r}")
    labels = content["labels"]
    if not isinstance(labels, list) or not all(type(label) is str and label for label in labels):
        raise TypeError("labels should be a list of class names")
    splits = {
        name: Split(**split | {"shards": [Shard(**shard) for shard in split["shards"]]})
        for name, split in content["splits"].items()
    }
    return Manifest(folder, labels, splits, content["versions"], content.get("shorter_side"))
