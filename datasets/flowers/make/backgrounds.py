"""What stands behind the flowers: grass, sky, soil, walls, foliage and lights out of focus."""

import numpy as np
from anatomy import pick
from brush import blurred
from numpy.random import RandomState
from PIL import Image, ImageDraw

GREENS = np.array([(0.20, 0.34, 0.09), (0.33, 0.46, 0.14), (0.45, 0.56, 0.22), (0.14, 0.25, 0.10)])
PETALS = np.array(
    [(0.9, 0.9, 0.86), (0.93, 0.76, 0.12), (0.8, 0.12, 0.12), (0.9, 0.5, 0.66), (0.5, 0.26, 0.62)]
)


def noise(rng: RandomState, height: int, width: int, cell: float, octaves: int = 3) -> np.ndarray:
    """Cloud-like noise around 0, within -1 to 1, (height, width); `cell` is its coarsest grain in pixels."""
    total, weight = np.zeros((height, width), np.float32), 0.0
    for octave in range(octaves):
        grain = max(1.0, cell / 2**octave)
        grid = rng.rand(int(height / grain) + 2, int(width / grain) + 2).astype(np.float32)
        smooth = Image.fromarray(grid).resize((width, height), Image.Resampling.BICUBIC)
        total += (np.asarray(smooth) * 2 - 1) * 0.5**octave
        weight += 0.5**octave
    return total / weight


def gradient(height: int, width: int, top: np.ndarray, bottom: np.ndarray) -> np.ndarray:
    """A picture (height, width, 3) that goes from one colour to another."""
    down = np.linspace(0, 1, height, dtype=np.float32)[:, None, None]
    return np.broadcast_to(top * (1 - down) + bottom * down, (height, width, 3)).astype(np.float32)


def mottled(rng: RandomState, picture: np.ndarray, cell: float, strength: float) -> np.ndarray:
    """`picture` with lighter and darker patches."""
    return picture * (1 + strength * noise(rng, *picture.shape[:2], cell))[..., None]


