"""The report's pictures as inline SVG: memory bar, roofline, feed gauge. No scripts, no outside resources.

Text takes the page's own colour; the other colours are CSS variables of the page that `html` makes, so
one drawing serves light and dark themes. Every picture has a title and a description in words.
"""

import math
from html import escape

from lab_utils.common.figures import memory, rounded, scaled
from lab_utils.dry_run.records import CompiledStep

WIDTH = 440
LEAST = 3  # the width of a part that is too small to be seen


def memory_bar(step: CompiledStep, description: str) -> str:
    """A core's memory by part as one bar on a GiB axis, with the end of what a core lets a program use."""
    parts = list(step.memory.parts.items())
    limit, used = step.memory.available.value, step.memory.used
    left, right, top, height = 4, WIDTH - 4, 22, 30
    scale = (right - left) / (max(limit, used) * 1.02)
    end = left + limit * scale
    shapes = [
        f'<rect class="room" x="{left}" y="{top}" width="{limit * scale:.1f}" height="{height}"/>'
    ]
    x = float(left)
    for part, size in parts:
        width = max(size * scale, LEAST) if size else 0.0
        shapes.append(
            f'<rect class="{part}" x="{x:.1f}" y="{top}" width="{width:.1f}" height="{height}"/>'
        )
        if width >= 16:
            shapes.append(
                f'<text class="on" x="{x + width / 2:.1f}" y="{top + 20}" text-anchor="middle">'
                f"{part[0].upper()}</text>"
            )
        x += width
    if step.memory.needed is not None:
        shapes.append(
            f'<rect class="beyond" x="{end:.1f}" y="{top}" width="{left + used * scale - end:.1f}" '
            f'height="{height}"/>'
        )
    label, anchor = (end - 4, "end") if end > WIDTH / 2 else (end + 4, "start")
    shapes.append(
        f'<line class="limit" x1="{end:.1f}" x2="{end:.1f}" y1="{top - 6}" y2="{top + height + 6}"/>'
        f'<text x="{label:.1f}" y="{top - 8}" text-anchor="{anchor}">usable {memory(limit)}</text>'
    )
    size, unit = (2**30, "GiB") if max(limit, used) >= 2**30 else (2**20, "MiB")
    for tick in _linear_ticks(max(limit, used) / size):
        at = left + tick * size * scale
        anchor, name = ("start", f"0 {unit}") if tick == 0 else ("middle", f"{tick:g}")
        shapes.append(
            f'<line class="axis" x1="{at:.1f}" x2="{at:.1f}" y1="{top + height}" y2="{top + height + 5}"/>'
            f'<text x="{at:.1f}" y="{top + height + 18}" text-anchor="{anchor}">{name}</text>'
        )
    return _svg(f"Memory of a core, {step.name}", description, 74, shapes)


def feed_gauge(rate: float, required: float, description: str) -> str:
    """Examples/s measured here above the most that the cores of one host take, as two bars on one scale."""
    left, right = 4, WIDTH - 4
    scale = (right - left) / max(rate, required)
    shapes = []
    for y, css, value, label in (
        (20, "measured", rate, "this machine (measured here)"),
        (68, "demand", required, "one host's cores, at most (computed)"),
    ):
        shapes.append(
            f'<text x="{left}" y="{y - 6}">{label}: {rounded(value)} examples/s</text>'
            f'<rect class="room" x="{left}" y="{y}" width="{right - left}" height="18"/>'
            f'<rect class="{css}" x="{left}" y="{y}" width="{max(value * scale, 1.5):.1f}" height="18"/>'
        )
    return _svg("Input pipeline against the required rate", description, 92, shapes)


