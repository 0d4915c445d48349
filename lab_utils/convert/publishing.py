"""The output folder: results are made out of sight and moved into place whole, the manifest last."""

import re
import secrets

from lab_utils.convert import storage
from lab_utils.convert.accounting import FAILED_REJECTS, REJECTS
from lab_utils.convert.errors import ConversionError
from lab_utils.convert.manifest import MANIFEST, ManifestError, read_manifest

_STAGING = ".in-progress-"
_REPLACED = ".replaced-"
_OURS = re.compile(
    r"(train|eval)-\d{5}-of-\d{5}\.tfrecord|manifest\.json|rejects\.csv|rejects_of_failed_run\.csv"
)


def check_output(folder: str, *, overwrite: bool) -> None:
    """Refuse a folder that holds anything, unless told to overwrite.

    Hidden files do not count, nor does what a run left that died while it moved its result into place: the
    manifest that it did not get to move lists those files.

    Raises:
        ConversionError: if the folder is not empty.
    """
    if overwrite:
        return
    names = storage.list_names(folder)
    leftovers = {FAILED_REJECTS}
    for staging in filter(lambda name: name.startswith(_STAGING), names):
        try:
            unpublished = read_manifest(storage.join(folder, staging))
        except ManifestError:  # died earlier: it has moved nothing
            continue
        leftovers.add(REJECTS)
        leftovers.update(
            shard.file for split in unpublished.splits.values() for shard in split.shards
        )
    visible = sorted(name for name in names - leftovers if not name.startswith("."))
    if visible:
        raise ConversionError(
            f"{folder} is not empty (it holds {', '.join(visible[:3])}{', ...' * (len(visible) > 3)}): "
            "give another --output_dir, or --overwrite to replace an earlier result there"
        )


def make_staging(folder: str) -> str:
    """Make a hidden folder in the output folder and return its path; the result is made there."""
    staging = storage.join(folder, _STAGING + secrets.token_hex(4))
    try:
        storage.make_folder(staging)
    except OSError as error:
        raise ConversionError(f"cannot write into {folder}: {error.strerror}") from None
    return staging


def abandoned(folder: str) -> list[str]:
    """Return the hidden folders that unfinished runs, or ones still going, have in the output folder."""
    names = storage.list_names(folder)
    return [storage.join(folder, n) for n in sorted(names) if n.startswith((_STAGING, _REPLACED))]


def publish(staging: str, folder: str, *, overwrite: bool) -> None:
    """Move a complete result into place: what it replaces goes first, the manifest comes last.

    Whatever happens in between, no manifest stands beside files that it does not list, and of the earlier
    result nothing is removed before the new one is whole. Files that are not a conversion's are left alone.
    """
    try:
        check_output(folder, overwrite=overwrite)  # again: another run may have finished meanwhile
    except ConversionError as error:
        raise ConversionError(f"{error}. The result of this run is in {staging}") from None
    replaced = storage.join(folder, _REPLACED + secrets.token_hex(4))
    old = {name for name in storage.list_names(folder) if _OURS.fullmatch(name)}
    if old:
        storage.make_folder(replaced)
        storage.move(folder, replaced, old & {MANIFEST})
        storage.move(folder, replaced, old - {MANIFEST})
    new = {name for name in storage.list_names(staging) if _OURS.fullmatch(name)}
    storage.move(staging, folder, new - {MANIFEST})
    storage.move(staging, folder, [MANIFEST])
    storage.remove_folder(replaced)
    storage.remove_folder(staging)
