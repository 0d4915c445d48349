"""One picture: the flowers of a class among stems and leaves, in front of something, through a camera."""

import hashlib
from io import BytesIO

import numpy as np
from anatomy import Pose, pick, tinted
from backgrounds import BACKGROUNDS, GREENS, blades, noise
from brush import (
    Colour,
    Finish,
    Layer,
    blurred,
    outline,
    petal,
    ramp,
    stem,
)
from heads import HEADS
from numpy.random import RandomState
from palettes import PALETTES
from PIL import Image

# Widths and heights in pixels, about as often as among the photographs of `flower_photos`.
SIZES = {
    (320, 240): 22, (500, 333): 14, (320, 213): 16, (240, 240): 8, (180, 240): 8, (500, 375): 4,
    (159, 240): 5, (320, 180): 4, (320, 256): 3, (240, 320): 3,
    (500, 281): 2, (333, 436): 2, (145, 240): 1, (640, 426): 1,
}  # fmt: skip
STEEPEST = {"daisy": 1.25, "dandelion": 0.8, "roses": 0.75, "sunflowers": 1.0, "tulips": 1.2}
STEM = {
    "daisy": 0.028,
    "dandelion": 0.04,
    "roses": 0.045,
    "sunflowers": 0.07,
    "tulips": 0.06,
}  # share of the radius
LARGEST = {"daisy": 1.0, "dandelion": 1.0, "roses": 1.0, "sunflowers": 1.05, "tulips": 0.9}


def render(label: str, index: int, seed: int) -> bytes:
    """The picture as a JPEG file.

    It depends on nothing but the three arguments: NumPy's RandomState yields the same numbers in every
    release (NEP 19). Other releases of NumPy and Pillow may yet round or encode a few pixels otherwise.
    """
    digest = hashlib.sha256(f"{seed}/{label}/{index}".encode()).digest()
    rng = RandomState(np.frombuffer(digest, ">u4").astype(np.uint32))
    pixels = camera(rng, scene(rng, label, *pick(rng, SIZES)))
    file = BytesIO()
    Image.fromarray(pixels).save(file, "JPEG", quality=int(rng.randint(70, 95)))
    return file.getvalue()


def scene(rng: RandomState, label: str, width: int, height: int) -> np.ndarray:
    """The flowers in front of their background, (height, width, 3), 0 to 1 in full light."""
    elevation, side = rng.uniform(0.5, 1.2), rng.uniform(-1, 1)
    light = np.array([np.cos(elevation) * side, -np.cos(elevation), np.sin(elevation)])
    light /= np.linalg.norm(light)
    picture = pick(rng, BACKGROUNDS)(rng, height, width)
    unit = min(width, height)
    variety = pick(
        rng, PALETTES[label]
    )  # most flowers of a picture are of one colour, as in a garden
    layout = pick(rng, {"close": 4, "single": 4, "group": 3, "field": 1})
    if layout == "close":
        spots = [(rng.uniform(0.35, 0.65), rng.uniform(0.35, 0.6), rng.uniform(0.34, 0.56))]
    elif layout == "single":
        spots = [(rng.uniform(0.25, 0.75), rng.uniform(0.25, 0.5), rng.uniform(0.18, 0.32))]
    elif layout == "group":
        count = rng.randint(2, 6)
        xs = (np.arange(count) + 0.5 + rng.uniform(-0.3, 0.3, count)) / count
        spots = [(x, rng.uniform(0.2, 0.65), rng.uniform(0.14, 0.26)) for x in rng.permutation(xs)]
    else:
        ys = np.sort(rng.uniform(0.3, 0.95, rng.randint(10, 22)))
        spots = [(rng.uniform(0, 1), y, 0.03 + 0.13 * y**1.5) for y in ys]
    if layout in ("close", "single") and rng.rand() < 0.5:  # others behind, out of focus
        behind = [
            (rng.uniform(0, 1), rng.uniform(0.1, 0.8), rng.uniform(0.1, 0.2))
            for _ in range(rng.randint(1, 4))
        ]
        layer = Layer(height, width)
        for x, y, size in behind:
            plant(layer, rng, label, np.array([x * width, y * height]), size * unit, light, variety)
        picture = layer.over(picture, rng.uniform(2.5, 6))
    layer = Layer(height, width)
    for x, y, size in spots:
        plant(
            layer,
            rng,
            label,
            np.array([x * width, y * height]),
            size * unit * LARGEST[label],
            light,
            variety,
        )
    picture = layer.over(
        shaded(picture, layer, light, rng.uniform(0, 0.5), unit), max(0, rng.uniform(-1.5, 0.9))
    )
    if rng.rand() < 0.3:
        picture = foreground(rng, picture, light)
    return picture


