"""The pictures: axes with names and units, data at the edges, and a ground that any theme has."""

import io
import os
import subprocess
import sys

import numpy as np
import pytest
from matplotlib_inline.backend_inline import _fetch_figure_metadata
from PIL import Image

from lab_utils.notebook import drawings, look, plots

LABELS = (
    ["Taraxacum officinale subsp. vulgare", "rose", "Tulipa gesneriana var. schrenkii"],
    ["$_$", "a $5 and $6 rose", r"$\unknown$"],  # drawn as they are, and not as formulas
)
pytestmark = pytest.mark.filterwarnings("error")


@pytest.fixture(autouse=True)
def no_formula(monkeypatch):
    def formula(*_, **__):
        raise AssertionError("a class name was drawn as a formula")

    monkeypatch.setattr("matplotlib.mathtext.MathTextParser.parse", formula)


def draw(figure):
    """Matplotlib lays a figure out, and complains, only now. Its ground is see-through."""
    picture = io.BytesIO()
    figure.savefig(picture, format="png", dpi=60)
    assert Image.open(picture).convert("RGBA").getpixel((0, 0))[3] == 0
    assert _fetch_figure_metadata(figure) is None, "JupyterLab would put it on a white or dark box"


@pytest.mark.parametrize("number", [1, 5])
@pytest.mark.parametrize("labels", LABELS)
def test_predictions_of_any_number_and_shape_are_coloured_by_truth(number, labels):
    sizes, modes = [(300, 40), (40, 300), (1, 1), (600, 400)], ["RGB", "L", "RGBA", "CMYK"]
    images = [Image.new(modes[i % 4], sizes[i % 4]) for i in range(number)]
    shares = np.tile([0.2, 0.5, 0.3], (number, 1))
    truths = [(1, 0, None)[i % 3] for i in range(number)]
    figure = plots.predictions(images, shares, labels, truths)
    draw(figure)
    colours = {1: plots.FILLED, 0: plots.ALARM, None: plots.BAR}
    for axes, truth in zip(figure.axes[::2], truths, strict=True):
        assert axes.get_title(loc="left").endswith("50%") is (truth != 0)
        assert axes._left_title.get_color() == colours[truth]
    assert {axes.get_xlabel() for axes in figure.axes[1::2]} == {"probability"}


@pytest.mark.parametrize("labels", LABELS)
def test_confusion_has_axes_counts_and_accuracy(labels):
    matrix = [[5, 1, 0], [0, 4, 0], [0, 0, 0]]
    figure = plots.confusion(matrix, labels)
    (axes,) = figure.axes
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("predicted", "true")
    assert [text.get_text() for text in axes.texts] == [str(n) for row in matrix for n in row]
    assert "10 held-out images" in axes.get_title() and "90.0%" in axes.get_title()
    draw(figure)


@pytest.mark.parametrize("points", [0, 3])
def test_learning_curves_have_axes_and_units(points):
    history = [{"step": 10 * i, "accuracy": 0.5, "cross_entropy": 1.0} for i in range(1, 4)]
    training = [(step, 2.0) for step in range(points)]
    figure = plots.learning_curves(training, history[: max(1, points)], chance=0.2)
    loss, accuracy = figure.axes
    assert loss.get_xlabel() == accuracy.get_xlabel() == "global step"
    assert (loss.get_ylabel(), accuracy.get_ylabel()) == ("cross-entropy (nats)", "accuracy")
    draw(figure)


DRAWINGS = ("all_reduce", "batch_to_cores", "bits", "four_changes", "machine")


@pytest.mark.parametrize("name", DRAWINGS)
def test_drawings_have_the_ground_of_the_page(name):
    getattr(drawings, name)()
    draw(drawings.plt.gcf())


def test_a_drawing_says_its_alternative_text_in_a_notebook(monkeypatch):
    shown = []
    monkeypatch.setattr(look, "in_notebook", lambda: True)
    monkeypatch.setattr("IPython.display.display", lambda data, raw: shown.append(data))
    drawings.all_reduce()
    (data,) = shown
    assert "their sum is 1.3" in data["text/plain"] and "1.87" in data["text/html"]
    look.describe("2 < 3")
    assert "2 &lt; 3" in shown[1]["text/html"]


def test_a_user_without_a_home_gets_no_notice_of_matplotlibs_cache(tmp_path):
    variables = {
        name: value for name, value in os.environ.items() if name[:3] not in ("MPL", "XDG")
    }
    ran = subprocess.run(
        [sys.executable, "-c", "import lab_utils.notebook.plots, matplotlib.pyplot"],
        env=variables | {"HOME": "/proc/none", "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert (ran.returncode, ran.stderr) == (0, "")
