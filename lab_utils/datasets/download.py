"""The photographs of `flower_photos`: downloaded, verified by their checksum, extracted whole."""

import http.client
import os
import shutil
import tarfile
import tempfile
import urllib.request
from pathlib import Path

from tqdm import tqdm

from lab_utils.datasets.photos import DatasetError, Photos, file_sha256, write_split

# As tensorflow-datasets 4.9.10 publishes them, in datasets/tf_flowers/checksums.tsv.
# The address is http; the checksum is what vouches for the bytes.
URL = "http://download.tensorflow.org/example_images/flower_photos.tgz"
SHA256 = "4c54ace7911aaffe13a365c34f650e71dd5bf1be0a58b464e5a7183e3e595d9c"
TIMEOUT = 30  # seconds without a byte


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
        DatasetError: the network failed, or it is another archive.
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
    """Downloads `url` to `path`, by way of `path`.part."""
    part = path.with_name(path.name + ".part")
    try:
        with urllib.request.urlopen(url, timeout=TIMEOUT) as answer, part.open("wb") as file:
            size = int(answer.headers.get("Content-Length", 0)) or None
            with tqdm.wrapattr(answer, "read", total=size, desc=path.name) as stream:
                shutil.copyfileobj(stream, file)
    except (OSError, http.client.HTTPException) as error:
        raise DatasetError(
            f"The download of {url} stopped ({error}). Call again, or where the line is bad: "
            f"`curl -C - -o {path} {url}` goes on where it broke."
        ) from error
    if (digest := file_sha256(part)) != sha256:
        raise DatasetError(
            f"{url} gave {part.stat().st_size:,} bytes with SHA-256 {digest}, not {sha256}: they were cut "
            "off or changed, or something answered in their place (a proxy, a login page). Call again."
        )
    part.replace(path)


def extract(archive: Path, folder: Path) -> None:
    """Extracts the folder of the name of `folder` in `archive`; `folder` appears only when it is whole."""
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".extracting-") as partial:
        try:
            with tarfile.open(archive) as tar:
                tar.extractall(partial, filter="data")
        except (tarfile.TarError, EOFError) as error:
            raise DatasetError(f"{archive} cannot be extracted ({error}): move it away.") from error
        inner = Path(partial) / folder.name
        if not inner.is_dir():
            raise DatasetError(f"{archive} holds no folder {folder.name!r}: move it away.")
        inner.rename(folder)
