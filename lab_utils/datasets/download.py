"""The photographs of `flower_photos`, fetched so that a broken line costs only what was not yet there."""

import http.client
import os
import re
import tarfile
import time
import urllib.error
import urllib.request
from pathlib import Path

from tqdm import tqdm

from lab_utils.common import scratch
from lab_utils.datasets.photos import DatasetError, Photos, file_sha256, write_split

# As tensorflow-datasets 4.9.10 publishes them, in datasets/tf_flowers/checksums.tsv.
# The address is http; the checksum is what vouches for the bytes.
URL = "http://download.tensorflow.org/example_images/flower_photos.tgz"
SHA256 = "4c54ace7911aaffe13a365c34f650e71dd5bf1be0a58b464e5a7183e3e595d9c"
SIZE = 228_813_984  # bytes
TIMEOUT = 30  # seconds without a byte
WINDOW, LEAST_RATE = (
    60,
    4096,
)  # seconds, and bytes a second over them: at that rate it would take 15 hours
CHUNK = 1 << 20


def download_flower_photos(
    to: str | os.PathLike[str],
    url: str = URL,
    sha256: str = SHA256,
    eval_fraction: float = 0.2,
    size: int = SIZE,
) -> Photos:
    """Downloads, verifies, extracts and splits the 3,670 photographs; does nothing that is done already.

    In `to` there will be flower_photos.tgz, the folder flower_photos and the three files of the split. Each
    appears under its name only when it is whole.

    Args:
        to: a folder; made where it is missing.
        url: address of the archive.
        sha256: of the archive's bytes, in hexadecimal.
        eval_fraction: as for `from_folder`.
        size: of the archive, in bytes; nothing longer is received.

    Raises:
        DatasetError: the network failed (call again: it goes on from there), or it is another archive.
    """
    to = Path(to).resolve()
    folder, archive = to / "flower_photos", to / "flower_photos.tgz"
    if not folder.exists():
        to.mkdir(parents=True, exist_ok=True)
        if not archive.exists():
            fetch(url, archive, sha256, size)
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


def fetch(url: str, path: Path, sha256: str, size: int) -> None:
    """Downloads the `size` bytes of `url` to `path`, by way of `path`.part, which later calls go on from."""
    part = path.with_name(path.name + ".part")
    resumed = part.exists() and part.stat().st_size > 0
    if not (resumed and file_sha256(part) == sha256):
        if resumed and part.stat().st_size >= size:
            print(f"What was in {part} does not belong to {url}: downloading all of it again")
            part.unlink()
            resumed = False
        _receive(url, part, size)
        if resumed and file_sha256(part) != sha256:
            print(f"What was in {part} does not belong to {url}: downloading all of it again")
            part.unlink()
            _receive(url, part, size)
    got = file_sha256(part)
    if got != sha256:
        raise DatasetError(
            f"{url} gave {part.stat().st_size:,} bytes with SHA-256 {got}, not {sha256}: it was changed, or "
            f"something answered in its place (a proxy, a login page). The bytes are in {part}; calling "
            "again downloads them again."
        )
    part.replace(path)


def _receive(url: str, part: Path, size: int) -> None:
    """Appends to `part` what it lacks of the `size` bytes of `url`, or writes all where all is sent."""
    have = part.stat().st_size if part.exists() else 0
    headers = {"Accept-Encoding": "identity"}
    if have:
        headers["Range"] = f"bytes={have}-"
    try:
        with urllib.request.urlopen(
            urllib.request.Request(url, headers=headers), timeout=TIMEOUT
        ) as answer:
            start = _start(answer, url, have, size)
            _write(answer, part, start, size)
    except urllib.error.HTTPError as error:
        if error.code < 500:
            raise DatasetError(
                f"{url} answered {error.code} {error.reason}: is the address right?"
            ) from error
        raise _stopped(url, part, f"{error.code} {error.reason}") from error
    except (OSError, http.client.HTTPException) as error:
        raise _stopped(
            url, part, str(getattr(error, "reason", error)) or type(error).__name__
        ) from error
    if part.stat().st_size < size:
        raise _stopped(url, part, f"of {size:,}, the connection was closed")


def _start(answer: http.client.HTTPResponse, url: str, have: int, size: int) -> int:
    """The byte that the answer begins with.

    Raises:
        DatasetError: it is not of an archive of `size` bytes. What is there already was not touched.
    """
    ranged = answer.headers.get("Content-Range", "")
    if answer.status == 206 and not (have and ranged.startswith(f"bytes {have}-")):
        raise DatasetError(f"{url} answered with a range that was not asked for ({ranged}).")
    start = have if answer.status == 206 else 0
    length = answer.headers.get("Content-Length", "")
    announced = start + int(length) if length.isdecimal() else size
    text = answer.headers.get("Content-Type", "").startswith("text/")
    if announced != size or text:
        what = "a page of text" if text else f"{announced:,} bytes"
        raise DatasetError(
            f"{url} answered with {what} in place of an archive of {size:,} bytes: something else answered "
            "(a proxy, a login page), or it was changed. What is downloaded already stays as it is."
        )
    return start


def _write(answer: http.client.HTTPResponse, part: Path, start: int, size: int) -> None:
    """Writes the answer from byte `start` on; raises OSError where it is endless, or too slow to end."""
    bar = tqdm(total=size, initial=start, desc=part.stem, unit="B", unit_scale=True)
    with bar, part.open("ab" if start else "wb") as file:
        have = marked = start
        mark = time.monotonic()
        while block := answer.read1(CHUNK):
            have += len(block)
            if have > size:
                raise OSError(f"more than its {size:,} bytes came")
            file.write(block)
            bar.update(len(block))
            if (passed := time.monotonic() - mark) > WINDOW:
                if have - marked < LEAST_RATE * passed:
                    raise OSError(f"less than {LEAST_RATE:,} bytes a second came for {WINDOW} s")
                marked, mark = have, time.monotonic()


def _stopped(url: str, part: Path, reason: str) -> DatasetError:
    have = part.stat().st_size if part.exists() else 0
    return DatasetError(
        f"The download of {url} stopped at {have:,} bytes ({reason}). Call again: it goes on from there."
    )


def extract(archive: Path, folder: Path) -> None:
    """Extracts the folder of the name of `folder` in `archive`; `folder` appears only when it is whole."""
    if not hasattr(tarfile, "data_filter"):
        raise DatasetError("This Python cannot extract archives safely: use 3.11.4 or later.")
    with scratch.folder(f"{folder.name}.partial-", folder.parent) as partial:
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
