"""The report's pictures as inline SVG: memory bar and roofline. No scripts, no outside resources.

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
    """A core's memory by part as one bar, with the end of what a core lets a program use."""
    limit, used = step.memory.available.value, step.memory.used
    left, right, top, height = 4, WIDTH - 4, 22, 30
    scale = (right - left) / (max(limit, used) * 1.02)
    end = left + limit * scale
    shapes = [_rect("room", left, top, limit * scale, height)]
    x = float(left)
    for part, size in step.memory.parts.items():
        width = max(size * scale, LEAST) if size else 0.0
        shapes.append(_rect(part, x, top, width, height))
        if width >= 16:
            shapes.append(_text(x + width / 2, top + 20, part[0].upper(), "middle", "on"))
        x += width
    if step.memory.needed is not None:
        shapes.append(_rect("beyond", end, top, left + used * scale - end, height))
    shapes.append(_line("limit", end, end, top - 6, top + height + 6))
    beside = (end - 4, "end") if end > WIDTH / 2 else (end + 4, "start")
    shapes.append(_text(beside[0], top - 8, f"usable {memory(limit)}", beside[1]))
    return _svg(f"Memory of a core, {step.name}", description, 60, shapes)


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
        shapes.append(_line("grid", at, at, upper, lower))
        shapes.append(_text(at, lower + 16, f"{10.0**decade:g}", "middle"))
    for decade in range(bottom, top + 1):
        at = y(10.0**decade)
        label = scaled(10.0**decade, "").replace(".00", "").replace(".0", "")
        shapes.append(_line("grid", left, right, at, at))
        shapes.append(_text(left - 6, at + 4, label, "end"))
    start = bandwidth * 10.0**low
    angle = math.degrees(math.atan2(y(start) - y(peak), x(ridge) - x(10.0**low)))
    middle = math.sqrt(ridge * 10.0**low)  # of the slope
    shapes += [
        f'<polyline class="roof" points="{x(10.0**low):.1f},{y(start):.1f} {x(ridge):.1f},{y(peak):.1f} '
        f'{right},{y(peak):.1f}"/>',
        _text(right - 2, y(peak) - 10, f"peak {scaled(peak, 'FLOP/s')}", "end", "halo"),
        f'<text class="halo" transform="translate({x(middle):.1f} {y(bandwidth * middle):.1f}) '
        f'rotate({-angle:.1f})" y="-9" text-anchor="middle">memory {scaled(bandwidth, "B/s")}</text>',
        _marker("ridge", x(ridge), y(peak)),
    ]
    legend = [("ridge", f"ridge {rounded(ridge)} FLOP/B")]
    for index, (name, intensity) in enumerate(points):
        rate, mark = min(peak, bandwidth * intensity), "other" if index else "first"
        shapes.append(_line("drop", x(intensity), x(intensity), y(rate), lower))
        shapes.append(_marker(mark, x(intensity), y(rate)))
        legend.append((mark, f"{name} {rounded(intensity)} FLOP/B"))
    for row, (mark, label) in enumerate(reversed(legend)):
        at = lower - 12 - 17 * row
        shapes.append(_marker(mark, right - 178, at - 4))
        shapes.append(_text(right - 166, at, escape(label), css="halo"))
    axis = "arithmetic intensity, FLOP per byte of HBM traffic"
    shapes.append(_text((left + right) / 2, lower + 36, axis, "middle"))
    shapes.append(
        f'<text transform="translate(12 {(upper + lower) / 2}) rotate(-90)" text-anchor="middle">'
        "FLOP/s a core, at most</text>"
    )
    return _svg("Roofline of a core", description, lower + 44, shapes)


def _marker(kind: str, x: float, y: float) -> str:
    """A circle for the first program, a square for others, a diamond for the ridge."""
    if kind == "first":
        return f'<circle class="point" cx="{x:.1f}" cy="{y:.1f}" r="5.5"/>'
    if kind == "other":
        return _rect("point", x - 5, y - 5, 10, 10)
    return f'<path class="ridge" d="M{x:.1f} {y - 6:.1f} l6 6 l-6 6 l-6 -6 z"/>'


def _rect(css: str, x: float, y: float, width: float, height: float) -> str:
    size = f'width="{width:.1f}" height="{height}"'
    return f'<rect class="{css}" x="{x:.1f}" y="{y:.1f}" {size}/>'


def _line(css: str, x1: float, x2: float, y1: float, y2: float) -> str:
    return f'<line class="{css}" x1="{x1:.1f}" x2="{x2:.1f}" y1="{y1:.1f}" y2="{y2:.1f}"/>'


def _text(x: float, y: float, text: str, anchor: str = "start", css: str = "") -> str:
    return f'<text class="{css}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{text}</text>'


def _svg(title: str, description: str, height: int, shapes: list[str]) -> str:
    # Line by line: a notebook that is not trusted shows the texts only.
    return (
        f'<svg role="img" viewBox="0 0 {WIDTH} {height}" xmlns="http://www.w3.org/2000/svg" '
        f'aria-label="{escape(title, quote=True)}"><title>{escape(title)}</title>'
        f"\n<desc>{escape(description)}</desc>\n" + "\n".join(shapes) + "</svg>"
    )
