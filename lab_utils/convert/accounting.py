"""Every row accounted for: shard summaries, the list of rejects, the manifest."""

import csv
import importlib.metadata
import io
import json
import platform
from dataclasses import asdict, dataclass, field

from lab_utils.convert import storage
from lab_utils.convert.errors import ConversionError
from lab_utils.convert.manifest import MANIFEST, Manifest, Shard, Split
from lab_utils.convert.plan import SplitPlan

TFRECORD = ".tfrecord"
SUMMARY = ".json"
REJECTS = "rejects.csv"
# A run with too many rejects leaves only this; the name keeps it apart from an earlier result's list.
FAILED_REJECTS = "rejects_of_failed_run.csv"


@dataclass
class ShardSummary:
    """What became of a shard's rows; rejects are (row number, the row's text, reason)."""

    examples: int = 0
    bytes: int = 0
    per_class: dict[str, int] = field(default_factory=dict)
    rejects: list[tuple[int, str, str]] = field(default_factory=list)

    def to_json(self) -> bytes:
        """Return the content of the summary's file, which lies beside the shard until all is published."""
        return json.dumps(asdict(self)).encode()


def account(
    splits: list[SplitPlan],
    labels: list[str],
    staging: str,
    output_dir: str,
    max_reject_share: float,
    shorter_side: int | None,
) -> Manifest:
    """Write rejects and manifest into the staging folder, once every row is found in one or a shard.

    Raises:
        ConversionError: if a shard is missing, the rows do not add up, or too many of a split were rejected;
            in the last case the list of rejects is put into the output folder.
    """
    summaries = {split.name: _read_summaries(split, staging) for split in splits}
    counted = {split.name: _count(split, labels, summaries[split.name]) for split in splits}
    rejects = [
        (name, *reject)
        for name, of_split in summaries.items()
        for reject in sorted(reject for summary in of_split for reject in summary.rejects)
    ]
    for split in splits:
        rejected = counted[split.name].rejected
        if rejected > max_reject_share * split.rows or rejected == split.rows:
            path = storage.join(output_dir, FAILED_REJECTS)
            _write_rejects(path, rejects)
            _, number, text, reason = next(reject for reject in rejects if reject[0] == split.name)
            raise ConversionError(
                f"{rejected:,} of the {split.rows:,} rows of {split.csv_path} gave no example, more than "
                f"--max_reject_share {max_reject_share:g} allows; the first is row {number} ({text}): "
                f"{reason}. All of them, with reasons: {path}"
            )
    _write_rejects(storage.join(staging, REJECTS), rejects)
    manifest = Manifest(output_dir, labels, counted, _versions(), shorter_side)
    with storage.open_to_write(storage.join(staging, MANIFEST)) as file:
        file.write(manifest.to_json().encode())
    return manifest


def _read_summaries(split: SplitPlan, staging: str) -> list[ShardSummary]:
    summaries = []
    for shard in range(split.shards):
        path = storage.join(staging, split.shard_name(shard) + SUMMARY)
        if not storage.exists(path):
            raise ConversionError(
                f"shard {shard} of {split.name} was not written where this process can see it ({path}). "
                "A remote runner needs the output folder, the CSV files and the images in a bucket"
            )
        with storage.open_to_read(path) as file:
            summaries.append(ShardSummary(**json.loads(file.read())))
    return summaries


def _count(split: SplitPlan, labels: list[str], summaries: list[ShardSummary]) -> Split:
    shards = [
        Shard(split.shard_name(shard) + TFRECORD, summary.examples, summary.bytes)
        for shard, summary in enumerate(summaries)
    ]
    examples = sum(shard.examples for shard in shards)
    rejected = sum(len(summary.rejects) for summary in summaries)
    if examples + rejected != split.rows:
        raise ConversionError(
            f"{split.name}: {examples} examples and {rejected} rejects do not make {split.rows} rows; "
            f"did {split.csv_path} change meanwhile?"
        )
    per_class = {label: sum(s.per_class.get(label, 0) for s in summaries) for label in labels}
    return Split(examples, per_class, shards, rejected)


def _write_rejects(path: str, rejects: list[tuple[str, int, str, str]]) -> None:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(("split", "row", "text", "reason"))
    writer.writerows(rejects)
    with storage.open_to_write(path) as file:
        file.write(text.getvalue().encode())


def _versions() -> dict[str, str]:
    packages = {"apache_beam": "apache-beam", "pillow": "pillow", "lab_utils": "lab-utils"}
    versions = {name: importlib.metadata.version(package) for name, package in packages.items()}
    return {"python": platform.python_version()} | versions
