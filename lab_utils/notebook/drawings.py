"""The labs' explanatory drawings: each function draws one figure, which a notebook shows below its cell."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, Rectangle

from lab_utils.common.figures import counted
from lab_utils.notebook import look
from lab_utils.notebook.look import CORE, DATA, HOST, IDLE, INK, NEUTRAL

_IMAGES = Path(__file__).parent / "images"
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


def _arrow(axes: Axes, start: tuple[float, float], end: tuple[float, float]):
    arrow = FancyArrowPatch(start, end, arrowstyle="->", color=NEUTRAL, mutation_scale=10, lw=1.2)
    axes.add_patch(arrow)


def _show_image(name: str) -> None:
    """Shows a drawing in which nothing is computed: images/NAME.svg, whose `desc` is its text."""
    look.show_svg((_IMAGES / f"{name}.svg").read_text(encoding="utf-8"))


def machine() -> None:
    """A v2 pod, one of its hosts, and one chip; figures quoted from jax 0.10.2, `tpu_info.py`."""
    _show_image("machine")


def four_changes() -> None:
    """The four changes of a port as a diff: the program of lab 01 on the left, its port on the right."""
    _show_image("four_changes")


def all_reduce() -> None:
    """One step of eight cores for one weight: their gradients, the all-reduce, the same update on all."""
    _show_image("all_reduce")


def beam_graph() -> None:
    """The pipeline of lab 05 as a graph: rows go in; examples and rejects go to sinks of their own."""
    _show_image("beam_graph")


def matrix_unit() -> None:
    """A matrix unit during a product: weights stay in its grid, rows of the input stream through it."""
    _show_image("matrix_unit")


def one_host() -> None:
    """How a batch of 1,024 reaches the eight cores of one host, and each function's share."""
    _show_image("one_host")


def two_hosts() -> None:
    """How a batch of 1,024 reaches the sixteen cores of two hosts, with one input_fn a host."""
    _show_image("two_hosts")


def tile() -> None:
    """An array [20, 300] in tiles of 8 by 128: what is data, what is padding."""
    _show_image("tile")


def filled_matrix_unit() -> None:
    """Weights [10, 128] in the grid of a matrix unit of 128 by 128 cells, and in one of 256 by 256."""
    _show_image("filled_matrix_unit")


def loops(step: float = 1.0, host: float = 0.4, loop_lengths: Sequence[int] = (1, 2, 10)) -> None:
    """Timelines of core and host for several `iterations_per_loop`; times in milliseconds.

    Args:
        step: what a step takes on the core.
        host: what the host takes between two loops.
        loop_lengths: one timeline each.
    """
    figure, (axes,) = _card(7.4, 0.75 * len(loop_lengths) + 0.9)
    end, busy = 3 * host + 30 * step, []
    for row, length in enumerate(loop_lengths):
        y, starts = -1.5 * row, np.arange(0, end, length * step + host)
        steps = [(start + n * step, step) for start in starts for n in range(length)]
        between = [(start + length * step, host) for start in starts]
        core = axes.broken_barh(steps, (y, 0.5), facecolor=CORE, edgecolor=IDLE)
        idle = axes.broken_barh(between, (y + 0.5, 0.5), facecolor=HOST, edgecolor=NEUTRAL)
        share = length * step / (length * step + host)
        busy.append(f"with loops of {length} {share:.0%}")
        text = f"loop of {length}\ncore busy {share:.0%}"
        axes.text(-0.015 * end, y + 0.5, text, ha="right", va="center", fontsize=8)
    names = ("a step on the core", "the host: session, hooks, log")
    axes.legend((core, idle), names, loc="upper left", ncols=2, fontsize=8)
    axes.set(xlim=(-0.22 * end, end), ylim=(-1.5 * len(loop_lengths) + 1.2, 2.0))
    times = f"Steps of {step:.2g} ms, {host:.2g} ms of the host between two loops"
    look.show(figure, f"{times}. The core is busy: {', '.join(busy)}.")


