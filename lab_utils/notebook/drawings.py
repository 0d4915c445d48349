"""The labs' explanatory drawings: each function draws one figure, which a notebook shows below its cell."""

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, Rectangle

from lab_utils.common.figures import counted
from lab_utils.notebook import look
from lab_utils.notebook.look import CORE, DATA, HOST, IDLE, INK, NEUTRAL

look.style_figures()


def _card(width: float, height: float, panels: int = 1) -> tuple[Figure, Sequence[Axes]]:
    """A figure with axes that show nothing of their own."""
    figure, grid = plt.subplots(1, panels, figsize=(width, height), squeeze=False)
    for axes in grid[0]:
        axes.set_axis_off()
    return figure, grid[0]


def _box(axes: Axes, x: float, y: float, width: float, height: float, text: str, fill: str, **more):
    axes.add_patch(Rectangle((x, y), width, height, facecolor=fill, edgecolor=NEUTRAL, **more))
    axes.text(x + width / 2, y + height / 2, text, ha="center", va="center", fontsize=8, color=INK)


def _arrow(axes: Axes, start: tuple[float, float], end: tuple[float, float], colour: str = NEUTRAL):
    arrow = FancyArrowPatch(start, end, arrowstyle="->", color=colour, mutation_scale=10, lw=1.2)
    axes.add_patch(arrow)


def all_reduce(cores: int = 8) -> None:
    """Gradients of each core, their sum, and the same update on all of them."""
    _, (axes,) = _card(7.4, 2.9)
    for core in range(cores):
        _box(axes, core, 3.4, 0.9, 0.7, f"share {core}", DATA)
        _box(axes, core, 2.3, 0.9, 0.7, f"gradient {core}", CORE)
        _box(axes, core, 0, 0.9, 0.7, "update", CORE)
        _arrow(axes, (core + 0.45, 3.4), (core + 0.45, 3.0))
        _arrow(axes, (core + 0.45, 2.3), (core + 0.45, 1.85), look.ALARM)
        _arrow(axes, (core + 0.45, 1.2), (core + 0.45, 0.7), look.ALARM)
    text = "all-reduce over the interconnect: every core gets the sum"
    _box(axes, 0, 1.2, cores - 0.1, 0.65, text, IDLE)
    axes.set(xlim=(-0.1, cores), ylim=(-0.1, 4.6))
    axes.text(0, 4.25, f"{counted(cores, 'core')}, one step", fontsize=9, weight="bold")


