"""The pictures: axes with names and units, data at the edges, and a ground that any theme has."""

import io
import os
import re
import subprocess
import sys
import types
from xml.etree import ElementTree

import numpy as np
import pytest
from matplotlib_inline.backend_inline import _fetch_figure_metadata
from matplotlib_inline.config import InlineBackend
from PIL import Image

from lab_utils.notebook import drawings, look, plots, rates

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


@pytest.fixture
def shown(monkeypatch):
    """The figures that a cell shows, each with its text."""
    found = []
    for module in (look, plots, rates):
        monkeypatch.setattr(module, "show", lambda figure, alt: found.append((figure, alt)))
    return found


def test_bits_are_told_by_their_parts(shown):
    drawings.bits()
    ((figure, alt),) = shown
    draw(figure)
    assert "bfloat16 has 8 bits of exponent and 7 of digits: 1;" in alt


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("machine", "16 by 16 chips with 512 cores"),
        ("four_changes", "optimizer = v1.tpu.CrossShardOptimizer(optimizer)"),
        ("all_reduce", "their sum is 1.3, and every core gets that sum back"),
        ("beam_graph", "rows.csv goes to ReadFromText, then to ParDo with ToExample."),
        ("matrix_unit", "other squares are idle"),
        ("one_host", "8 cores with 128 examples each"),
        ("two_hosts", "16 cores with 64 examples each"),
        ("tile", "[24, 384] in tiles of 8 by 128"),
        ("filled_matrix_unit", "8% of a grid of 128 by 128, 2% of a grid of 256 by 256"),
    ],
)
def test_drawings_from_a_file_are_shown_with_their_own_description(name, says, monkeypatch, capsys):
    outputs = []
    display = lambda data, raw: outputs.append(data)  # noqa: E731
    monkeypatch.setattr("IPython.display.display", display)
    getattr(drawings, name)()
    assert says in capsys.readouterr().out and not outputs  # no notebook: the text alone
    monkeypatch.setattr("IPython.get_ipython", lambda: True)
    for formats in ({"png"}, {"png", "svg"}):  # in a notebook, and as the build asks
        backend = types.SimpleNamespace(figure_formats=formats)
        monkeypatch.setattr(InlineBackend, "instance", lambda backend=backend, **_: backend)
        getattr(drawings, name)()
    data, built = outputs
    assert says in data["text/plain"] and data["text/html"].startswith("<img alt=")
    assert "image/svg+xml" not in data  # a solution does not store it
    assert ElementTree.fromstring(built["image/svg+xml"]).get("role") == "img"


def test_drawings_of_the_input_say_what_they_show(shown):
    drawings.tfrecord(b"1234567890", b"12345678")
    plots.bars({"one": 2.0, "another": 0.5}, "s", "seconds (measured here)")
    for figure, _ in shown:
        draw(figure)
    (_, record), (_, bars) = shown
    assert "10 bytes, of which 8 are the JPEG" in record
    assert "one: 2 s; another: 0.5 s" in bars


def test_prefetch_hides_the_transfer_and_not_the_work(shown):
    """The shares are those of a queue between a thread that prepares, one that hands over, and a core."""
    drawings.feeding()
    ((figure, alt),) = shown
    draw(figure)
    shares = [int(share) for share in re.findall(r"busy (\d+)%", alt)]
    assert shares == [83, 100, 62]  # 5 of 4 + 2; 5 of 5; 5 of 8


def ladder(rounds):
    """A ladder whose rungs are rounds of (images/s, CPU ms, share of the limit, the limit)."""
    made = object.__new__(rates.Ladder)
    made.batch, made.rungs = 32, {name: np.array(values) for name, values in rounds.items()}
    return made


def test_a_rung_stands_beside_the_limit_of_its_own_seconds(shown):
    """Where other programs slow the machine, the limit of one rung is not that of another."""
    serial = [(500, 2.0, 0.5, 1000), (400, 2.1, 0.4, 1000), (900, 1.9, 0.9, 1000)]
    ladder({"serial": serial, "parallel": [(1000, 2.0, 0.5, 2000)] * 3}).draw()
    ((figure, alt),) = shown
    draw(figure)
    (axes,) = figure.axes
    widths = [bar.get_width() for bar in axes.patches]
    assert widths == [2.0, 2.0, 2.0, 1.0]  # CPU and elapsed ms of each rung, from 0
    assert axes.get_xlim()[0] <= 0
    marks = [lines.get_segments()[0][0][0] for lines in axes.collections]
    assert marks == [1.0, 0.5]  # ms of the limit, measured in turns with each
    assert "serial: 2.000 ms CPU time, 2.000 ms, 500 images/s, 0.5 of the limit" in alt


def test_a_killed_job_is_drawn_over_its_restart(shown):
    runs = {"killed": (0, 120), "killed again": (50, 70), "restarted": (50, 300)}
    plots.job(runs, {100: 0.31, 300: 0.65}, every=50)
    ((figure, alt),) = shown
    draw(figure)
    above, below = figure.axes
    assert [text.get_text() for text in above.texts] == ["31%", "65%"]
    bars = [(bar.get_x(), bar.get_x() + bar.get_width()) for bar in below.patches]
    assert bars == list(runs.values())
    crosses = [tuple(line.get_xydata()[0]) for line in below.lines]
    assert crosses == [(120, 0), (70, 1)], "the last start was not killed"
    assert "killed: steps 0 to 120" in alt and "65% at step 300" in alt


def test_bars_of_shapes_say_what_they_show(shown):
    plots.columns({1: 0, 2: 4, 3: 1}, "examples per core", "lost,\nof 9 (computed)")
    plots.panels({"MFLOP": {"one": 2.0, "two": 1.0}, "MB": {"one": 3.0, "two": 0.5}}, "Computed")
    for figure, _ in shown:
        draw(figure)
    (columns, lost), (panels, costs) = shown
    assert [bar.get_height() for bar in columns.axes[0].patches] == [0, 4, 1]
    assert "lost, of 9 (computed)" in lost and "4 at 2" in lost
    assert [axes.get_xlabel() for axes in panels.axes] == ["MFLOP", "MB"]
    assert "MB: one 3.00, two 0.50" in costs


def test_panels_without_figures_say_so(shown, capsys):
    """Where there is no TPU compiler, each panel is there and empty."""
    plots.panels({"MFLOP": {}, "MB": {}}, "Computed by the TPU compiler")
    assert (
        not shown
        and "Computed by the TPU compiler: there are no figures here" in capsys.readouterr().out
    )


def test_a_figure_with_a_text_is_a_picture_with_that_text():
    figure = plots.accuracies({"a <guess>": 0.2, "this model": 0.65}, 60)
    assert "this model: 65% ± 6%" in repr(figure)
    html = figure._repr_html_()
    assert 'alt="' in html and "a &lt;guess&gt;: 20% ± 5%" in html and "base64," in html
    assert plots.Figure()._repr_html_() is None


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
