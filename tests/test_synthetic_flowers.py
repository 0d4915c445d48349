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
from anatomy import Pose, pick
from brush import Finish, Layer, outline, petal, ramp
from heads import HEADS
from palettes import PALETTES
from scenes import SIZES

LIGHT = np.array([0.0, 0.0, 1.0])


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
    environment = os.environ | {"PYTHONHASHSEED": "1"}
    code = (
        "import pathlib, sys, numpy\n"
        f"sys.path.append({sys.path[-1]!r})\nimport draw\n"
        "if __name__ == '__main__':\n"
        "    numpy.random.seed(5)\n"
        f"    draw.write(pathlib.Path({str(tmp_path)!r}), 2, seed=4, num_workers=2)\n"
    )
    script = tmp_path / "twice.py"
    script.write_text(code)
    subprocess.run([sys.executable, script], env=environment, check=True, capture_output=True)
    drawn = {}
    for label in draw.CLASSES:
        for index in (0, 1):
            drawn[label, index] = draw.render(label, index, seed=4)
            assert (tmp_path / label / f"{label}_{index:05d}.jpg").read_bytes() == drawn[
                label, index
            ]
    assert len(set(drawn.values())) == 10
    assert draw.render("roses", 0, seed=5) != drawn["roses", 0]


def test_sizes_are_those_of_the_photographs():
    bundled = datasets.bundled()
    sizes = []
    for file in bundled.folder.glob("*/*.jpg"):
        with Image.open(file) as image:
            sizes.append(image.size)
    widths, heights = np.array(sizes).T
    assert set(sizes) <= set(SIZES)
    assert (
        widths.min() >= 145
        and widths.max() <= 640
        and heights.min() >= 180
        and heights.max() <= 436
    )
    assert np.median(widths) == 320 and np.median(heights) == 240


def test_classes_share_their_colours():
    for label in draw.CLASSES:
        others = set().union(*(PALETTES[other] for other in PALETTES if other != label))
        assert sum(
            weight for colour, weight in PALETTES[label].items() if colour in others
        ) >= 0.85 * sum(PALETTES[label].values())


@pytest.mark.parametrize("label", draw.CLASSES)
@pytest.mark.parametrize("tilt", [0.0, 1.0])
def test_heads_keep_to_their_radius(label, tilt):
    rng = np.random.RandomState(0)
    layer = Layer(160, 160)
    colours = ramp((0.5, 0.2, 0.2), (0.9, 0.8, 0.1))
    HEADS[label](layer, rng, Pose(np.array([80.0, 80.0]), 50, tilt, 0.2), LIGHT, colours)
    assert np.isfinite(layer.rgb).all() and layer.alpha.min() >= 0 and layer.alpha.max() <= 1
    rows, columns = np.nonzero(layer.alpha[..., 0] > 0.5)
    distance = np.hypot(rows - 80, columns - 80)
    assert len(rows) > 800 and distance.max() < 50 * 1.35
    assert abs(rows.mean() - 80) < 15 and abs(columns.mean() - 80) < 15


def test_petal_has_the_shape_of_its_outline():
    layer = Layer(60, 120)
    base, along, across = np.array([10.0, 30.0]), np.array([100.0, 0]), np.array([0, 20.0])
    shape = outline(0.5)
    petal(layer, base, along, across, shape, ramp((1, 1, 1), (1, 1, 1)), LIGHT, Finish())
    area = layer.alpha.sum()
    assert area == pytest.approx(2 * 20 * 100 * shape.mean(), rel=0.02)
    assert layer.alpha[30, 60] == 1 and layer.alpha[30, 5] == 0 and layer.alpha[5, 12] == 0


@pytest.mark.parametrize("base", [(-500.0, 20.0), (20.0, 500.0), (58.0, 30.0)])
def test_petal_partly_or_wholly_outside_the_picture(base):
    layer = Layer(60, 60)
    along, across = np.array([30.0, 5.0]), np.array([-2.0, 9.0])
    petal(
        layer,
        np.array(base),
        along,
        across,
        outline(0.5),
        ramp((1, 0, 0), (1, 1, 0)),
        LIGHT,
        Finish(),
    )
    assert (layer.alpha.max() > 0) == (base == (58.0, 30.0))


def test_pick_follows_the_weights():
    rng = np.random.RandomState(0)
    drawn = [pick(rng, {"a": 3, "b": 1, "never": 0}) for _ in range(2000)]
    assert drawn.count("never") == 0 and 0.71 < drawn.count("a") / 2000 < 0.79