def shaded(
    picture: np.ndarray, layer: Layer, light: np.ndarray, depth: float, unit: int
) -> np.ndarray:
    """`picture` in the soft shadow that the layer throws on it, `depth` dark."""
    shift = np.round(light[:2] * -0.08 * unit).astype(int)
    height, width = picture.shape[:2]
    room = np.abs(shift).max()
    padded = np.pad(
        np.repeat(layer.alpha, 3, axis=2), ((room, room), (room, room), (0, 0)), mode="edge"
    )
    top, left = room - shift[1], room - shift[0]
    shadow = blurred(padded, unit * 0.03)[top : top + height, left : left + width]
    return picture * (1 - depth * shadow)


def plant(
    layer: Layer,
    rng: RandomState,
    label: str,
    at: np.ndarray,
    radius: float,
    light: np.ndarray,
    variety: tuple[Colour, ...],
) -> None:
    """Paints one flower with its stem and leaves; `at` is the middle of its head."""
    height = layer.alpha.shape[0]
    tilt = rng.uniform(0, STEEPEST[label])
    if label == "tulips":
        tilt = 0.2 if rng.rand() < 0.18 else 1.0
    pose = Pose(at, radius, tilt, rng.normal(0, 0.22))
    green = GREENS[rng.randint(3)] * (1 + rng.uniform(-0.12, 0.12, 3))
    foot = np.array([at[0] + rng.normal(0, 0.5) * radius, height + radius * 0.3])
    down = pose.project(0, 0, -0.9) if label != "tulips" else pose.project(0, 0.9, 0)
    points = np.array([at + down * 0.1, at + down * 1.6, foot])
    thick = max(0.9, STEM[label] * radius)
    brown = label == "dandelion" and rng.rand() < 0.5
    stem(layer, points, (thick, thick * 1.25), (0.5, 0.36, 0.22) if brown else green * 1.15, light)
    leaves(layer, rng, label, points, radius, green, light)
    colours = tinted(rng, variety if rng.rand() < 0.8 else pick(rng, PALETTES[label]))
    HEADS[label](layer, rng, pose, light, colours)


def leaves(
    layer: Layer,
    rng: RandomState,
    label: str,
    points: np.ndarray,
    radius: float,
    green: np.ndarray,
    light: np.ndarray,
) -> None:
    """Paints the leaves that this kind of flower has, along the stem's curve or at its foot."""
    finish = Finish(curl=0.5, arch=0.5, veins=0.18, vein_count=1, shadow=0.3, occlusion=0.3)
    colours = np.clip(ramp(green * 0.8, green * 1.1, green * 1.25), 0, 1)
    up = (points[0] - points[2]) / max(np.hypot(*(points[0] - points[2])), 1)
    across = np.array([-up[1], up[0]])

    def leaf(
        t: float,
        side: float,
        angle: float,
        length: float,
        slim: float,
        shape: np.ndarray,
        bend: float = 0,
    ):
        base = (1 - t) ** 2 * points[0] + 2 * t * (1 - t) * points[1] + t**2 * points[2]
        direction = up * np.cos(angle) + across * np.sin(angle) * side
        sideways = np.array([-direction[1], direction[0]]) * length * slim
        petal(layer, base, direction * length, sideways, shape, colours, light, finish, bend * side)

    if label == "tulips":  # long and upright, from the ground
        for side in (1, -1)[: rng.randint(1, 3)]:
            shape = outline(0.35, 0.9, 0.4)
            leaf(
                rng.uniform(0.85, 1),
                side,
                rng.uniform(0.15, 0.5),
                radius * rng.uniform(2.2, 3.4),
                0.12,
                shape,
                1.2,
            )
    elif label == "sunflowers":  # large hearts on the stem
        for t in rng.uniform(0.25, 0.95, rng.randint(1, 4)):
            angle, length = rng.uniform(0.8, 1.7), radius * rng.uniform(0.8, 1.3)
            leaf(t, rng.choice([-1, 1]), angle, length, 0.36, outline(0.3, 0.9, 0.5))
    elif label == "roses":  # three or five leaflets together, darker than the stem
        for t in rng.uniform(0.05, 0.9, rng.randint(1, 4)):
            side, angle = rng.choice([-1, 1]), rng.uniform(0.6, 1.5)
            for turn in (-0.8, 0.8, 0.0):
                size = radius * rng.uniform(0.6, 0.85)
                leaf(
                    t,
                    side,
                    angle + turn,
                    size * (1.25 if turn == 0 else 1),
                    0.3,
                    outline(0.42, 0.7, 0.2),
                )
        for turn in np.linspace(-1.9, 1.9, 5):  # sepals under the head
            leaf(0, 1, turn, radius * 0.95, 0.12, outline(0.3, 1.0, 0.5))
    elif label == "dandelion":  # toothed blades at the foot
        for _ in range(rng.randint(0, 4)):
            shape = outline(0.7, 0.6, 0.15) * (
                1 - 0.5 * (np.linspace(0, 7, 256) % 1).astype(np.float32)
            )
            leaf(
                1,
                rng.choice([-1, 1]),
                rng.uniform(0.2, 1.2),
                radius * rng.uniform(1.2, 2.2),
                0.13,
                shape,
            )
    else:  # a daisy's few and narrow ones
        for t in rng.uniform(0.4, 1.0, rng.randint(0, 4)):
            leaf(
                t,
                rng.choice([-1, 1]),
                rng.uniform(0.4, 1.2),
                radius * rng.uniform(0.4, 0.8),
                0.1,
                outline(0.6, 0.7),
            )


