"""Figures of the flowers job and of the labs, each as a matplotlib Figure."""

import io
import os
from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib import figure as matplotlib_figure
from numpy.typing import ArrayLike
from PIL import Image

from lab_utils.common import files
from lab_utils.notebook.look import (
    ALARM,
    BAR,
    FILLED,
    NEUTRAL,
    picture,
    show,
    style_figures,
)

BARS = 6  # classes shown under a photograph
_PALE = (NEUTRAL, 0.5)
style_figures()


class Figure(matplotlib_figure.Figure):
    """A figure that a cell shows without pyplot, too.

    Attributes:
        alt: what it shows, for those who cannot see it; "" for no such text.
    """

    alt = ""

    def __repr__(self) -> str:
        return self.alt or super().__repr__()

    def _repr_html_(self) -> str | None:
        return picture(self._repr_png_(), self.alt) if self.alt else None

    def _repr_png_(self) -> bytes:
        picture = io.BytesIO()
        self.savefig(picture, format="png", dpi=110)
        return picture.getvalue()


def _short(label: str, width: int) -> str:
    """The label, cut where it is long; its dollar signs escaped, which matplotlib takes for formulas."""
    text = label if len(label) <= width else label[: width - 1] + "…"
    return text.replace("$", r"\$")


def save(figure: Figure, path: str | os.PathLike[str]) -> None:
    """Writes a figure as PNG; raises OSError where it cannot."""
    files.write(path, figure._repr_png_())


