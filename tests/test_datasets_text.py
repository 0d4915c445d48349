"""The bundled text is whole."""

import hashlib

from lab_utils import datasets
from lab_utils.datasets import photos


def test_the_play_is_the_file_that_the_checksum_names():
    folder = photos.IN_CHECKOUT / "shakespeare"
    digest, name = (folder / "SHA256SUMS").read_text().split()
    assert hashlib.sha256((folder / name).read_bytes()).hexdigest() == digest
    play = datasets.play()
    assert len(play) == 125_179 and play.endswith("[Exeunt]\n")
