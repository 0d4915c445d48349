"""How fast input pipelines are: each measured in turns with a limit, as other programs use the machine."""

import time
from collections.abc import Iterable, Iterator

import matplotlib.pyplot as plt
import numpy as np

from lab_utils.notebook.look import ALARM, BAR, NEUTRAL, style_figures

WINDOW, ROUNDS = 0.4, 3  # seconds, turns
_WARM_UP = 300  # images: an epoch of the bundled flowers, which may fill a cache
style_figures()


class Ladder:
    """Input pipelines next to a limit.

    Args:
        limit: batches without end, faster than any pipeline should be.
        batch: images in a batch.

    Attributes:
        alone: the limit's images/s and CPU ms per image.
        rungs: name -> an array [ROUNDS, 4] of images/s, CPU ms per image, share of the limit and the limit.
    """

    def __init__(self, limit: Iterable, batch: int) -> None:
        self.batch, self.rungs, self._limit = batch, {}, iter(limit)
        self.alone = np.median([self._window(self._limit) for _ in range(ROUNDS)], axis=0)
        rate, cpu = self.alone
        print(f"the limit: {rate:,.0f} images/s, {cpu:.3f} CPU ms per image (measured here)")

    def rung(self, name: str, batches: Iterable) -> float:
        """Measures a pipeline, prints a line, and returns its share of the limit."""
        iterator, rounds = iter(batches), []
        for _ in range(_WARM_UP // self.batch):
            next(iterator)
        for _ in range(ROUNDS):
            limit, _ = self._window(self._limit)
            rate, cpu = self._window(iterator)
            rounds.append((rate, cpu, rate / limit, limit))
        self.rungs[name] = np.array(rounds)
        rate, _, share, limit = sorted(rounds, key=lambda measured: measured[2])[ROUNDS // 2]
        against = f"{share:.2f} of the limit of {limit:,.0f}"
        print(f"{name}: {rate:,.0f} images/s, {against}; {self.cpu_ms()[name]:.3f} CPU ms each")
        return share

    def cpu_ms(self) -> dict[str, float]:
        """CPU ms per image of each pipeline, the median of its rounds."""
        return {name: float(np.median(rounds[:, 1])) for name, rounds in self.rungs.items()}

    def draw(self) -> None:
        """Draws shares of the limit and CPU time, on logarithmic axes; lines show all rounds."""
        _, panels = plt.subplots(1, 2, figsize=(7, 2.2), sharey=True)
        for axes, column, label, limit in (
            (panels[0], 2, "share of the limit", 1),
            (panels[1], 1, "CPU ms per image", self.alone[1]),
        ):
            values = np.array([rounds[:, column] for rounds in self.rungs.values()])
            middle = np.median(values, axis=1)
            spread = [middle - values.min(axis=1), values.max(axis=1) - middle]
            axes.errorbar(middle, list(self.rungs), xerr=spread, fmt="o", color=BAR, ecolor=NEUTRAL)
            for row, value in enumerate(middle):
                text = {"xytext": (0, 5), "textcoords": "offset points", "ha": "center"}
                axes.annotate(f"{value:.2g}", (value, row), **text, fontsize=8)
            axes.axvline(limit, color=ALARM, lw=1, ls="--", zorder=0)
            on_top = {"transform": axes.get_xaxis_transform(), "ha": "center", "va": "bottom"}
            axes.text(limit, 1.01, "the limit", **on_top, color=ALARM, fontsize=8)
            axes.set(
                xscale="log",
                xlim=(values.min() / 2, 2 * values.max()),
                ylim=(-0.5, len(values) - 0.2),
                xlabel=label,
            )
            axes.minorticks_off()
        panels[0].invert_yaxis()

    def _window(self, batches: Iterator) -> tuple[float, float]:
        """Images/s and CPU ms per image over WINDOW seconds, after the batches that were waiting."""
        settled = time.perf_counter() + WINDOW / 4
        while time.perf_counter() < settled:
            next(batches)
        images, cpu, start = 0, time.process_time(), time.perf_counter()
        while (passed := time.perf_counter() - start) < WINDOW:
            next(batches)
            images += self.batch
        return images / passed, 1e3 * (time.process_time() - cpu) / images
