"""The photographs of `flower_photos`: downloaded, verified by their checksum, and split."""

import os
from pathlib import Path

from lab_utils.datasets.photos import DatasetError, Photos, from_folder

# As tensorflow-datasets 4.9.10 publishes them, in datasets/tf_flowers/checksums.tsv.
# The address is http; the checksum is what vouches for the bytes.
URL = "http://download.tensorflow.org/example_images/flower_photos.tgz"
SHA256 = "4c54ace7911aaffe13a365c34f650e71dd5bf1be0a58b464e5a7183e3e595d9c"


def download_flower_photos(to: str | os.PathLike[str]) -> Photos:
    """Downloads, verifies, extracts and splits the 3,670 photographs; what is downloaded already stays.

    In `to` there will be flower_photos.tgz, the photographs in flower_photos_extracted/flower_photos, and the
    three files of the split.

    Args:
        to: a folder; made where it is missing.

    Raises:
        DatasetError: the network failed, or it is another archive.
    """
    import keras

    to = Path(os.path.realpath(to))
    to.mkdir(parents=True, exist_ok=True)
    place = {"cache_dir": str(to), "cache_subdir": ""}
    try:
        extracted = keras.utils.get_file(
            "flower_photos.tgz", URL, file_hash=SHA256, extract=True, **place
        )
    except Exception as error:  # Keras raises this very class
        reason = str(error).removesuffix(".")
        raise DatasetError(
            f"{URL} could not be downloaded: {reason}. Call again; where the line breaks each "
            f"time, `curl -C - -o {to / 'flower_photos.tgz'} {URL}` goes on where it broke."
        ) from error
    folder = Path(extracted) / "flower_photos"
    photos = from_folder(folder, to)
    print(
        "Licensed CC BY 2.0: name the photographers wherever you show or share their photographs. "
        f"Their names are in {folder / 'LICENSE.txt'}"
    )
    return photos
