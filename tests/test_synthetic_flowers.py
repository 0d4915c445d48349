"""Drawn flowers: the same ones everywhere, of the sizes of real photographs."""

import io
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from lab_utils import datasets

sys.path.append(str(Path(__file__).parents[1] / "datasets" / "flowers" / "make"))

import draw
from scenes import SIZES


def pixels(file) -> np.ndarray:
    with Image.open(file) as image:
        assert image.format == "JPEG" and image.mode == "RGB"
        return np.asarray(image, np.int16)


@pytest.mark.parametrize("label", draw.CLASSES)
def test_bundled_pictures_can_be_drawn_again(label):
    """Within what another release of the JPEG encoder may change, and far from another picture."""
    for index in (0, 59):
        kept = pixels(datasets.bundled().folder / label / f"{label}_{index:05d}.jpg")
        drawn = pixels(io.BytesIO(draw.render(label, index, 2026)))
        assert drawn.shape == kept.shape
        assert np.abs(drawn - kept).mean() < 2


def test_depends_on_seed_class_and_index_alone(tmp_path):
    """Also in processes of its own."""
    code = (
        "import pathlib, sys, numpy\n"
        f"sys.path.append({sys.path[-1]!r})\nimport draw\n"
        "if __name__ == '__main__':\n"
        "    numpy.random.seed(5)\n"
        f"    draw.write(pathlib.Path({str(tmp_path)!r}), 1, seed=4, num_workers=2)\n"
    )
    (tmp_path / "script.py").write_text(code)
    environment = os.environ | {"PYTHONHASHSEED": "1"}
    command = [sys.executable, tmp_path / "script.py"]
    subprocess.run(command, env=environment, check=True, capture_output=True)
    drawn = {label: draw.render(label, 0, seed=4) for label in draw.CLASSES}
    for label, picture in drawn.items():
        assert (tmp_path / label / f"{label}_00000.jpg").read_bytes() == picture
    assert len(set(drawn.values())) == 5
    assert draw.render("roses", 0, seed=5) != drawn["roses"]


def test_sizes_are_those_of_the_photographs():
    for file in datasets.bundled().folder.glob("*/*.jpg"):
        with Image.open(file) as image:
            assert image.size in SIZES


def test_the_program_draws_a_set_like_the_bundled_one(tmp_path):
    maker = Path(draw.__file__).parent
    options = ["--output_dir", "set", "--per_class", "2", "--num_workers", "1"]
    subprocess.run([sys.executable, maker, *options], cwd=tmp_path, check=True)
    lists = [(tmp_path / "set" / name).read_text() for name in ("train.csv", "eval.csv")]
    pictures = [line.split(",")[0] for line in "".join(lists).splitlines()]
    assert len(pictures) == 10 and all((tmp_path / "set" / path).is_file() for path in pictures)
    assert len((tmp_path / "set" / "labels.txt").read_text().split()) == 5
