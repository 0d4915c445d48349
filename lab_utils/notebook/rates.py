"""How fast input pipelines are: each measured in turns with a limit, as other programs use the machine."""

import time
from collections.abc import Iterable, Iterator

import matplotlib.pyplot as plt
import numpy as np

from lab_utils.notebook.look import ALARM, BAR, NEUTRAL, show, style_figures

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
        rate, cpu, share, limit = self._middle(name)
        against = f"{share:.2f} of the limit of {limit:,.0f}"
        print(f"{name}: {rate:,.0f} images/s, {against};\n  {cpu:.3f} CPU ms per image")
        return share

    def cpu_ms(self) -> dict[str, float]:
        """CPU ms per image of each pipeline."""
        return {name: self._middle(name)[1] for name in self.rungs}

    def draw(self) -> None:
        """Draws CPU time and time per image as bars from 0, each beside the limit of the same seconds.

        Both are times per image. Spread over the cores, the same CPU time takes less time. Another program on
        the machine slows a pipeline and its limit, which is why each pipeline has a mark of its own.
        """
        figure, axes = plt.subplots(figsize=(7.4, 0.62 * len(self.rungs) + 1.0))
        sentences = []
        for row, name in enumerate(self.rungs):
            rate, cpu, share, limit = self._middle(name)
            work = axes.barh(row - 0.19, cpu, 0.36, color=NEUTRAL)
            elapsed = axes.barh(row + 0.19, 1e3 / rate, 0.36, color=BAR)
            mark = axes.vlines(1e3 / limit, row - 0.02, row + 0.4, color=ALARM, lw=2)
            text = f"{rate:,.0f} images/s, {share:.2g} of the limit"
            beside = {"transform": axes.get_yaxis_transform(), "va": "center", "fontsize": 8}
            axes.text(1.02, row, text, **beside)
            sentences.append(f"{name}: {cpu:.3f} ms CPU time, {1e3 / rate:.3f} ms, {text}")
        names = (
            "CPU time",
            "elapsed time",
            "elapsed time of the decoder, measured in turns with it",
        )
        figure.legend((work, elapsed, mark), names, loc="outside upper left", ncols=3, fontsize=8)
        axes.set_yticks(range(len(self.rungs)), list(self.rungs))
        axes.set(ylim=(len(self.rungs) - 0.4, -0.6), xlabel="ms per image (measured here)")
        show(figure, f"Bars of milliseconds per image. {'. '.join(sentences)}.")

    def _middle(self, name: str) -> tuple[float, float, float, float]:
        """The round of a pipeline whose share of the limit is the median."""
        rounds = self.rungs[name]
        return tuple(map(float, rounds[np.argsort(rounds[:, 2])[ROUNDS // 2]]))

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