def foreground(rng: RandomState, picture: np.ndarray, light: np.ndarray) -> np.ndarray:
    """`picture` behind blades of grass or a leaf close to the lens."""
    height, width = picture.shape[:2]
    if rng.rand() < 0.5:
        colours, cover = blades(rng, int(height * rng.uniform(0.3, 0.7)), width, rng.randint(4, 14))
        stacked = np.zeros((height, width, 4), np.float32)
        stacked[-len(cover) :] = np.concatenate([colours, cover[..., None]], axis=2)
        stacked = blurred(stacked, rng.uniform(0.6, 4))
        return picture * (1 - stacked[..., 3:]) + stacked[..., :3]
    layer = Layer(height, width)
    green = GREENS[rng.randint(4)] * 1.2
    angle = rng.uniform(0, 2 * np.pi)
    along = np.array([np.cos(angle), np.sin(angle)]) * width * rng.uniform(0.3, 0.55)
    middle = np.array([width, height]) * (0.5 - 0.6 * np.array([np.cos(angle), np.sin(angle)]))
    sideways = np.array([-along[1], along[0]]) * rng.uniform(0.15, 0.3)
    shape, finish = outline(0.4, 0.8, 0.1), Finish(vein_count=1, veins=0.2)
    petal(layer, middle, along, sideways, shape, ramp(green * 0.8, green * 1.2), light, finish)
    return layer.over(picture, rng.uniform(1, 6))


def camera(rng: RandomState, picture: np.ndarray) -> np.ndarray:
    """The scene as a camera takes it, (height, width, 3) uint8: light, white balance, contrast, grain."""
    height, width = picture.shape[:2]
    exposure = np.exp(rng.normal(0.02, 0.17))
    balance = (
        1
        + rng.normal(0, 0.07) * np.array([1, 0.15, -1])
        + rng.normal(0, 0.03) * np.array([0.5, -1, 0.5])
    )
    picture = picture * exposure * balance
    if rng.rand() < 0.3:  # dappled light
        dapple = np.clip(noise(rng, height, width, min(height, width) / 2) * 3, -1, 1)
        picture = picture * (1 + rng.uniform(0.1, 0.35) * dapple)[..., None]
    y, x = np.mgrid[-1 : 1 : height * 1j, -1 : 1 : width * 1j]
    picture = picture * (1 - rng.uniform(0, 0.35) * (x * x + y * y) / 2)[..., None]
    grey = picture @ np.array([0.3, 0.59, 0.11])
    saturation = rng.uniform(0.6, 1.1) if rng.rand() > 0.04 else 0.0
    picture = grey[..., None] + (picture - grey[..., None]) * saturation
    picture = np.clip(picture, 0, 1)
    picture = picture + rng.uniform(-0.1, 0.35) * picture * (1 - picture) * (2 * picture - 1)
    picture = picture + rng.normal(0, 1, (height, width, 1)) * max(0, rng.uniform(-0.012, 0.018))
    return np.uint8(np.clip(picture, 0, 1) * 255 + 0.5)