def two_machines(places: Mapping[str, Sequence[str]]) -> None:
    """Host and core as two boxes with what runs there, and the queues between them.

    Args:
        places: the host's name and the core's, each with the functions that run there: a name, and its ops
            in the lines below.
    """
    figure, (axes,) = _card(6.4, 2.4)
    for x, fill, (place, things) in zip((0, 5.6), (HOST, CORE), places.items(), strict=True):
        _box(axes, x, 0, 4, 3, "", fill)
        y, lines = 2.9, sum(thing.count("\n") + 1 for thing in things)
        for thing in things:  # a function's box is as high as its lines are many
            height = (2.9 - 0.1 * len(things)) * (thing.count("\n") + 1) / lines
            y -= height
            _box(axes, x + 0.15, y, 3.7, height, thing, IDLE)
            y -= 0.1
        axes.text(x + 2, 3.2, place, ha="center", fontsize=9, weight="bold")
    for y, ends, queue in ((2.0, (4.1, 5.5), "infeed"), (0.8, (5.5, 4.1), "outfeed")):
        _arrow(axes, (ends[0], y), (ends[1], y))
        axes.text(4.8, y + 0.15, queue, ha="center", fontsize=8)
    axes.set(xlim=(-0.1, 9.7), ylim=(-0.1, 3.6))
    words = "; ".join(f"{place}: {', '.join(things)}" for place, things in places.items())
    words = " ".join(words.split())
    queues = "The infeed leads from the first to the second, the outfeed back."
    look.show(figure, f"What runs where. {words}. {queues}")


def bits(value: float = 1 + 1 / 300) -> None:
    """The bits of a number as float32, bfloat16 and float16, and what each makes of it."""
    from ml_dtypes import bfloat16

    figure, (axes,) = _card(7.4, 2.0)
    told = []
    for row, (dtype, exponent) in enumerate(((np.float32, 8), (bfloat16, 8), (np.float16, 5))):
        y, number = -1.2 * row, np.array(value, dtype)
        digits = f"{int(number.view(f'u{number.itemsize}')):0{8 * number.itemsize}b}"
        for place, digit in enumerate(digits):
            fill = look.FAINT if place == 0 else HOST if place <= exponent else DATA
            _box(axes, place, y, 1, 0.8, digit, fill, lw=0.5)
        name, text = number.dtype.name, f"{float(number):.8g}"
        axes.text(-0.4, y + 0.4, name, ha="right", va="center", fontsize=9)
        axes.text(len(digits) + 0.4, y + 0.4, text, va="center", fontsize=9)
        told.append(
            f"{name} has {exponent} bits of exponent and {len(digits) - 1 - exponent} of digits: {text}"
        )
    parts = {"sign": look.FAINT, "exponent: the range": HOST, "digits": DATA}
    fills = [Rectangle((0, 0), 1, 1, facecolor=fill, edgecolor=NEUTRAL) for fill in parts.values()]
    axes.legend(fills, list(parts), loc="upper left", ncols=3, fontsize=8)
    axes.set(xlim=(-4.5, 39), ylim=(-2.6, 1.9))
    look.show(figure, f"The bits of {value:.8g}. {'; '.join(told)}.")


def tfrecord(record: bytes, jpeg: bytes) -> None:
    """The bytes of a record in its file: length, checksums, and the example with its JPEG.

    Args:
        record: a serialised tf.train.Example.
        jpeg: the picture in it.
    """
    figure, (axes,) = _card(7.4, 2.0)
    parts = (
        (2.0, "length\n8 bytes", IDLE),
        (1.9, "checksum\n4 bytes", IDLE),
        (9.2, f"the record: a tf.train.Example, {len(record):,} bytes", DATA),
        (1.9, "checksum\n4 bytes", IDLE),
    )
    x = 0.0
    for width, text, fill in parts:
        _box(axes, x, 1.6, width, 0.9, text, fill)
        x += width
    for further in range(2):
        _box(axes, x + 0.3 + further * 1.5, 1.6, 1.3, 0.9, "next" if further == 0 else "...", IDLE)
    left, right = 3.9, 13.1  # of the record
    others = len(record) - len(jpeg)
    _box(axes, left, 0, 6.4, 0.9, f"image/encoded: the JPEG\n{len(jpeg):,} bytes", HOST)
    _box(axes, left + 6.4, 0, 2.8, 0.9, f"8 more features\n{others:,} bytes", HOST)
    for x in (left, right):
        axes.plot([x, x], [0.9, 1.6], color=NEUTRAL, lw=0.8, ls=":")
    axes.set(xlim=(-0.1, 18.3), ylim=(-0.1, 2.7))
    look.show(
        figure,
        "A TFRecord file: for each record its length (8 bytes), a checksum (4 bytes), the record and "
        f"another checksum. This record has {len(record):,} bytes, of which {len(jpeg):,} are the JPEG.",
    )


_QUEUE = 2  # batches that are prepared beforehand, and wait


