"""The output folder: results are made out of sight and moved into place whole, the manifest last."""

import contextlib
import os
import re
import secrets
from collections.abc import Iterator

from lab_utils.common import leases
from lab_utils.convert import storage
from lab_utils.convert.accounting import FAILED_REJECTS, REJECTS
from lab_utils.convert.errors import ConversionError
from lab_utils.convert.manifest import MANIFEST, ManifestError, read_manifest

_STAGING = ".in-progress-"
_REPLACED = ".replaced-"
_MARKER = ".publishing"
_OURS = re.compile(
    r"(train|eval)-\d{5,}-of-\d{5,}\.tfrecord|manifest\.json|rejects\.csv|rejects_of_failed_run\.csv"
)


def check_output(folder: str, *, overwrite: bool) -> None:
    """Refuses a folder that holds anything, unless told to overwrite.

    Hidden files do not count, nor does what a run left that died while it moved its result into place: the
    manifest that it did not get to move lists those files.

    Raises:
        ConversionError: if the folder is not empty, or no folder.
    """
    try:
        names = storage.list_names(folder)
    except NotADirectoryError:
        raise ConversionError(
            f"--output_dir {folder} is a file, or below one: give a new or empty folder"
        ) from None
    except FileNotFoundError:
        raise ConversionError(
            f"--output_dir {folder} is a link to a folder that is not there: {os.path.realpath(folder)}"
        ) from None
    except OSError as error:
        raise ConversionError(
            f"cannot look into --output_dir {folder}: {error.strerror or error}"
        ) from None
    if overwrite:
        return
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


@contextlib.contextmanager
def staging(folder: str) -> Iterator[str]:
    """Makes a hidden folder in the output folder; the result is made there."""
    path = storage.join(folder, _STAGING + secrets.token_hex(4))
    try:
        storage.make_folder(path)
    except OSError as error:
        raise ConversionError(
            f"cannot write into --output_dir {folder}: {error.strerror or error}"
        ) from None
    with contextlib.nullcontext() if storage.is_remote(path) else leases.owned(path):
        yield path


def abandoned(folder: str) -> list[str]:
    """Returns the hidden folders that unfinished runs, or ones still going, have in the output folder."""
    names = storage.list_names(folder)
    return [storage.join(folder, n) for n in sorted(names) if n.startswith((_STAGING, _REPLACED))]


def remove_dead(folder: str) -> list[str]:
    """Removes what killed runs of this machine left in a local output folder; return the paths.

    A whole result stays, and while the folder has no manifest so does one that was half published: its
    manifest tells the next run which of the visible files are leftovers.
    """
    if storage.is_remote(folder):
        return []
    published = storage.exists(storage.join(folder, MANIFEST))
    removed = []
    for path in abandoned(folder):
        if leases.is_dead(path) and not _is_wanted(path, published):
            storage.remove_folder(path)
            removed.append(path)
    return removed


def _is_wanted(staging: str, published: bool) -> bool:
    try:
        manifest = read_manifest(staging)
    except ManifestError:
        return False
    paths = [path for split in manifest.splits for path in manifest.paths(split)]
    return not published or all(map(storage.exists, paths))


def publish(staging: str, folder: str, *, overwrite: bool) -> None:
    """Moves a complete result into place: what it replaces goes first, the manifest comes last.

    Whatever happens in between, no manifest stands beside files that it does not list, and of the earlier
    result nothing is removed before the new one is whole. Files that are not a conversion's are left alone.
    Of two runs that end together, one publishes and the other loses before it moves anything.

    Raises:
        ConversionError: if another run has published meanwhile, or does so now.
    """
    try:
        with _alone(folder, staging):
            check_output(
                folder, overwrite=overwrite
            )  # again: another run may have finished meanwhile
            _move_into_place(staging, folder)
    except ConversionError as error:
        raise ConversionError(f"{error}. The result of this run is in {staging}") from None


def _move_into_place(staging: str, folder: str) -> None:
    names = storage.list_names(folder)
    old = {name for name in names if _OURS.fullmatch(name)}
    if old:
        replaced = storage.join(folder, _REPLACED + secrets.token_hex(4))
        storage.make_folder(replaced)
        storage.move(folder, replaced, old & {MANIFEST})
        storage.move(folder, replaced, old - {MANIFEST})
    new = {name for name in storage.list_names(staging) if _OURS.fullmatch(name)}
    storage.move(staging, folder, new - {MANIFEST})
    storage.move(staging, folder, [MANIFEST])
    # Nobody else publishes now, so all these were left by this run or by dead ones.
    for name in storage.list_names(folder):
        if name.startswith(_REPLACED):
            storage.remove_folder(storage.join(folder, name))
    storage.remove_folder(staging)


@contextlib.contextmanager
def _alone(folder: str, staging: str) -> Iterator[None]:
    """Be the only run that publishes into the folder.

    On a disk by a lock, which the kernel frees if this process dies. In a bucket, or where the file system
    has no locks, by a marker that only one run can create.
    """
    with contextlib.ExitStack() as stack:
        try:
            there = not storage.is_remote(folder) and stack.enter_context(leases.locked(folder))
        except leases.Held:
            raise ConversionError(f"another conversion is publishing into {folder}") from None
        if not there:
            marker = storage.join(folder, _MARKER)
            holder = storage.create_once(marker, staging.encode())
            if holder is not None:
                raise ConversionError(
                    f"another conversion is publishing into {folder} (from {holder.decode()}); if that one "
                    f"is dead, remove {marker}"
                )
            stack.callback(storage.remove_file, marker)
        yield
