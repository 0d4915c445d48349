"""The pictures: axes with names and units, and data at the edges."""

import io
import os
import subprocess
import sys

import numpy as np
import pytest
from PIL import Image

from lab_utils.notebook import plots

DOLLARS = ["$_$", "a $5 and $6 rose", r"$\unknown$"]
LONG = ["Taraxacum officinale subsp. vulgare", "rose", "Tulipa gesneriana var. schrenkii"]


def drawn(figure) -> bytes:
    """The figure as PNG; matplotlib lays it out, and complains, only now."""
    file = io.BytesIO()
    figure.savefig(file, format="png", dpi=60)
    return file.getvalue()


def texts(axes) -> list[str]:
    return [text.get_text() for text in axes.texts]


def pictures(number: int) -> list[Image.Image]:
    sizes = [(300, 40), (40, 300), (1, 1), (600, 400)]
    modes = ["RGB", "L", "RGBA", "CMYK"]
    return [Image.new(modes[i % 4], sizes[i % 4]) for i in range(number)]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("number", [1, 4, 5])
@pytest.mark.parametrize("labels", [["a", "b", "c"], LONG])
def test_predictions_of_any_number_and_shape(number, labels):
    shares = np.tile([0.2, 0.5, 0.3], (number, 1))
    truths = [(1, 0, None)[i % 3] for i in range(number)]
    figure = plots.predictions(pictures(number), shares, labels, truths)
    assert len(figure.axes) == 2 * number
    assert drawn(figure)
    titles = [axes.get_title(loc="left") for axes in figure.axes[::2]]
    for title, truth in zip(titles, truths, strict=True):
        assert title.startswith(f"{labels[1]}, 50%")
        assert (f"but is {labels[0][:17]}" in title) is (truth == 0)
    assert {axes.get_xlabel() for axes in figure.axes[1::2]} == {"probability"}


def test_class_names_with_dollar_signs_are_drawn_as_they_are(monkeypatch):
    """Not as formulas, which fail or lose their signs."""

    def formula(*_, **__):
        raise AssertionError("a class name was drawn as a formula")

    monkeypatch.setattr("matplotlib.mathtext.MathTextParser.parse", formula)
    shares = np.tile([0.2, 0.5, 0.3], (3, 1))
    assert drawn(plots.predictions(pictures(3), shares, DOLLARS, [1, 0, None]))
    assert drawn(plots.confusion(np.eye(3, dtype=int), DOLLARS))


def test_predictions_are_coloured_by_truth():
    shares = np.tile([0.2, 0.8], (3, 1))
    figure = plots.predictions(pictures(3), shares, ["a", "b"], [1, 0, None])
    colours = [axes._left_title.get_color() for axes in figure.axes[::2]]
    assert colours == [plots.RIGHT, plots.WRONG, plots.NOTE]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("labels", [["a", "b", "c"], LONG])
def test_confusion_has_axes_counts_and_accuracy(labels):
    matrix = [[5, 1, 0], [0, 4, 0], [0, 0, 0]]
    figure = plots.confusion(matrix, labels)
    axes, bar = figure.axes
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("predicted", "true")
    assert bar.get_ylabel() == "share of the true class"
    assert texts(axes) == [str(count) for row in matrix for count in row]
    assert "10 held-out images" in axes.get_title()
    assert "90.0%" in axes.get_title()
    named = [label.get_text() for label in axes.get_yticklabels()]
    assert all(label.startswith(name[:15]) for label, name in zip(labels, named, strict=True))
    assert drawn(figure)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("points", [0, 1, 3])
def test_learning_curves_have_axes_and_units(points):
    history = [{"step": 10 * i, "accuracy": 0.5, "cross_entropy": 1.0} for i in range(1, 4)]
    training = [(step, 2.0) for step in range(points)]
    figure = plots.learning_curves(training, history[: max(1, points)], chance=0.2)
    loss, accuracy = figure.axes
    assert loss.get_xlabel() == accuracy.get_xlabel() == "global step"
    assert loss.get_ylabel() == "cross-entropy (nats)"
    assert accuracy.get_ylabel() == "accuracy"
    assert accuracy.get_ylim() == (0, 1)
    assert drawn(figure)


def test_a_user_without_a_home_is_told_nothing_of_matplotlibs_cache(tmp_path):
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