def _feed(
    prepare: float, transfer: float, step: float, prefetch: bool, batches: int
) -> dict[str, list[float]]:
    """When each batch starts on each row of `feeding`.

    TPUEstimator's infeed thread takes a batch from input_fn and hands it to the core, one after the other.
    The core's queue holds one batch beside the one of the step. With prefetch a thread of tf.data prepares
    batches, and the infeed thread only hands them over.
    """
    starts: dict[str, list[float]] = {"prepare": [], "infeed": [], "step": []}
    prepared = handed = stepped = 0.0
    for batch in range(batches):
        waits = handed
        if prefetch:
            waits = starts["infeed"][batch - _QUEUE] if batch >= _QUEUE else 0.0
        starts["prepare"].append(max(prepared, waits))
        prepared = starts["prepare"][-1] + prepare
        emptied = starts["step"][-1] if batch else 0.0
        starts["infeed"].append(max(prepared, handed, emptied))
        handed = starts["infeed"][-1] + transfer
        starts["step"].append(max(handed, stepped))
        stepped = starts["step"][-1] + step
    return starts


def feeding() -> None:
    """Timelines of host and core: without prefetch, with it, and with a host that is too slow."""
    # What a batch takes in ms: on the host, in the infeed, on the core; the slow host takes twice as long.
    prepare, transfer, step = 4, 2, 5
    cases = (
        ("without prefetch", prepare, False),
        ("with prefetch", prepare, True),
        ("with prefetch, and a host of half the speed", 2 * prepare, True),
    )
    figure, (axes,) = _card(7.4, 4.2)
    end, sentences = 6.5 * (prepare + transfer), []
    for number, (name, slow, prefetch) in enumerate(cases):
        top = -6.2 * number
        starts = _feed(slow, transfer, step, prefetch, batches=12)
        period = starts["step"][-1] - starts["step"][-2]
        rows = (
            ("host: prepare", starts["prepare"], slow, HOST),
            ("infeed", starts["infeed"], transfer, DATA),
            ("core: step", starts["step"], step, CORE),
            ("outfeed", [start + step for start in starts["step"]], 0.5, DATA),
        )
        for row, (label, begins, width, fill) in enumerate(rows):
            y = top - 1.1 * row
            axes.text(-0.5, y + 0.45, label, ha="right", va="center", fontsize=8)
            for batch, start in enumerate(begins):
                if start + width <= end:
                    _box(axes, start, y, width, 0.9, "" if label == "outfeed" else f"{batch}", fill)
        busy = f"the core is busy {step / period:.0%} of the time"
        axes.text(0, top + 1.2, f"{name}: {busy}", fontsize=9, weight="bold")
        sentences.append(f"{name}, {busy}")
    times = (
        f"an example: {prepare:g} ms to prepare, {transfer:g} ms in the infeed, {step:g} ms a step"
    )
    axes.text(0, -6.2 * len(cases) + 1.6, f"{times} (computed)", fontsize=8)
    axes.set(xlim=(-6.5, end + 0.2), ylim=(-6.2 * len(cases) + 1.4, 2.2))
    look.show(
        figure,
        f"Timelines of host, infeed, core and outfeed. A batch takes {prepare:g} ms to prepare, "
        f"{transfer:g} ms in the infeed and {step:g} ms on the core. {'; '.join(sentences)}.",
    )


def shards(arrays: Mapping[str, Any]) -> None:
    """What each device holds of arrays of at most two axes: one panel an array, a frame for each part.

    Args:
        arrays: by name, JAX arrays with a sharding.
    """
    figure, panels = _card(5.2, 1.5, panels=len(arrays))
    texts = []
    for axes, (name, array) in zip(panels, arrays.items(), strict=True):
        rows, columns = ([*array.shape, 1, 1])[:2]
        holders: dict[tuple[int, int, int, int], list[int]] = {}
        for device, parts in array.sharding.devices_indices_map(array.shape).items():
            (top, bottom, _), (left, right, _) = (
                part.indices(size)
                for part, size in zip([*parts, slice(None)], (rows, columns), strict=False)
            )
            holders.setdefault((top, bottom, left, right), []).append(device.id)
        for (top, bottom, left, right), devices in holders.items():
            first, last = min(devices), max(devices)
            text = f"{first}" if first == last else f"{first}-{last}"
            width, height = (right - left) / columns, (bottom - top) / rows
            _box(axes, left / columns, 1 - bottom / rows, width, height, text, CORE)
        axes.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02))
        axes.set_title(f"{name} {list(array.shape)}", fontsize=9)
        each = counted(len(holders), "part")
        texts.append(
            f"{name} {list(array.shape)}: {each}, each of shape "
            f"{list(array.sharding.shard_shape(array.shape))}"
        )
    look.show(figure, f"What each device holds, by its number. {'; '.join(texts)}.")