def blades(rng: RandomState, height: int, width: int, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Grass from the lower edge: its colours (height, width, 3), and where it is (height, width)."""
    fine = 2
    colours = Image.new("RGB", (width * fine, height * fine))
    mask = Image.new("L", colours.size)
    paint, cut = ImageDraw.Draw(colours), ImageDraw.Draw(mask)
    tint = GREENS[rng.randint(3)] * (1 + rng.uniform(-0.1, 0.15, 3))
    for k in range(count):
        foot, tall = rng.uniform(-0.1, 1.1) * width, rng.uniform(0.35, 1.0) * height
        lean, thick = rng.normal(0, 0.35) * tall, rng.uniform(0.004, 0.012) * width + 0.5
        t = np.linspace(0, 1, 9)
        x, y, half = foot + lean * t**2, height * 1.02 - tall * t, thick * (1 - t) ** 0.7
        edge = np.concatenate([np.stack([x - half, y], 1), np.stack([x + half, y], 1)[::-1]]) * fine
        points = [tuple(point) for point in edge.round().astype(int).tolist()]
        shade = tint * rng.uniform(0.6, 1.25) * (0.6 + 0.5 * k / count)
        paint.polygon(points, fill=tuple(np.uint8(np.clip(shade, 0, 1) * 255).tolist()))
        cut.polygon(points, fill=255)
    return (
        np.asarray(colours.reduce(fine), np.float32) / 255,
        np.asarray(mask.reduce(fine), np.float32) / 255,
    )


def grass(rng: RandomState, height: int, width: int) -> np.ndarray:
    """A lawn or a meadow, more or less out of focus."""
    green = GREENS[rng.randint(4)]
    picture = mottled(
        rng, gradient(height, width, green * rng.uniform(0.7, 1.6), green * 0.7), width / 5, 0.4
    )
    colours, cover = blades(rng, height, width, rng.randint(60, 160))
    picture = picture * (1 - cover[..., None]) + colours
    return blurred(picture, rng.uniform(0.4, 6))


def sky(rng: RandomState, height: int, width: int) -> np.ndarray:
    """Blue, grey or evening sky with clouds, and at times a horizon."""
    tops = {
        (0.18, 0.42, 0.78): 4,
        (0.42, 0.62, 0.86): 3,
        (0.66, 0.69, 0.72): 2,
        (0.36, 0.30, 0.44): 1,
    }
    top = np.array(pick(rng, tops))
    bottom = top * 0.4 + 0.55 * np.array(pick(rng, {(1, 1, 1): 3, (1, 0.86, 0.66): 1}))
    picture = gradient(height, width, top, bottom)
    cloud = np.clip(noise(rng, height, width, width / 2.5, 5) * 2.2 + rng.uniform(-0.5, 0.4), 0, 1)[
        ..., None
    ]
    picture = picture * (1 - cloud * 0.8) + 0.92 * cloud * 0.8
    if rng.rand() < 0.5:
        line = height * (rng.uniform(0.6, 0.92) + 0.05 * noise(rng, 1, width, width / 4)[0])
        land = (np.arange(height)[:, None] > line[None, :]).astype(np.float32)[..., None]
        field = mottled(
            rng, gradient(height, width, GREENS[3], GREENS[rng.randint(3)]), width / 12, 0.4
        )
        picture = blurred(picture * (1 - land) + field * land, rng.uniform(1, 4))
    return picture


def soil(rng: RandomState, height: int, width: int) -> np.ndarray:
    """Earth, gravel or dry leaves."""
    colour = np.array(
        pick(rng, {(0.33, 0.24, 0.16): 3, (0.52, 0.45, 0.36): 2, (0.24, 0.20, 0.17): 2})
    )
    picture = mottled(
        rng, gradient(height, width, colour * 1.15, colour * 0.85), rng.uniform(6, 24), 0.75
    )
    return blurred(mottled(rng, picture, width / 3, 0.3), rng.uniform(0.5, 4))


def wall(rng: RandomState, height: int, width: int) -> np.ndarray:
    """A brick wall, planks, or plain plaster."""
    paints = {
        (0.56, 0.28, 0.22): 3,
        (0.80, 0.77, 0.70): 3,
        (0.45, 0.46, 0.50): 2,
        (0.44, 0.32, 0.22): 2,
    }
    colour = np.array(pick(rng, paints))
    picture = gradient(height, width, colour * 1.08, colour * 0.9)
    kind, size = rng.randint(3), rng.uniform(0.08, 0.2) * height
    y, x = np.mgrid[:height, :width]
    if kind < 2:
        course = np.floor(y / size).astype(int)
        across = (x + (course % 2) * size * 1.2) / (size * 2.4) if kind == 0 else x / size
        block = np.floor(across).astype(int)
        tones = rng.uniform(0.82, 1.12, 997)[(course * 31 * (kind == 0) + block * 7) % 997]
        joint = np.abs(across - block - 0.5) > 0.47
        if kind == 0:
            joint |= np.abs(y / size - course - 0.5) > 0.44
        picture = picture * tones[..., None] * np.where(joint, 0.7, 1)[..., None]
    return blurred(mottled(rng, picture, 12, 0.15), rng.uniform(0.5, 3))


def foliage(rng: RandomState, height: int, width: int) -> np.ndarray:
    """Leaves of a hedge, in light and shade."""
    picture = gradient(height, width, GREENS[3] * 0.7, GREENS[3] * 0.5)
    image = Image.fromarray(np.uint8(picture * 255))
    pen = ImageDraw.Draw(image)
    t = np.linspace(0, np.pi, 8)
    for k in range(150):
        length = rng.uniform(0.05, 0.14) * width
        leaf = np.stack([np.cos(t) * length / 2, np.sin(t) * length * 0.28], 1)
        leaf = np.concatenate([leaf, leaf[::-1] * (1, -1)])
        cos, sin = np.cos(turn := rng.uniform(0, 2 * np.pi)), np.sin(turn)
        leaf = leaf @ np.array([[cos, sin], [-sin, cos]]) + (
            rng.uniform(0, width),
            rng.uniform(0, height),
        )
        colour = GREENS[rng.randint(4)] * rng.uniform(0.4, 1.2) * (0.5 + 0.5 * k / 150)
        fill = tuple(np.uint8(np.clip(colour, 0, 1) * 255).tolist())
        pen.polygon([tuple(p) for p in leaf.round().astype(int).tolist()], fill=fill)
    return blurred(np.asarray(image, np.float32) / 255, rng.uniform(0.8, 5))


def bokeh(rng: RandomState, height: int, width: int) -> np.ndarray:
    """A garden far out of focus: soft discs of leaves, light and flowers of any colour."""
    base = GREENS[rng.randint(4)] * rng.uniform(0.4, 1.5)
    picture = mottled(
        rng, gradient(height, width, base * rng.uniform(0.6, 1.6), base), width / 2, 0.5
    )
    y, x = np.mgrid[:height, :width].astype(np.float32)
    accent = PETALS[rng.randint(len(PETALS))]
    for _ in range(rng.randint(6, 26)):
        radius = rng.uniform(0.03, 0.12) * width
        distance = np.hypot(x - rng.uniform(0, width), y - rng.uniform(0, height))
        colour = accent if rng.rand() < 0.4 else GREENS[rng.randint(4)] * rng.uniform(0.8, 2)
        cover = np.clip((radius - distance) / 3 + 0.5, 0, 1) * rng.uniform(0.15, 0.6)
        picture = picture + (colour - picture) * cover[..., None]
    return blurred(picture, rng.uniform(2, 6))


def plain(rng: RandomState, height: int, width: int) -> np.ndarray:
    """A room or a studio: one colour, lit from one side; dark as often as bright."""
    colour = np.array(
        pick(
            rng,
            {(0.05, 0.05, 0.06): 3, (0.82, 0.82, 0.80): 2, (0.5, 0.56, 0.6): 2, (0.5, 0.3, 0.3): 1},
        )
    )
    picture = gradient(height, width, colour * 1.15, colour * 0.75)
    side = np.linspace(rng.uniform(0.7, 1.0), rng.uniform(1.0, 1.25), width, dtype=np.float32)
    return mottled(rng, picture * side[:: rng.choice([1, -1]), None], width / 2, 0.08)


BACKGROUNDS = {grass: 5, foliage: 4, bokeh: 5, sky: 4, soil: 2, wall: 2, plain: 3}
