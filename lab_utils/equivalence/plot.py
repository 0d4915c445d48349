"""The ladder as a matplotlib Figure."""

from collections.abc import Sequence
from typing import Any

from matplotlib.figure import Figure

from lab_utils.notebook.look import FAINT, NEUTRAL, NOTE, RIGHT, SECOND, WRONG


def draw(rungs: Sequence[Any], losses: Sequence[tuple[float, float]]) -> Figure:
    """Each rung's difference beside its tolerance; and both losses, (Estimator, Keras) by step."""
    figure = Figure(figsize=(9, 3), layout="constrained")
    left, run = figure.subplots(1, 2)
    colours = {True: RIGHT, False: WRONG, None: FAINT}
    least = 1e-8  # where a difference of nothing is drawn on a log scale
    for row, rung in enumerate(rungs):
        colour = colours[rung.holds]
        if rung.difference is None:
            says = {True: "holds", False: "differs", None: "not run"}[rung.holds]
            left.text(least * 1.3, row, says, va="center", fontsize=9, color=colour)
            continue
        left.barh(row, max(rung.difference, least * 1.3), color=colour, height=0.5)
        left.plot([rung.tolerance] * 2, [row - 0.4, row + 0.4], color="black", linewidth=1.5)
    left.set_xscale("log")
    left.set_xlim(least, 10)
    left.set_yticks(
        range(len(rungs)),
        [f"{number}. {rung.name}" for number, rung in enumerate(rungs, start=1)],
    )
    left.set_ylim(len(rungs) - 0.4, -0.6)
    left.set_xlabel("largest relative difference; black: tolerated")
    if losses:
        steps = range(1, len(losses) + 1)
        theirs, ours = zip(*losses, strict=True)
        run.plot(steps, theirs, "o", color=NOTE, markersize=6, alpha=0.5, label="Estimator")
        run.plot(steps, ours, "-", color=SECOND, linewidth=1.5, label="Keras")
        run.set_ylim(bottom=0)
        run.legend(frameon=False)
    else:
        run.text(0.5, 0.5, "not run", ha="center", color=NEUTRAL, transform=run.transAxes)
    run.set_xlabel("step")
    run.set_ylabel("training loss (nats)")
    figure.suptitle("Measured here", fontsize=10)
    for axes in (left, run):
        axes.spines[["top", "right"]].set_visible(False)
    return figure