def predictions(
    images: Sequence[Image.Image],
    probabilities: np.ndarray,
    labels: Sequence[str],
    truths: Sequence[int | None],
) -> Figure:
    """Photographs, each over bars of its class probabilities: the six highest, in the order of `labels`.

    At most six stand in a row, which fills a slide.

    Args:
        images: PIL images of any size.
        probabilities: float [images, classes], rows summing to 1.
        labels: the class names.
        truths: the true class of each image where known; the predicted bar is green when it is right,
            red when it is wrong, blue when the truth is not known.
    """
    rows = -(-len(images) // 6)
    columns = -(-len(images) // rows)
    figure = Figure(figsize=(2.1 * columns, 2.9 * rows))  # names stay legible across a notebook
    grid = figure.add_gridspec(2 * rows, columns, height_ratios=[2.1, 1] * rows)
    told = []
    for index, (image, shares, truth) in enumerate(zip(images, probabilities, truths, strict=True)):
        row, column = divmod(index, columns)
        best = int(np.argmax(shares))
        colour = BAR if truth is None else FILLED if truth == best else ALARM

        photograph = figure.add_subplot(grid[2 * row, column])
        thumbnail = image.convert("RGB")
        thumbnail.thumbnail((320, 320))
        photograph.imshow(thumbnail)
        photograph.set_axis_off()
        photograph.set_anchor("NW")  # the tops of a row, and its titles, stand at one height
        title = f"{_short(labels[best], 20)}, {shares[best]:.0%}"
        if truth is not None and truth != best:
            title += f"\nbut is {_short(labels[truth], 18)}"
        photograph.set_title(title, fontsize=10, color=colour, loc="left")
        told.append(title.replace("\n", ", "))

        bars = figure.add_subplot(grid[2 * row + 1, column])
        top = np.sort(np.argsort(shares)[-BARS:])
        places = range(len(top))
        colours = [colour if i == best else _PALE for i in top]
        bars.barh(places, shares[top], color=colours)
        bars.set_yticks(places, [_short(labels[i], 14) for i in top], fontsize=8)
        bars.tick_params(axis="y", length=0)
        bars.invert_yaxis()
        bars.set_xlim(0, 1)
        bars.set_xticks([0, 0.5, 1], ["0%", "50%", "100%"], fontsize=7)
        bars.set_xlabel("probability", fontsize=7, labelpad=1)
    figure.alt = "Pictures with the class that the model predicts. " + "; ".join(told) + "."
    return figure


def confusion(matrix: ArrayLike, labels: Sequence[str]) -> Figure:
    """A confusion matrix, int [classes, classes], rows the true classes; cells show counts."""
    from sklearn.metrics import ConfusionMatrixDisplay

    matrix = np.asarray(matrix)
    figure = Figure(figsize=(0.9 * len(labels) + 3, 0.8 * len(labels) + 1.8))
    axes = figure.add_subplot()
    names = [_short(label, 16) for label in labels]
    display = ConfusionMatrixDisplay(matrix, display_labels=names)
    display.plot(cmap="Blues", ax=axes, xticks_rotation=30, colorbar=False)
    axes.set(xlabel="predicted", ylabel="true")
    accuracy = np.trace(matrix) / max(1, matrix.sum())
    axes.set_title(
        f"{matrix.sum()} held-out images\naccuracy {accuracy:.1%} (measured here)", fontsize=10
    )
    return figure


def learning_curves(
    training: Sequence[tuple[int, float]], history: Sequence[dict], chance: float
) -> Figure:
    """Loss and accuracy over steps.

    Args:
        training: (step, training loss) pairs, loss in nats with its regularisation.
        history: evaluations, each with "step", "accuracy" and "cross_entropy" (nats).
        chance: the accuracy of a guess.
    """
    figure = Figure(figsize=(9, 3.4))
    loss, accuracy = figure.subplots(1, 2)
    steps = [record["step"] for record in history]
    loss.plot(
        *np.transpose(training or [(0, np.nan)]), color=_PALE, label="training, with weight decay"
    )
    accuracy.axhline(chance, color=NEUTRAL, linestyle=":", label="a guess")
    for axes, key, label, top in (
        (loss, "cross_entropy", "cross-entropy (nats)", None),
        (accuracy, "accuracy", "accuracy", 1),
    ):
        values = [record[key] for record in history]
        axes.plot(steps, values, "o-", color=NEUTRAL, label="held out")
        axes.set(xlabel="global step", ylabel=label, xlim=(0, None), ylim=(0, top))
        axes.legend()
    last = history[-1]
    figure.alt = (
        f"Loss and accuracy over {last['step']} steps. At the end the held-out cross-entropy is "
        f"{last['cross_entropy']:.2f} nats, and the held-out accuracy {last['accuracy']:.0%}; a guess has "
        f"{chance:.0%}."
    )
    return figure


def strip(files: Sequence[os.PathLike[str]], what: str) -> None:
    """Shows pictures in a row, from their files; `what` they are, for those who cannot see them."""
    figure = Figure(figsize=(9, 1))
    for axes, file in zip(figure.subplots(1, len(files)), files, strict=True):
        axes.imshow(Image.open(file))
        axes.set_axis_off()
    show(figure, f"{len(files)} {what}.")


def rows(pictures: Mapping[str, ArrayLike]) -> Figure:
    """Rows of small pictures, float [count, height, width, 3] from -1 to 1, each row with its name."""
    columns = max(map(len, pictures.values()))
    figure = Figure(figsize=(7.5, 0.9 * len(pictures)))
    grid = figure.subplots(len(pictures), columns, squeeze=False)
    for line, (name, images) in zip(grid, pictures.items(), strict=True):
        for axes, image in zip(line, images, strict=True):
            axes.imshow(np.clip(np.asarray(image) / 2 + 0.5, 0, 1))
            axes.set(xticks=[], yticks=[])
            axes.spines[:].set_visible(False)
        line[0].set_ylabel(name, fontsize=8)
    figure.alt = f"Rows of {columns} pictures: {'; '.join(pictures)}."
    return figure


def accuracies(shares: Mapping[str, float], count: int) -> Figure:
    """Bars of accuracies on `count` pictures, 0 to 1, each with its standard error; the last stands out."""
    figure = Figure(figsize=(7.5, 0.5 * len(shares) + 0.8))
    axes = figure.add_subplot()
    errors = [np.sqrt(share * (1 - share) / count) for share in shares.values()]
    colours = [_PALE] * (len(shares) - 1) + [f"{BAR}80"]  # so that the error's line shows on it
    axes.barh(
        list(shares), list(shares.values()), xerr=errors, color=colours, ecolor=NEUTRAL, capsize=3
    )
    for row, (share, error) in enumerate(zip(shares.values(), errors, strict=True)):
        axes.text(share + error + 0.02, row, f"{share:.0%} ± {error:.0%}", va="center")
    axes.invert_yaxis()
    axes.set_xlim(0, 1.1)
    axes.set_xlabel(f"share of {count} held-out pictures that are right (measured here)")
    told = [
        f"{name}: {s:.0%} ± {e:.0%}" for (name, s), e in zip(shares.items(), errors, strict=True)
    ]
    figure.alt = f"Share of {count} held-out pictures that are right. {'; '.join(told)}."
    return figure


def bars(values: Mapping[str, float], unit: str, label: str) -> None:
    """Shows values as bars from 0, each with its number; `unit` stands behind it.

    Args:
        values: by name, from top to bottom.
        label: of the axis: what the values are, their unit and kind.
    """
    figure = bar_figure(
        {name: (value, f"{value:.3g} {unit}") for name, value in values.items()}, label
    )
    show(figure, figure.alt)


def bar_figure(values: Mapping[str, tuple[float, str]], label: str) -> Figure:
    """Values as bars from 0.

    Args:
        values: by name, from top to bottom: each with the text of its number.
        label: of the axis: what the values are, their unit and kind.
    """
    figure = Figure(figsize=(7.5, 0.4 * len(values) + 0.8))
    axes = figure.add_subplot()
    lengths = [value for value, _ in values.values()]
    drawn = axes.barh(list(values), lengths, color=BAR)
    axes.bar_label(drawn, [text for _, text in values.values()], padding=4)
    axes.invert_yaxis()
    axes.set_xlim(0, 1.2 * max(lengths, default=1.0))
    axes.set_xlabel(label)
    axes.xaxis.set_major_formatter("{x:,.10g}")  # not 1e6
    axes.locator_params(axis="x", nbins=5)
    told = [f"{name}: {text}" for name, (_, text) in values.items()]
    figure.alt = f"Bars, {label}. {'; '.join(told)}."
    return figure


def job(runs: Mapping[str, tuple[int, int]], accuracies: Mapping[int, float], every: int) -> None:
    """Shows the starts of one job over its steps, below the accuracy of its checkpoints.

    Args:
        runs: name -> (first step, last step) of each start, in order; all but the last were killed.
        accuracies: step -> accuracy, 0 to 1, of the evaluations.
        every: steps from one checkpoint to the next, which a tick marks.
    """
    figure = Figure(figsize=(7.5, 3))
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=[3, 1 + 0.3 * len(runs)])
    above.plot(list(accuracies), list(accuracies.values()), "o-", color=BAR)
    for step, accuracy in accuracies.items():
        above.annotate(
            f"{accuracy:.0%}", (step, accuracy), (0, 6), textcoords="offset points", ha="center"
        )
    above.set(ylabel="accuracy\n(measured here)", ylim=(0, 1))
    *_, last = runs
    for row, (name, (first, end)) in enumerate(runs.items()):
        below.barh(row, end - first, 0.5, first, color=BAR if name == last else _PALE)
        if name != last:
            below.plot(end, row, "x", color=ALARM, markersize=10, markeredgewidth=3)
    end = max(end for _, end in runs.values())
    below.set_yticks(range(len(runs)), list(runs))
    below.set_xticks(range(0, end + 1, every))
    below.set(xlabel=f"global step; a checkpoint every {every} steps", xlim=(0, end * 1.05))
    below.invert_yaxis()
    starts = [f"{name}: steps {first} to {end}" for name, (first, end) in runs.items()]
    points = [f"{accuracy:.0%} at step {step}" for step, accuracy in accuracies.items()]
    show(figure, f"{'; '.join(starts)}. Accuracy: {', '.join(points)}.")


def losses(runs: Mapping[str, Mapping[int, float]], kind: str) -> None:
    """Shows the losses of runs over their steps; a later one is drawn thinner, above the others.

    Args:
        runs: name -> step -> loss in nats.
        kind: of the figures, such as "measured here".
    """
    figure = Figure(figsize=(7.5, 2.4))
    axes = figure.add_subplot()
    for width, colour, (name, values) in zip((5, 1.5), (_PALE, ALARM), runs.items(), strict=False):
        axes.plot(list(values), list(values.values()), color=colour, linewidth=width, label=name)
    axes.set(xlabel="global step", ylabel=f"training loss (nats)\n{kind}", ylim=(0, None))
    axes.legend()
    texts = []
    for name, values in runs.items():
        (first, start), (last, end) = list(values.items())[0], list(values.items())[-1]
        texts.append(f"{name}: {start:.2f} at step {first}, {end:.2f} at step {last}")
    show(figure, f"Training loss over steps. {'; '.join(texts)}.")


def columns(values: Mapping[int, float], label: str, height: str) -> None:
    """Shows a value for each of many whole numbers as thin bars.

    Args:
        values: by whole number, in order.
        label: what the numbers are.
        height: what the values are, with their kind.
    """
    figure = Figure(figsize=(7.5, 2.4))
    axes = figure.add_subplot()
    axes.bar(list(values), list(values.values()), width=1.0, color=ALARM)
    axes.set(xlabel=label, ylabel=height, xlim=(min(values) - 0.5, max(values) + 0.5))
    some = list(values.items())[:: max(1, len(values) // 8)]
    points = [f"{value:,.3g} at {number}" for number, value in some]
    show(figure, f"Bars over {label}. {' '.join(height.split())}: {', '.join(points)}.")


def panels(values: Mapping[str, Mapping[str, float]], title: str) -> None:
    """Shows the same names in panels side by side, each with bars of another figure.

    Where there is no figure, as on a machine without the TPU compiler, it prints that.

    Args:
        values: unit -> name -> value.
        title: above all panels, with the kind of the figures.
    """
    if not any(values.values()):
        print(f"{title}: there are no figures here.")
        return
    figure = Figure(figsize=(7.5, 1.8))
    figure.suptitle(title, fontsize=10)
    grid = figure.subplots(1, len(values), sharey=True, squeeze=False)[0]
    texts = []
    for axes, (unit, of_names) in zip(grid, values.items(), strict=True):
        drawn = axes.barh(list(of_names), list(of_names.values()), color=BAR)
        axes.bar_label(drawn, fmt="%.2f", padding=3)
        axes.set(xlabel=unit, xlim=(0, 1.25 * max(of_names.values())))
        texts.append(f"{unit}: {', '.join(f'{n} {v:.2f}' for n, v in of_names.items())}")
    grid[0].invert_yaxis()
    show(figure, f"{title}. {'; '.join(texts)}.")
