"""What flowers are painted with: petals, stems, beads and hairs, each with its own light and shade.

Positions and vectors are (x, y) in pixels, y downwards. Colours are RGB, 0 to 1. Edges are smoothed from
the distance to the outline, so that nothing need be drawn larger and scaled down.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from PIL import Image, ImageDraw, ImageFilter

STEPS = 256  # samples of an outline or of a colour ramp, from the base to the tip
AMBIENT = 0.45  # share of the light that comes from everywhere
Colour = Sequence[float]


class Layer:
    """Premultiplied colour (height, width, 3) and coverage (height, width, 1), float32, 0 to 1."""

    def __init__(self, height: int, width: int):
        self.rgb = np.zeros((height, width, 3), np.float32)
        self.alpha = np.zeros((height, width, 1), np.float32)

    def box(self, low: np.ndarray, high: np.ndarray) -> tuple[slice, slice] | None:
        """The part of the layer between two corners (x, y), or None where that lies outside."""
        height, width = self.alpha.shape[:2]
        left, top = np.maximum(np.floor(low).astype(int), 0)
        right, bottom = np.minimum(np.ceil(high).astype(int) + 1, (width, height))
        return (slice(top, bottom), slice(left, right)) if left < right and top < bottom else None

    def paint(self, box: tuple[slice, slice], cover: np.ndarray, colour: np.ndarray) -> None:
        """Lays `colour` (..., 3) over the box, as thick as `cover` (height, width), 0 to 1."""
        cover = cover[..., None]
        self.rgb[box] += (colour - self.rgb[box]) * cover
        self.alpha[box] += (1 - self.alpha[box]) * cover

    def over(self, picture: np.ndarray, blur: float = 0.0) -> np.ndarray:
        """The layer, out of focus by `blur` pixels, laid over `picture` (height, width, 3)."""
        rgb, alpha = self.rgb, self.alpha
        if blur > 0:
            stacked = blurred(np.concatenate([rgb, alpha], axis=2), blur)
            rgb, alpha = stacked[..., :3], stacked[..., 3:]
        return picture * (1 - alpha) + rgb


def blurred(picture: np.ndarray, radius: float) -> np.ndarray:
    """`picture` (height, width, 3 or 4; 0 to 1) out of focus by `radius` pixels."""
    planes = Image.fromarray(np.uint8(np.clip(picture, 0, 1) * 255 + 0.5))
    return np.asarray(planes.filter(ImageFilter.GaussianBlur(radius)), np.float32) / 255


def ramp(*colours: Colour) -> np.ndarray:
    """Colours blended evenly from the base of a petal to its tip, (STEPS, 3)."""
    stops = np.linspace(0, 1, len(colours))
    table = np.asarray(colours, np.float32)
    at = np.linspace(0, 1, STEPS)
    return np.stack([np.interp(at, stops, table[:, i]) for i in range(3)], 1).astype(np.float32)


def outline(fullest: float, blunt: float = 0.5, foot: float = 0.0) -> np.ndarray:
    """Half the width of a petal from base to tip, (STEPS,), 1 where it is widest.

    Args:
        fullest: where it is widest, 0 (base) to 1 (tip).
        blunt: 0.5 gives a round tip, 1 a pointed one, less than 0.5 a square one.
        foot: half the width at the base.
    """
    u = np.linspace(0, 1, STEPS)
    rise = foot + (1 - foot) * np.sin(np.pi / 2 * np.clip(u / fullest, 0, 1))
    fall = np.clip(1 - ((u - fullest) / (1 - fullest)).clip(0) ** 2, 0, 1) ** blunt
    return np.where(u < fullest, rise, fall).astype(np.float32)


@dataclass(frozen=True)
class Finish:
    """How a petal is shaded: all shares of 0 to 1, but for `vein_count`."""

    curl: float = 0.6  # how far its sides turn away from the viewer (less than 0: towards)
    arch: float = 0.4  # how far its tip turns away
    veins: float = 0.08
    vein_count: float = 5.0
    occlusion: float = 0.45  # how dark it is at its base
    shadow: float = 0.35  # how dark it makes what lies just below its edge
    reach: float = 0.08  # width of that shadow, as a share of its length


def petal(
    layer: Layer,
    base: np.ndarray,
    along: np.ndarray,
    across: np.ndarray,
    shape: np.ndarray,
    colours: np.ndarray,
    light: np.ndarray,
    finish: Finish,
    bend: float = 0.0,
) -> None:
    """Paints one petal or leaf.

    Args:
        layer: what it is painted on.
        base: where it grows from.
        along: from its base to its tip.
        across: from its middle line to its side, where it is widest.
        shape: an `outline`.
        colours: a `ramp`.
        light: where the light comes from: x, y and towards the viewer, of length 1.
        finish: how it is shaded.
        bend: how far the tip is bent sideways, in units of `across`.
    """
    length, spread = np.hypot(*along), np.hypot(*across)
    area = along[0] * across[1] - along[1] * across[0]
    if abs(area) < 0.15 * length * spread or length < 1:  # seen edge-on
        across = np.array([-along[1], along[0]]) / max(length, 1e-6) * max(0.15 * spread, 0.6)
        area, spread = along[0] * across[1] - along[1] * across[0], np.hypot(*across)
    if length < 0.5:
        return
    soft = max(1.5, finish.reach * length)
    reach = 1 + abs(bend)
    corners = np.array([base + u * along + v * across for u in (0, 1) for v in (-reach, reach)])
    box = layer.box(corners.min(0) - soft, corners.max(0) + soft)
    if box is None:
        return
    y = np.arange(box[0].start, box[0].stop, dtype=np.float32)[:, None] - np.float32(base[1])
    x = np.arange(box[1].start, box[1].stop, dtype=np.float32)[None, :] - np.float32(base[0])
    u = x * np.float32(across[1] / area) - y * np.float32(across[0] / area)
    v = y * np.float32(along[0] / area) - x * np.float32(along[1] / area)
    v -= np.float32(bend) * u * np.abs(u)
    at = np.clip(u * (STEPS - 1), 0, STEPS - 1).astype(np.int16)
    thickness = abs(area) / length
    steep = np.sqrt(1 + (np.gradient(shape) * (STEPS - 1) * thickness / length) ** 2)
    ends = np.minimum(u, 1 - u) * np.float32(length)
    sides = (shape[at] - np.abs(v)) * np.float32(thickness)
    inside = np.minimum(sides / steep.astype(np.float32)[at], ends)
    if finish.shadow:
        near = np.clip(1 + np.minimum(sides / np.float32(1.3), ends) / soft, 0, 1)
        layer.rgb[box] *= (1 - finish.shadow * near**2)[..., None]
    side = np.clip(v / np.maximum(shape[at], 0.05), -1, 1)
    l_along, l_across = (light[:2] @ along) / length, (light[:2] @ across) / spread
    n_along, n_across = finish.arch * (2 * u - 1), finish.curl * side
    glow = n_along * l_along + n_across * l_across + light[2]
    glow /= np.sqrt(1 + n_along**2 + n_across**2)
    shade = AMBIENT + (1 - AMBIENT) * np.clip(glow / 0.8, 0, 1.25)
    shade *= 1 - finish.occlusion * np.clip(1 - u * 1.6, 0, 1) ** 1.5
    shade *= 1 - finish.veins * (0.5 - 0.5 * np.cos(side * finish.vein_count * np.pi))
    layer.paint(box, np.clip(inside + 0.5, 0, 1), colours[at] * shade[..., None])


def bead(layer: Layer, centre: np.ndarray, radii: np.ndarray, colour: Colour, light: np.ndarray):
    """Paints a small shaded ellipse with upright axes: a seed, a floret, a drop."""
    box = layer.box(centre - radii - 1, centre + radii + 1)
    if box is None:
        return
    y = (np.arange(box[0].start, box[0].stop)[:, None] - centre[1]) / radii[1]
    x = (np.arange(box[1].start, box[1].stop)[None, :] - centre[0]) / radii[0]
    distance = np.sqrt(x * x + y * y)
    height = np.sqrt(np.clip(1 - distance**2, 0, 1))
    shade = AMBIENT + (1 - AMBIENT) * np.clip(
        (x * light[0] + y * light[1] + height * light[2]) / 0.8, 0, 1.3
    )
    cover = np.clip((1 - distance) * min(radii) + 0.5, 0, 1)
    layer.paint(box, cover.astype(np.float32), np.asarray(colour, np.float32) * shade[..., None])


def stem(
    layer: Layer, points: np.ndarray, widths: tuple[float, float], colour: Colour, light: np.ndarray
):
    """Paints a round stem along a quadratic curve.

    Args:
        layer: what it is painted on.
        points: start, control point and end of the curve, (3, 2).
        widths: half the width at the start and at the end, in pixels.
        colour: its colour in full light.
        light: where the light comes from.
    """
    t = np.linspace(0, 1, STEPS)[:, None]
    curve = (1 - t) ** 2 * points[0] + 2 * t * (1 - t) * points[1] + t**2 * points[2]
    curve = curve[np.argsort(curve[:, 1], kind="stable")]
    thickest = max(widths) * 2 + 2
    box = layer.box(curve.min(0) - (thickest, 0), curve.max(0) + (thickest, 0))
    if box is None:
        return
    rows = np.arange(box[0].start, box[0].stop)
    middle = np.interp(rows, curve[:, 1], curve[:, 0])
    lean = np.sqrt(1 + np.clip(np.gradient(middle), -3, 3) ** 2) if len(rows) > 1 else np.ones(1)
    half = np.interp(
        rows, [curve[0, 1], curve[-1, 1]], widths if points[0][1] < points[2][1] else widths[::-1]
    )
    columns = np.arange(box[1].start, box[1].stop)[None, :]
    side = (columns - middle[:, None]) / (half * lean)[:, None]
    shade = AMBIENT + (1 - AMBIENT) * np.clip(
        side * light[0] + np.sqrt(np.clip(1 - side**2, 0, 1)), 0, 1.2
    )
    cover = np.clip((1 - np.abs(side)) * half[:, None] + 0.5, 0, 1)
    layer.paint(box, cover.astype(np.float32), np.asarray(colour, np.float32) * shade[..., None])


def hairs(layer: Layer, lines: np.ndarray, colour: Colour, opacity: float, thickness: float = 1.0):
    """Paints fine straight hairs.

    Args:
        layer: what they are painted on.
        lines: x0, y0, x1, y1 of each, (n, 4), in pixels.
        colour: their colour; hairs are too thin to be shaded.
        opacity: how much of what lies behind they cover, 0 to 1.
        thickness: in pixels; less than one gives fainter hairs.
    """
    height, width = layer.alpha.shape[:2]
    fine = 3  # drawn larger, then scaled down: Pillow's lines have no soft edges
    mask = Image.new("L", (width * fine, height * fine))
    pen = ImageDraw.Draw(mask)
    weight = max(1, round(thickness * fine))
    for line in np.round(lines * fine).astype(int).tolist():
        pen.line(line, fill=255, width=weight)
    cover = np.asarray(mask.reduce(fine), np.float32) / 255 * opacity
    layer.paint((slice(0, height), slice(0, width)), cover, np.asarray(colour, np.float32))
