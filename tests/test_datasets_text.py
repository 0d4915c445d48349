"""The bundled text: whole, and found where Colab has it."""

import hashlib

import pytest

from lab_utils import datasets
from lab_utils.datasets import text


def test_the_play_is_the_file_that_the_checksum_names():
    digest, name = (text.PLAY.parent / "SHA256SUMS").read_text().split()
    assert hashlib.sha256(text.PLAY.read_bytes()).hexdigest() == digest and name == text.PLAY.name
    play = datasets.play()
    assert len(play) == 125_179 and play.endswith("[Exeunt]\n")


def test_the_play_is_found_in_a_clone_on_colab(tmp_path, monkeypatch):
    monkeypatch.setattr(text, "PLAY", tmp_path / text.PLAY.name)
    monkeypatch.setattr(text, "COLAB", tmp_path)
    with pytest.raises(datasets.DatasetError, match="clone"):
        datasets.play()
    folder = tmp_path / "clone" / "datasets" / "shakespeare"
    folder.mkdir(parents=True)
    (folder / text.PLAY.name).write_text("Exeunt")
    assert datasets.play() == "Exeunt"
