"""The train step for several slices, or with several batches, side by side: a table for every view."""

import json
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from lab_utils.common import files
from lab_utils.common.figures import Kind, memory, rounded, scaled
from lab_utils.dry_run.records import LEAST_STEP_SECONDS, CompiledStep
from lab_utils.dry_run.report import html, words
from lab_utils.dry_run.report.outcome import COULD_NOT_RUN, EXIT_STATUS
from lab_utils.runtime import chips

if TYPE_CHECKING:
    from lab_utils.notebook.plots import Figure

_NOTHING = "–"


@dataclass(frozen=True)
class Trial:
    """The train step as it was compiled for one slice, with one batch.

    Attributes:
        topology: the slice.
        batch: examples a core in a step; None where the step could not be lowered.
        step: what the compiler said; None where there was no program to compile.
        why: why there is no estimated time; "" where there is one.
        price: of the slice for an hour, where prices were given.
        is_judged: the compiler gave an answer; where it gave none, nothing is known of the step.
    """

    topology: str
    batch: float | None = None
    step: CompiledStep | None = None
    why: str = ""
    price: float | None = None
    is_judged: bool = True

    @property
    def cores(self) -> int:
        """Of the slice."""
        return chips.cores(self.topology)

    @property
    def seconds(self) -> float | None:
        """Estimated, of a step; None where it does not fit, or the compiler estimates no cycles."""
        known = self.step is not None and self.step.fits and self.step.cost.estimated_seconds
        return known.value if known else None

    @property
    def is_short(self) -> bool:
        """Whether what the host does for a step (dispatch, infeed) takes longer than the step."""
        return self.seconds is not None and self.seconds < LEAST_STEP_SECONDS

    @property
    def examples_per_second(self) -> float | None:
        """Of all cores that take part, estimated."""
        if self.seconds is None:
            return None
        return self.batch * (self.step.cores or self.cores) / self.seconds

    def hours(self, steps: int) -> tuple[float, float] | None:
        """From how many to how many hours `steps` steps take, as the published trainings tell.

        None where the time is not known or shorter than what the host does for a step, and where no training
        on this kind of chip is among them: nothing tells how far the estimate is off there.
        """
        if self.seconds is None or self.is_short or not words.has_training(self.topology):
            return None
        low, high = words.times_of_estimates()
        return self.seconds * steps * low / 3600, self.seconds * steps * high / 3600


