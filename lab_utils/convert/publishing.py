"""The output folder: results are made out of sight and moved into place whole, the manifest last."""

import contextlib
import os
import re
import secrets
from collections.abc import Iterator
from pathlib import Path

from lab_utils.common import files
from lab_utils.convert import storage
from lab_utils.convert.errors import ConversionError
from lab_utils.convert.manifest import FAILED_REJECTS, MANIFEST

_STAGING = ".in-progress-"
_REPLACED = ".replaced-"
_LOCK = ".converting"
_OURS = re.compile(
    r"(train|eval)-\d{5,}-of-\d{5,}\.tfrecord|manifest\.json|rejects\.csv|rejects_of_failed_run\.csv"
)


def check_output(folder: str, *, overwrite: bool) -> None:
    """Refuses a folder that holds anything, unless told to overwrite.

    Hidden files do not count, nor does what a run left that died while it moved its result into place, whose
    manifest is still in its hidden folder.

    Raises:
        ConversionError: if the folder is not empty, or no folder.
    """
    try:
        names = storage.list_names(folder)
    except OSError as error:
        if files.is_remote(folder):
            raise
        raise ConversionError(
            f"--output_dir {folder}: {error.strerror or error}; give a new or empty folder"
        ) from None
    if overwrite:
        return
    leftovers = {FAILED_REJECTS}
    if any(storage.exists(storage.join(path, MANIFEST)) for path in unfinished(folder)):
        leftovers |= set(filter(_OURS.fullmatch, names)) - {MANIFEST}
    visible = sorted(name for name in names - leftovers if not name.startswith("."))
    if visible:
        raise ConversionError(
            f"{folder} is not empty (it holds "
            f"{', '.join(visible[:3])}{', ...' * (len(visible) > 3)}): give another --output_dir, "
            "or use --overwrite to replace an earlier result there"
        )


@contextlib.contextmanager
def staging(folder: str) -> Iterator[str]:
    """Makes a hidden folder in the output folder, where the result is made.

    On a disk this process is the only one that converts into the output folder until the context ends; what
    killed runs left there goes.

    Raises:
        ConversionError: if another conversion is going on, or the folder cannot be written.
    """
    path = storage.join(folder, _STAGING + secrets.token_hex(4))
    with contextlib.ExitStack() as stack:
        try:
            storage.make_folder(folder)
            if not files.is_remote(folder):
                lock = os.path.join(folder, _LOCK)
                stack.enter_context(files.locked(lock))
                # While it is held, so that nobody else's goes.
                stack.callback(Path(lock).unlink, missing_ok=True)
                _remove_dead(folder)
            storage.make_folder(path)
        except files.InUseError:
            raise ConversionError(f"another conversion is writing into {folder}") from None
        except OSError as error:
            raise ConversionError(
                f"cannot write into --output_dir {folder}: {error.strerror or error}"
            ) from None
        yield path


def unfinished(folder: str) -> list[str]:
    """Returns the hidden folders that unfinished runs, or ones still going, have in the output folder."""
    names = storage.list_names(folder)
    return [storage.join(folder, n) for n in sorted(names) if n.startswith((_STAGING, _REPLACED))]


def _remove_dead(folder: str) -> None:
    """Removes what killed runs left.

    While the folder has no manifest, a result that was half published stays: its manifest tells that the
    visible files are leftovers.
    """
    published = storage.exists(storage.join(folder, MANIFEST))
    for path in unfinished(folder):
        if published or not storage.exists(storage.join(path, MANIFEST)):
            storage.remove_folder(path)


def publish(staging: str, folder: str, *, overwrite: bool) -> None:
    """Moves a complete result into place: what it replaces goes first, the manifest comes last.

    Whatever happens in between, no manifest stands beside files that it does not list, and of the earlier
    result nothing is removed before the new one is whole. Files that are not a conversion's are left alone.

    Raises:
        ConversionError: if another run has published meanwhile, as it can in a bucket.
    """
    try:
        check_output(folder, overwrite=overwrite)
    except ConversionError as error:
        raise ConversionError(f"{error}. The result of this run is in {staging}") from None
    old = {name for name in storage.list_names(folder) if _OURS.fullmatch(name)}
    if old:
        replaced = storage.join(folder, _REPLACED + secrets.token_hex(4))
        storage.make_folder(replaced)
        storage.move(folder, replaced, old & {MANIFEST})
        storage.move(folder, replaced, old - {MANIFEST})
    new = {name for name in storage.list_names(staging) if _OURS.fullmatch(name)}
    storage.move(staging, folder, new - {MANIFEST})
    storage.move(staging, folder, [MANIFEST])
    for path in unfinished(folder):
        if path == staging or os.path.basename(path).startswith(_REPLACED):
            storage.remove_folder(path)
