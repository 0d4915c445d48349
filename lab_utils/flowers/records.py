"""The TFRecord shards of a split, as the converter's manifest lists them."""

import fnmatch
import re
from dataclasses import dataclass

from lab_utils.convert import ConversionError, read_manifest, storage
from lab_utils.convert.manifest import MANIFEST


@dataclass(frozen=True)
class Records:
    """What one split is read from.

    Attributes:
        files: paths of the shards, sorted.
        examples: how many records they hold together.
        labels: the class names; a record's class id counts from 1.
    """

    files: list[str]
    examples: int
    labels: list[str]

    @classmethod
    def find(cls, pattern: str) -> "Records":
        """The shards that `pattern` names, such as out/records/train-*, local or gs://.

        The folder's manifest says which there are; only the last part of the pattern may hold `*`.

        Raises:
            ConversionError: there is no manifest, it cannot be used, or a shard is not as it lists it.
        """
        folder, _, names = pattern.rpartition("/")
        if storage.exists(storage.join(pattern, MANIFEST)):
            raise ConversionError(
                f"{pattern} is a folder of records: name a split in it, such as "
                f"{storage.join(pattern, 'train-*')}"
            )
        manifest = read_manifest(folder or ".")
        shards = {shard.file: shard for split in manifest.splits.values() for shard in split.shards}
        matching = sorted(name for name in shards if fnmatch.fnmatchcase(name, names))
        examples = sum(shards[name].examples for name in matching)
        if not examples:
            splits = ", ".join(sorted({name.split("-")[0] + "-*" for name in shards}))
            raise ConversionError(
                f"{pattern} matches no examples of the manifest in its folder, which has {splits}"
            )
        for name in matching:
            path = storage.join(manifest.folder, name)
            size = storage.size(path) if storage.exists(path) else "no"
            if size != shards[name].bytes:
                raise ConversionError(
                    f"{path} has {size} bytes, but its manifest says {shards[name].bytes}: copy it "
                    "again, or convert again"
                )
        paths = [storage.join(manifest.folder, name) for name in matching]
        return cls(paths, examples, manifest.labels)


def plain(message: str) -> str:
    """TensorFlow's message without the names of graph nodes around it."""
    return re.sub(r"\{\{.*?\}\} *| *\[Op:.*?\]", "", message.splitlines()[0])