@dataclass(repr=False)
class Comparison:
    """Trials of one train step, in the order in which they are shown.

    Attributes:
        subject: what is compared.
        by: "slice", or "batch" for one slice with several batches a core.
        steps: of the whole training; None where that is not known.
        currency: of the prices; "" without prices.
        notes: sentences that belong below the table.
    """

    subject: str
    by: str
    trials: list[Trial]
    steps: int | None = None
    currency: str = ""
    notes: list[str] = field(default_factory=list)

    @property
    def best(self) -> Trial | None:
        """The one with the most examples a second; None where there is no estimated time."""
        known = [trial for trial in self.trials if trial.examples_per_second]
        return max(known, key=lambda trial: trial.examples_per_second, default=None)

    @property
    def exit_status(self) -> int:
        """0 where there is an estimated time, 2 where there is none, as a report's "could not run"."""
        return EXIT_STATUS[COULD_NOT_RUN] if self.best is None else 0

    @property
    def sentence(self) -> str:
        """What the comparison comes to."""
        best = self.best
        if best is None:
            return "There is no estimated time for any of them."
        return self._of_batches(best) if self.by == "batch" else self._of_slices(best)

    @property
    def _are_short(self) -> bool:
        return all(trial.is_short for trial in self.trials if trial.seconds is not None)

    def _of_batches(self, best: Trial) -> str:
        most = max(trial.batch for trial in self.trials if trial.seconds is not None)
        larger = any(trial.batch > most for trial in self.trials)
        tried = (
            f"Of the batches that were compiled, the largest one that fits is {most:g} per core."
            if larger
            else f"The largest batch that was compiled, {most:g} per core, fits too."
        )
        if unknown := [f"{trial.batch:g}" for trial in self.trials if not trial.is_judged]:
            which = " and ".join(unknown)
            tried += (
                f" Whether {which} per core fits is not known, because the compiler gave no answer."
            )
        if self._are_short:
            return (
                f"Every step takes less than {scaled(LEAST_STEP_SECONDS, 's')}, but the work of "
                "the host for a step takes longer, so a larger batch gives more examples per "
                f"second. {tried}"
            )
        return (
            f"A batch of {best.batch:g} per core gives the most examples per second on {best.topology}: "
            f"{rounded(best.examples_per_second)} examples/s, as estimated. {tried}"
        )

    def _of_slices(self, best: Trial) -> str:
        if self._are_short:
            return (
                f"Every step takes less than {scaled(LEAST_STEP_SECONDS, 's')}, but the work of "
                "the host for a step takes longer, so the smallest slice is as good as any other."
            )
        rate = rounded(best.examples_per_second)
        text = f"{best.topology} has the most examples per second: {rate} examples/s, as estimated."
        paid = [trial for trial in self.trials if trial.price and trial.examples_per_second]
        if paid:
            cheap = max(paid, key=lambda trial: trial.examples_per_second / trial.price)
            money = rounded(cheap.price * 1e6 / (3600 * cheap.examples_per_second))
            text += (
                f" {cheap.topology} costs least per example: {money} {self.currency} for a million."
            )
        return text

    def table(self) -> list[list[str]]:
        """Heading and rows of the table, as text."""
        heading = [
            "slice",
            "cores",
            "batch a core",
            "time of a step",
            "of it exchanges",
            "examples/s",
        ]
        heading += ["memory of a core"]
        if self.steps:
            heading.append(f"hours for {self.steps:,} steps")
        if self.currency:
            heading.append(f"{self.currency} an hour")
        if self.currency and self.steps:
            heading.append(f"{self.currency} in all")
        return [heading, *map(self._row, self.trials)]

    def _row(self, trial: Trial) -> list[str]:
        batch = _NOTHING if trial.batch is None else f"{trial.batch:g}"
        cells = [trial.topology, f"{trial.cores:,}", batch, *_speed(trial), _memory(trial)]
        hours = trial.hours(self.steps) if self.steps else None
        if self.steps:
            cells.append(_range(hours))
        if self.currency:
            cells.append(_NOTHING if trial.price is None else f"{trial.price:,.2f}")
        if self.currency and self.steps:
            known = hours and trial.price is not None
            cells.append(_range([trial.price * part for part in hours]) if known else _NOTHING)
        return cells

    def remarks(self) -> list[str]:
        """Why cells are empty, and where the figures come from."""
        texts = [f"{trial.topology}: {trial.why}" for trial in self.trials if trial.why]
        if self.by == "batch":
            texts = [
                f"a batch of {trial.batch:g} a core: {trial.why}"
                for trial in self.trials
                if trial.why
            ]
        texts = [text.rstrip(".") + "." for text in texts]
        if self.steps:
            texts += _without_hours(self.trials)
        if any(trial.is_short for trial in self.trials):
            least = scaled(LEAST_STEP_SECONDS, "s")
            texts.append(
                f"If a step takes less than {least}, the work of the host for it (dispatch, "
                "infeed) takes longer. No training reaches such a rate, so the table gives no "
                "hours."
            )
        if self.best is not None:
            texts.append(f"Estimated times: {words.ESTIMATE_BASIS}")
        return list(dict.fromkeys(texts + self.notes))

    def figure(self) -> "Figure":
        """Examples a second, as bars, each with its number."""
        from lab_utils.notebook import plots

        rates = {}
        for trial in self.trials:
            if rate := trial.examples_per_second:
                name = f"{trial.batch:g} a core" if self.by == "batch" else trial.topology
                rates[name] = (rate, rounded(rate))
        return plots.bar_figure(rates, f"examples/s ({Kind.ESTIMATED})")

    def to_json(self) -> str:
        """The comparison as JSON text: seconds, bytes and hours as numbers; what is not known is left out."""
        rows = []
        for trial in self.trials:
            row = {"topology": trial.topology, "cores": trial.cores, "batch_per_core": trial.batch}
            row |= {"seconds": trial.seconds, "examples_per_second": trial.examples_per_second}
            row |= {"memory": trial.step and trial.step.memory.used, "price_an_hour": trial.price}
            row |= {"hours": self.steps and trial.hours(self.steps), "why": trial.why}
            row |= {} if trial.is_judged else {"judged": False}
            rows.append({key: value for key, value in row.items() if value not in (None, "")})
        content = {"subject": self.subject, "by": self.by, "steps": self.steps, "trials": rows}
        return json.dumps(content | {"notes": self.remarks()}, indent=2, ensure_ascii=False)

    def write_html(self, path: str | Path) -> None:
        """Writes the comparison as one HTML page that needs nothing else."""
        files.write(path, self.page())

    def page(self) -> str:
        """The comparison as one HTML page that needs nothing else."""
        return html.document(f"Dry run: {self.subject}", self._repr_html_())

    def __repr__(self) -> str:
        return f"<Comparison of {self.subject}: {self.sentence}>"

    def __str__(self) -> str:
        heading, *rows = self.table()
        rows = [*_broken(heading, rows), *rows]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = [
            "  ".join(
                cell.ljust(width) if number == 0 else cell.rjust(width)
                for number, (cell, width) in enumerate(zip(row, widths, strict=True))
            ).rstrip()
            for row in rows
        ]
        remarks = [f"- {text}" for text in self.remarks()]
        return "\n".join([self.subject, self.sentence, "", *lines, "", *remarks])

    def _repr_html_(self) -> str:
        return html.render("comparison.html", comparison=self)


