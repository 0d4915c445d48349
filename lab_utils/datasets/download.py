"""The photographs of `flower_photos`, fetched so that a broken line costs only what was not yet there."""

from __future__ import annotations

import http.client
import os
import re
import tarfile
import tempfile
import urllib.error
import urllib.request
from pathlib import Path

from tqdm import tqdm

from lab_utils.datasets.photos import DatasetError, Photos, file_sha256, write_split

# As tensorflow-datasets 4.9.10 publishes them, in datasets/tf_flowers/checksums.tsv: 228,813,984 bytes.
# The address is http; the checksum is what vouches for the bytes.
URL = "http://download.tensorflow.org/example_images/flower_photos.tgz"
SHA256 = "4c54ace7911aaffe13a365c34f650e71dd5bf1be0a58b464e5a7183e3e595d9c"
TIMEOUT = 30  # seconds without a byte
CHUNK = 1 << 20


def download_flower_photos(
    to: str | os.PathLike[str], url: str = URL, sha256: str = SHA256, eval_fraction: float = 0.2
) -> Photos:
    """Downloads, verifies, extracts and splits the 3,670 photographs; does nothing that is done already.

    In `to` there will be flower_photos.tgz, the folder flower_photos and the three files of the split. Each
    appears under its name only when it is whole.

    Args:
      to: a folder; made where it is missing.
      url: address of the archive.
      sha256: of the archive's bytes, in hexadecimal.
      eval_fraction: as for `from_folder`.

    Raises:
      DatasetError: the network failed (call again: it goes on from there), or it is another archive.
    """
    to = Path(to).resolve()
    folder, archive = to / "flower_photos", to / "flower_photos.tgz"
    if not folder.exists():
        to.mkdir(parents=True, exist_ok=True)
        if not archive.exists():
            fetch(url, archive, sha256)
        elif file_sha256(archive) != sha256:
            raise DatasetError(
                f"{archive} is not the archive of {url} (its SHA-256 differs): move it away."
            )
        extract(archive, folder)
    photos = write_split(folder, to, eval_fraction)
    licence = folder / "LICENSE.txt"
    if licence.is_file():
        people = set(
            re.findall(r"CC-BY by (.+?) - http", licence.read_text("utf-8", errors="replace"))
        )
        print(
            f"Photographs by {len(people):,} people, licensed CC BY 2.0. Name them wherever you show or "
            f"share their photographs: {licence}"
        )
    return photos


def fetch(url: str, path: Path, sha256: str) -> None:
    """Downloads `url` to `path` by way of `path`.part, going on where an earlier call stopped."""
    part = path.with_name(path.name + ".part")
    resumed = part.exists() and part.stat().st_size > 0
    if not (resumed and file_sha256(part) == sha256):
        _receive(url, part)
        if resumed and file_sha256(part) != sha256:
            # The part was of another file, or too long.
            print(f"What was in {part} does not belong to {url}: downloading all of it again")
            part.unlink()
            _receive(url, part)
    got = file_sha256(part)
    if got != sha256:
        raise DatasetError(
            f"{url} gave {part.stat().st_size:,} bytes with SHA-256 {got}, not {sha256}: it was changed, or "
            f"something answered in its place (a proxy, a login page). The bytes are in {part}; calling "
            "again downloads them anew."
        )
    part.replace(path)


def _receive(url: str, part: Path) -> None:
    """Appends to `part` what it lacks of `url`, or writes it anew where the server cannot do that."""
    have = part.stat().st_size if part.exists() else 0
    headers = {"Accept-Encoding": "identity"}
    if have:
        headers["Range"] = f"bytes={have}-"
    try:
        with urllib.request.urlopen(
            urllib.request.Request(url, headers=headers), timeout=TIMEOUT
        ) as answer:
            ranged = answer.headers.get("Content-Range", "")
            if answer.status == 206 and not ranged.startswith(f"bytes {have}-"):
                raise DatasetError(
                    f"{url} answered with a range not asked for ({ranged}): delete {part}, retry."
                )
            have = have if answer.status == 206 else 0
            length = answer.headers.get("Content-Length")
            total = have + int(length) if length else None
            bar = tqdm(total=total, initial=have, desc=part.stem, unit="B", unit_scale=True)
            with bar, part.open("ab" if have else "wb") as file:
                while block := answer.read(CHUNK):
                    file.write(block)
                    bar.update(len(block))
    except urllib.error.HTTPError as error:
        if error.code == 416:  # nothing left to send: the checksum tells whether that is right
            return
        if error.code < 500:
            raise DatasetError(
                f"{url} answered {error.code} {error.reason}: is the address right?"
            ) from error
        raise _stopped(url, part, f"{error.code} {error.reason}") from error
    except (OSError, http.client.HTTPException) as error:
        raise _stopped(
            url, part, str(getattr(error, "reason", error)) or type(error).__name__
        ) from error
    if total is not None and part.stat().st_size < total:
        raise _stopped(url, part, f"of {total:,}, the connection was closed")


def _stopped(url: str, part: Path, reason: str) -> DatasetError:
    have = part.stat().st_size if part.exists() else 0
    return DatasetError(
        f"The download of {url} stopped at {have:,} bytes ({reason}). Call again: it goes on from there."
    )


def extract(archive: Path, folder: Path) -> None:
    """Extracts the folder of the name of `folder` in `archive`; `folder` appears only when it is whole."""
    if not hasattr(tarfile, "data_filter"):
        raise DatasetError("This Python cannot extract archives safely: use 3.11.4 or later.")
    with tempfile.TemporaryDirectory(
        prefix=f"{folder.name}.partial-", dir=folder.parent
    ) as partial:
        try:
            with tarfile.open(archive) as tar:
                for member in tqdm(tar, desc=f"extracting {archive.name}", unit="file"):
                    if not (member.isfile() or member.isdir()):
                        raise DatasetError(
                            f"{archive} holds {member.name!r}, neither file nor folder: not extracted."
                        )
                    tar.extract(member, partial, filter="data")
        except tarfile.FilterError as error:
            raise DatasetError(
                f"{archive} was not extracted, as it would write elsewhere: {error}"
            ) from error
        except tarfile.TarError as error:
            raise DatasetError(f"{archive} cannot be read as a tar archive: {error}") from error
        inner = Path(partial) / folder.name
        if not inner.is_dir():
            raise DatasetError(f"{archive} holds no folder {folder.name!r}.")
        inner.rename(folder)
