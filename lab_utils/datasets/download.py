"""The photographs of `flower_photos`, downloaded so that a broken line costs only what was not there yet."""

import http.client
import os
import tarfile
import tempfile
import urllib.error
import urllib.request
from pathlib import Path

from tqdm import tqdm

from lab_utils.datasets.photos import DatasetError, Photos, file_sha256, write_split

# As tensorflow-datasets 4.9.10 publishes them, in datasets/tf_flowers/checksums.tsv.
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
        extract(archive, folder)
    photos = write_split(folder, to, eval_fraction)
    print(
        "Licensed CC BY 2.0: name the photographers wherever you show or share their photographs. "
        f"They stand in {folder / 'LICENSE.txt'}"
    )
    return photos


def fetch(url: str, path: Path, sha256: str) -> None:
    """Downloads `url` to `path`, by way of `path`.part, which later calls go on from."""
    part = path.with_name(path.name + ".part")
    part.touch()
    try:
        _receive(url, part)
    except urllib.error.HTTPError as error:
        if error.code != 416:  # else all of it is there already
            raise DatasetError(f"{url} answered {error.code} {error.reason}.") from error
    except (OSError, http.client.HTTPException) as error:
        raise DatasetError(
            f"The download of {url} stopped at {part.stat().st_size:,} bytes "
            f"({getattr(error, 'reason', error)}). Call again: it goes on from there."
        ) from error
    digest = file_sha256(part)
    if digest != sha256:
        size = part.stat().st_size
        part.unlink()
        raise DatasetError(
            f"{url} gave {size:,} bytes with SHA-256 {digest}, not {sha256}: it was changed, or something "
            "answered in its place (a proxy, a login page). Call again: all of it is downloaded again."
        )
    part.replace(path)


def _receive(url: str, part: Path) -> None:
    """Appends to `part` what it lacks of `url`, or writes all where all is sent."""
    have = part.stat().st_size
    request = urllib.request.Request(url, headers={"Range": f"bytes={have}-"} if have else {})
    with urllib.request.urlopen(request, timeout=TIMEOUT) as answer:
        if answer.headers.get("Content-Type", "").startswith("text/"):
            raise OSError("a page of text came: is there a proxy, or a login page?")
        have = have if answer.status == 206 else 0
        length = answer.headers.get("Content-Length")
        total = have + int(length) if length else None
        bar = tqdm(total=total, initial=have, desc=part.stem, unit="B", unit_scale=True)
        with bar, part.open("ab" if have else "wb") as file:
            while block := answer.read1(CHUNK):
                bar.update(file.write(block))
    if total and part.stat().st_size < total:
        raise OSError(f"of {total:,}, the connection was closed")


def extract(archive: Path, folder: Path) -> None:
    """Extracts the folder of the name of `folder` in `archive`; `folder` appears only when it is whole."""
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".extracting-") as partial:
        try:
            with tarfile.open(archive) as tar:
                tar.extractall(partial, filter="data")
        except tarfile.TarError as error:
            raise DatasetError(f"{archive} cannot be extracted ({error}): move it away.") from error
        inner = Path(partial) / folder.name
        if not inner.is_dir():
            raise DatasetError(f"{archive} holds no folder {folder.name!r}: move it away.")
        inner.rename(folder)