def _broken(heading: list[str], rows: list[list[str]]) -> list[list[str]]:
    """The heading in two lines where its names are longer than the cells below."""
    columns = []
    for name, *cells in zip(heading, *rows, strict=True):
        widths = range(max(map(len, [*cells, *name.split()])), len(name) + 1)
        broken = (textwrap.wrap(name, width) for width in widths)
        columns.append(next((lines for lines in broken if len(lines) == 2), [name]))
    depth = max(map(len, columns))
    filled = ([""] * (depth - len(lines)) + lines for lines in columns)
    return [list(line) for line in zip(*filled, strict=True)]


def _speed(trial: Trial) -> list[str]:
    if trial.seconds is None:
        return [_NOTHING] * 3
    exchanges = trial.step.cost.exchange_seconds
    return [
        scaled(trial.seconds, "s"),
        scaled(exchanges.value, "s") if exchanges else "none",
        rounded(trial.examples_per_second),
    ]


def _memory(trial: Trial) -> str:
    if trial.step is None or trial.step.memory.used is None:
        return _NOTHING
    used, available = trial.step.memory.used, trial.step.memory.available
    return f"{memory(used)} of {memory(available.value)}" if available else memory(used)


def _range(parts: Sequence[float] | None) -> str:
    return " to ".join(map(rounded, parts)) if parts else _NOTHING


def _without_hours(trials: list[Trial]) -> list[str]:
    """For which kinds of chip there are no hours, and why."""
    names = dict.fromkeys(
        chips.parse(trial.topology)[0].name
        for trial in trials
        if trial.seconds is not None and not words.has_training(trial.topology)
    )
    if not names:
        return []
    return [
        f"No hours for {', '.join(names)}: none of the published programs with which the estimates "
        "were compared is a training there, so nobody knows how far the estimates are off."
    ]
