"""The TFRecord shards of a split, as the converter's manifest lists them."""

import contextlib
import fnmatch
import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass

from lab_utils.convert import Manifest, ManifestError, Shard, read_manifest, storage
from lab_utils.convert.accounting import REJECTS
from lab_utils.convert.manifest import MANIFEST

_OTHERS = {MANIFEST, REJECTS}  # what a conversion writes beside its shards


@dataclass(frozen=True)
class Records:
    """What one split is read from.

    Attributes:
        files: paths of the shards, sorted.
        examples: how many records they hold together.
        labels: the class names; a record's class id counts from 1.
        strangers: names of files that the pattern matches and the manifest does not list. They are not read.
    """

    files: list[str]
    examples: int
    labels: list[str]
    strangers: list[str]

    @classmethod
    def find(cls, pattern: str) -> "Records":
        """The shards that `pattern` names, such as out/records/train-*, local or gs://.

        The folder's manifest says which there are; only the last part of the pattern may hold `*`.

        Raises:
            ManifestError: there is no manifest, it cannot be used, or a shard is not as it lists it.
        """
        folder, _, names = pattern.rpartition("/")
        if set("*?") & set(folder) and not storage.exists(storage.join(folder, MANIFEST)):
            raise ManifestError(f"{pattern}: only its last part may hold * or ?, not the folder's")
        inside = storage.join(pattern, MANIFEST)
        if storage.exists(inside):
            raise ManifestError(
                f"{pattern} is a folder of records: name a split in it, such as "
                f"{storage.join(pattern, 'train-*')}"
            )
        manifest = read_manifest(folder or ".")
        shards = _shards(manifest)
        matching = sorted(name for name in shards if fnmatch.fnmatchcase(name, names))
        if not matching:
            known = ", ".join(sorted({name.split("-")[0] + "-*" for name in shards}))
            raise ManifestError(
                f"{pattern} matches no shard of the manifest beside it; there are {known}"
            )
        for name in matching:
            path = storage.join(manifest.folder, name)
            found = storage.size(path) if storage.exists(path) else "no"
            if found != shards[name].bytes:
                raise ManifestError(
                    f"{path} has {found} bytes, not the {shards[name].bytes} of its manifest: copy it again, "
                    "or convert again"
                )
        examples = sum(shards[name].examples for name in matching)
        if examples < 1:
            raise ManifestError(f"{pattern}: the manifest lists no examples: convert again")
        present = storage.list_names(manifest.folder)
        return cls(
            files=[storage.join(manifest.folder, name) for name in matching],
            examples=examples,
            labels=manifest.labels,
            strangers=sorted(set(fnmatch.filter(present, names)) - set(shards) - _OTHERS),
        )


def _shards(manifest: Manifest) -> dict[str, Shard]:
    """The shards of all splits by name, once all that is read from the manifest is known to be usable."""
    if problem := manifest.problem():
        raise ManifestError(
            f"the manifest in {manifest.folder} cannot be used: {problem}. Convert again"
        )
    return {shard.file: shard for split in manifest.splits.values() for shard in split.shards}


def undecodable(records: Records) -> Iterator[str]:
    """Yields a line on each record that cannot be decoded: its image/filename, its file, what is wrong.

    Reads every record: call it when reading has failed, to name the culprit.
    """
    from lab_utils.estimator import tf

    features = {
        "image/encoded": tf.io.FixedLenFeature([], tf.string),
        "image/class/label": tf.io.FixedLenFeature([], tf.int64),
        "image/filename": tf.io.FixedLenFeature([], tf.string, b"no image/filename"),
    }
    for file in records.files:
        for number, record in enumerate(tf.data.TFRecordDataset(file)):
            name = b"a record"
            try:
                example = tf.io.parse_single_example(record, features)
                name = example["image/filename"].numpy()
                tf.io.decode_jpeg(example["image/encoded"], channels=3)
                label = int(example["image/class/label"])
                if 1 <= label <= len(records.labels):
                    continue
                problem = f"its class is {label}, of {len(records.labels)}"
            except tf.errors.InvalidArgumentError as error:
                problem = plain(error.message)
            yield f"{name.decode(errors='replace')} (record {number} of {file}): {problem}"


@contextlib.contextmanager
def naming_bad(*splits: Records) -> Iterator[None]:
    """Context manager: where reading fails for a record's sake, the error names the record."""
    from lab_utils.estimator import tf

    try:
        yield
    except tf.errors.InvalidArgumentError as error:
        found = list(itertools.islice(itertools.chain(*map(undecodable, splits)), 4))
        if not found:
            raise
        more = "" if len(found) < 4 else "; and more"
        raise RuntimeError(
            f"cannot be decoded: {'; '.join(found[:3])}{more}. Take it out of the photographs or the CSV "
            "file, and convert again"
        ) from error


def plain(message: str) -> str:
    """TensorFlow's message without the names of graph nodes around it."""
    return re.sub(r"\{\{.*?\}\} *| *\[Op:.*?\]", "", message.splitlines()[0])