def machine() -> None:
    """A v2 pod, one of its hosts, and one chip; figures quoted from jax 0.10.2, `tpu_info.py`."""
    _, (pod, host, chip) = _card(10, 3.7, 3)
    for n in range(256):
        near = n % 16 < 2 and n // 16 > 13
        _box(pod, n % 16, n // 16, 0.8, 0.8, "", CORE if near else IDLE)
    for n in range(4):
        _box(host, 1 + 7 * (n % 2), 6.5 + 5 * (n // 2), 5.5, 3.5, f"chip {n}\n2 cores", CORE)
    host.plot([6.5, 8], [8.2, 8.2], [6.5, 8], [13.2, 13.2], color=look.ALARM, lw=3)
    host.plot([3.7, 3.7], [10, 11.5], [10.7, 10.7], [10, 11.5], color=look.ALARM, lw=3)
    _box(
        host, 1, 0.5, 12.5, 3.5, "host CPU: reads and prepares\nthe data, writes checkpoints", HOST
    )
    for x in (3.7, 10.7):
        host.annotate("", (x, 6.4), (x, 4.1), arrowprops={"arrowstyle": "<->", "color": NEUTRAL})
    for n in range(2):
        x = 0.5 + 7.7 * n
        _box(chip, x, 0.5, 7.2, 15, "", "#fbe9d0")
        chip.text(x + 3.6, 14.6, f"core {n}", ha="center", fontsize=9, weight="bold", color=INK)
        _box(chip, x + 0.6, 9, 6, 4.8, "MXU\n128 x 128\nmultiply-adds", CORE)
        _box(chip, x + 0.6, 5.6, 6, 2.9, "vector and\nscalar units", IDLE)
        _box(chip, x + 0.6, 1, 6, 4, "HBM 8 GB\n358 GB/s", DATA)
    titles = ("pod: 16 x 16 chips, 512 cores", "one host: 4 chips, 8 cores", "one chip: 2 cores")
    for axes, title in zip((pod, host, chip), titles, strict=True):
        axes.set(xlim=(-0.2, 16.2), ylim=(-0.2, 16.2), aspect="equal")
        axes.set_title(title, fontsize=10)


def batch_to_cores(batch: int = 1024, hosts: int = 2, cores: int = 16) -> None:
    """How a global batch reaches the cores, with one input_fn a host."""
    _, (axes,) = _card(7.4, 2.7)
    width = cores / hosts
    _box(axes, 0, 3.2, cores - 0.1, 0.7, f"train_batch_size = {batch:,}: the global batch", DATA)
    for host in range(hosts):
        x = host * width
        share = f"host {host}: input_fn reads its own files\n{counted(batch // hosts, 'example')} a step"
        _box(axes, x, 1.6, width - 0.1, 0.95, share, HOST)
        _arrow(axes, (x + width / 2, 3.2), (x + width / 2, 2.55))
    for core in range(cores):
        _box(axes, core, 0, 0.9, 0.7, f"{batch // cores}", CORE)
        _arrow(axes, (core + 0.45, 1.6), (core + 0.45, 0.7))
    text = f"{counted(cores, 'core')}, {counted(batch // cores, 'example')} each"
    axes.text(0, -0.45, text, fontsize=9)
    axes.set(xlim=(-0.1, cores), ylim=(-0.6, 4))


def loops(step: float = 1.0, host: float = 0.4, loop_lengths: Sequence[int] = (1, 2, 10)) -> None:
    """Timelines of core and host for several `iterations_per_loop`; times in milliseconds.

    Args:
        step: what a step takes on the core.
        host: what the host takes between two loops.
        loop_lengths: one timeline each.
    """
    _, (axes,) = _card(7.4, 0.75 * len(loop_lengths) + 0.9)
    end = 3 * host + 30 * step
    for row, length in enumerate(loop_lengths):
        y, starts = -1.5 * row, np.arange(0, end, length * step + host)
        steps = [(start + n * step, step) for start in starts for n in range(length)]
        between = [(start + length * step, host) for start in starts]
        core = axes.broken_barh(steps, (y, 0.5), facecolor=CORE, edgecolor=IDLE)
        idle = axes.broken_barh(between, (y + 0.5, 0.5), facecolor=HOST, edgecolor=NEUTRAL)
        share = length * step / (length * step + host)
        text = f"loop of {length}\ncore busy {share:.0%}"
        axes.text(-0.6, y + 0.5, text, ha="right", va="center", fontsize=8)
    names = ("a step on the core", "the host: session, hooks, log")
    axes.legend((core, idle), names, loc="upper left", ncols=2, fontsize=8)
    axes.set(xlim=(-8, end), ylim=(-1.5 * len(loop_lengths) + 1.2, 2.0))


def two_machines(places: Mapping[str, Sequence[str]]) -> None:
    """Host and core as two boxes with what runs there, and the queues between them.

    Args:
        places: the host's name and the core's, each with the names of what runs there.
    """
    _, (axes,) = _card(6.4, 2.2)
    for x, fill, (place, things) in zip((0, 5.6), (HOST, CORE), places.items(), strict=True):
        _box(axes, x, 0, 4, 3, "\n".join(things), fill)
        axes.text(x + 2, 3.2, place, ha="center", fontsize=9, weight="bold")
    for y, ends, queue in ((2.0, (4.1, 5.5), "infeed"), (0.8, (5.5, 4.1), "outfeed")):
        _arrow(axes, (ends[0], y), (ends[1], y))
        axes.text(4.8, y + 0.15, queue, ha="center", fontsize=8)
    axes.set(xlim=(-0.1, 9.7), ylim=(-0.1, 3.6))


def matrix_of_faults(rows: Mapping[str, Sequence[str]], columns: Sequence[str]) -> None:
    """A matrix of marks: by row, for each column, an "e" for each error and an "s" for each silent fault."""
    figure, axes = plt.subplots(figsize=(8, 0.6 * len(rows) + 1.2))
    looks = {"e": ("s", look.ALARM, "an error"), "s": ("o", look.SECOND, "silent")}
    for row, cells in enumerate(rows.values()):
        for column, marks in enumerate(cells):
            for place, mark in enumerate(marks):
                marker, colour, _ = looks[mark]
                x = column + 0.2 * (place - (len(marks) - 1) / 2)
                axes.plot(x, row, marker, color=colour, markersize=9)
    for marker, colour, word in looks.values():
        axes.plot([], [], marker, color=colour, label=word)
    axes.set_xticks(range(len(columns)), columns, fontsize=8)
    axes.set_yticks(range(len(rows)), rows, fontsize=9)
    axes.set(xlim=(-0.5, len(columns) - 0.5), ylim=(len(rows) - 0.5, -0.5))
    axes.set_xticks(np.arange(len(columns) + 1) - 0.5, minor=True)
    axes.set_yticks(np.arange(len(rows) + 1) - 0.5, minor=True)
    axes.grid(which="minor", color=NEUTRAL, alpha=0.3)
    axes.tick_params(which="both", length=0)
    figure.legend(loc="outside upper right", ncols=2, fontsize=8)


def tile(rows: int = 100, columns: int = 300, height: int = 8, width: int = 128) -> None:
    """An array of two axes in tiles of `height` by `width`: what is data, what is padding."""
    figure, (axes,) = _card(6.4, 2.6)
    full_rows, full_columns = -(-rows // height) * height, -(-columns // width) * width
    axes.add_patch(
        Rectangle((0, 0), full_columns, full_rows, fc="#fbe3e1", ec="none", hatch="///", lw=0)
    )
    axes.add_patch(Rectangle((0, 0), columns, rows, facecolor=DATA, edgecolor="none"))
    for x in range(0, full_columns + 1, width):
        axes.plot([x, x], [0, full_rows], color=NEUTRAL, lw=1)
    for y in range(0, full_rows + 1, height):
        axes.plot([0, full_columns], [y, y], color=NEUTRAL, lw=0.4)
    used = rows * columns / (full_rows * full_columns)
    text = f"[{rows}, {columns}]: data"
    axes.text(columns / 2, rows / 2, text, ha="center", va="center", fontsize=9, color=INK)
    axes.set(xlim=(-2, full_columns + 2), ylim=(full_rows + 2, -2))
    figure.suptitle(
        f"Stored as [{full_rows}, {full_columns}] in tiles of {height} by {width}; hatched: padding. "
        f"{used:.0%} is data.",
        fontsize=9,
    )


def bits(value: float = 1 + 1 / 300) -> None:
    """The bits of a number as float32, bfloat16 and float16, and what each makes of it."""
    from ml_dtypes import bfloat16

    _, (axes,) = _card(7.4, 2.0)
    for row, (dtype, exponent) in enumerate(((np.float32, 8), (bfloat16, 8), (np.float16, 5))):
        y, number = -1.2 * row, np.array(value, dtype)
        digits = f"{int(number.view(f'u{number.itemsize}')):0{8 * number.itemsize}b}"
        for place, digit in enumerate(digits):
            fill = look.FAINT if place == 0 else HOST if place <= exponent else DATA
            _box(axes, place, y, 1, 0.8, digit, fill, lw=0.5)
        name, text = number.dtype.name, f"{float(number):.8g}"
        axes.text(-0.4, y + 0.4, name, ha="right", va="center", fontsize=9)
        axes.text(len(digits) + 0.4, y + 0.4, text, va="center", fontsize=9)
    parts = {"sign": look.FAINT, "exponent: the range": HOST, "digits": DATA}
    fills = [Rectangle((0, 0), 1, 1, facecolor=fill, edgecolor=NEUTRAL) for fill in parts.values()]
    axes.legend(fills, list(parts), loc="upper left", ncols=3, fontsize=8)
    axes.set(xlim=(-4.5, 39), ylim=(-2.6, 1.9))