def roofline(steps: list[CompiledStep], description: str) -> str:
    """The roofline of a core on log axes, with each program's point, the ridge, peak and bandwidth."""
    peak, bandwidth = steps[0].cost.peak_flops.value, steps[0].cost.peak_bandwidth.value
    ridge = peak / bandwidth
    points = [(step.name, step.cost.flops.value / step.cost.bytes.value) for step in steps]
    everything = [ridge, *(intensity for _, intensity in points)]
    low = math.floor(math.log10(min(everything) / 2))
    high = math.ceil(math.log10(max(everything) * 2))
    bottom = math.floor(math.log10(bandwidth) + low)
    top = math.ceil(math.log10(peak * 1.5))
    left, right, upper, lower = 66, WIDTH - 20, 12, 218

    def x(intensity: float) -> float:
        return left + (math.log10(intensity) - low) / (high - low) * (right - left)

    def y(rate: float) -> float:
        return lower - (math.log10(rate) - bottom) / (top - bottom) * (lower - upper)

    shapes = []
    for decade in range(low, high + 1):
        at = x(10.0**decade)
        shapes.append(
            f'<line class="grid" x1="{at:.1f}" x2="{at:.1f}" y1="{upper}" y2="{lower}"/>'
            f'<text x="{at:.1f}" y="{lower + 16}" text-anchor="middle">{_power(decade)}</text>'
        )
    for decade in range(bottom, top + 1):
        at = y(10.0**decade)
        shapes.append(
            f'<line class="grid" x1="{left}" x2="{right}" y1="{at:.1f}" y2="{at:.1f}"/>'
            f'<text x="{left - 6}" y="{at + 4:.1f}" text-anchor="end">{_decade_rate(decade)}</text>'
        )
    start = bandwidth * 10.0**low
    angle = math.degrees(math.atan2(y(start) - y(peak), x(ridge) - x(10.0**low)))
    slope = [10.0**low * (ridge / 10.0**low) ** share for share in (0.3, 0.68)]
    clear = max(slope, key=lambda at: min(abs(math.log(at / point)) for _, point in points))
    shapes += [
        f'<polyline class="roof" points="{x(10.0**low):.1f},{y(start):.1f} {x(ridge):.1f},{y(peak):.1f} '
        f'{right},{y(peak):.1f}"/>',
        f'<text class="halo" x="{right - 2}" y="{y(peak) - 10:.1f}" text-anchor="end">'
        f"peak {scaled(peak, 'FLOP/s')}</text>",
        f'<text class="halo" transform="translate({x(clear):.1f} {y(bandwidth * clear):.1f}) '
        f'rotate({-angle:.1f})" y="-9" text-anchor="middle">memory {scaled(bandwidth, "B/s")}</text>',
        f'<path class="ridge" d="M{x(ridge):.1f} {y(peak) - 6:.1f} l6 6 l-6 6 l-6 -6 z"/>',
    ]
    legend = [("ridge", f"ridge {rounded(ridge)} FLOP/B")]
    for index, (name, intensity) in enumerate(points):
        rate = min(peak, bandwidth * intensity)
        shapes.append(
            f'<line class="drop" x1="{x(intensity):.1f}" x2="{x(intensity):.1f}" y1="{y(rate):.1f}" '
            f'y2="{lower}"/>' + _marker(index, x(intensity), y(rate))
        )
        legend.append((index, f"{name} {rounded(intensity)} FLOP/B"))
    for row, (mark, label) in enumerate(reversed(legend)):
        at = lower - 12 - 17 * row
        shapes.append(
            f'<path class="ridge" d="M{right - 178} {at - 10} l6 6 l-6 6 l-6 -6 z"/>'
            if mark == "ridge"
            else _marker(mark, right - 178, at - 4)
        )
        shapes.append(f'<text class="halo" x="{right - 166}" y="{at}">{escape(label)}</text>')
    shapes.append(
        f'<text x="{(left + right) / 2}" y="{lower + 36}" text-anchor="middle">'
        "arithmetic intensity, FLOP per byte of HBM traffic</text>"
        f'<text transform="translate(12 {(upper + lower) / 2}) rotate(-90)" text-anchor="middle">'
        "FLOP/s a core, at most</text>"
    )
    return _svg("Roofline of a core", description, lower + 44, shapes)


def _marker(index: int, x: float, y: float) -> str:
    if index == 0:
        return f'<circle class="point" cx="{x:.1f}" cy="{y:.1f}" r="5.5"/>'
    return f'<rect class="point" x="{x - 5:.1f}" y="{y - 5:.1f}" width="10" height="10"/>'


def _power(decade: int) -> str:
    return (
        f"{10**decade:g}"
        if -3 <= decade <= 3
        else f'10<tspan dy="-5" font-size="10">{decade}</tspan>'
    )


def _decade_rate(decade: int) -> str:
    return scaled(10.0**decade, "").replace(".00", "").replace(".0", "")


def _linear_ticks(end: float) -> list[float]:
    """At most seven round numbers from 0 to `end`."""
    step = 10 ** math.floor(math.log10(end / 6)) if end > 0 else 1.0
    step *= next(factor for factor in (1, 2, 5, 10) if end / (step * factor) <= 6)
    return [index * step for index in range(int(end / step) + 1)]


def _svg(title: str, description: str, height: int, shapes: list[str]) -> str:
    # Line by line: a notebook that is not trusted shows the texts alone.
    return (
        f'<svg role="img" viewBox="0 0 {WIDTH} {height}" xmlns="http://www.w3.org/2000/svg" '
        f'aria-label="{escape(title, quote=True)}"><title>{escape(title)}</title>'
        f"\n<desc>{escape(description)}</desc>\n" + "\n".join(shapes) + "</svg>"
    )
