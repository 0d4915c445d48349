"""The heads of the five flowers, petal by petal."""

import numpy as np
from anatomy import (
    GOLDEN_ANGLE,
    Pose,
    blend,
    pick,
    seeds,
    tinted,
    whorl,
)
from brush import Finish, Layer, bead, hairs, outline, petal
from numpy.random import RandomState
from palettes import PALETTES


def daisy(
    layer: Layer, rng: RandomState, pose: Pose, light: np.ndarray, colours: np.ndarray
) -> None:
    """Thin rays, white more often than not, around a small yellow cushion."""
    disc = rng.uniform(0.2, 0.29)
    count = rng.randint(13, 26)
    elevation = rng.uniform(-0.35, 0.45)
    shape = outline(rng.uniform(0.55, 0.8), rng.uniform(0.35, 0.5), 0.35)
    width = 1.9 / count * rng.uniform(0.75, 1.05)
    finish = Finish(curl=0.5, veins=0.14, vein_count=2, shadow=0.4, reach=0.06)
    heart = blend((0, (0.80, 0.62, 0.06)), (0.6, (0.97, 0.78, 0.10)), (1, (0.90, 0.60, 0.05)))

    def cushion():
        seeds(layer, rng, pose, light, disc, disc * 0.55, 0.022, heart)

    ring = dict(inner=disc * 0.7, shape=shape, colours=colours, finish=finish)
    length = 1 - disc * 0.7
    if rng.rand() < 0.5:
        whorl(
            layer,
            rng,
            pose,
            light,
            count=count,
            length=length,
            width=width,
            elevation=elevation - 0.12,
            **ring,
        )
    whorl(
        layer, rng, pose, light,
        count=count, length=length * 0.97, width=width, elevation=elevation, between=cushion, **ring,
    )  # fmt: skip


def dandelion(
    layer: Layer, rng: RandomState, pose: Pose, light: np.ndarray, colours: np.ndarray
) -> None:
    """Either a cushion of a hundred strap-shaped florets, or the white ball of seeds it turns into."""
    if rng.rand() < 0.5:
        seed_head(layer, rng, pose, light)
    else:
        floret_head(layer, rng, pose, light, colours)


def floret_head(
    layer: Layer, rng: RandomState, pose: Pose, light: np.ndarray, colours: np.ndarray
) -> None:
    """Florets in rings, shorter and steeper towards the middle, each cut off square."""
    shape = outline(0.75, 0.2, 0.5)
    finish = Finish(curl=0.5, veins=0.15, vein_count=3, shadow=0.3, reach=0.08, occlusion=0.25)
    rings = rng.randint(7, 10)
    for k in range(rings):
        share = 1 - k / rings  # 1 outside
        whorl(
            layer, rng, pose, light,
            count=int(12 + 34 * share), inner=0.03 + 0.1 * share, length=0.22 + 0.62 * share,
            width=0.045 + 0.02 * share, elevation=1.3 * (1 - share) ** 1.3 - 0.15,
            height=0.16 * (1 - share), shape=shape, finish=finish, jitter=0.1,
            colours=colours * np.float32(1.03 - 0.14 * (1 - share)),
        )  # fmt: skip


def seed_head(layer: Layer, rng: RandomState, pose: Pose, light: np.ndarray) -> None:
    """A ball of stalked seeds, each with a parachute of hairs; some may have flown."""
    count = rng.randint(110, 190)
    height = 1 - 2 * (np.arange(count) + 0.5) / count
    angle = np.arange(count) * GOLDEN_ANGLE + rng.uniform(0, 2 * np.pi)
    across = np.sqrt(1 - height**2)
    ends = np.stack([across * np.cos(angle), across * np.sin(angle), height], 1)
    ends *= 0.84 + rng.normal(0, 0.025, (count, 1))
    if rng.rand() < 0.25:  # a breath of wind has taken one side
        gone = np.array([np.cos(pose.roll + 1), np.sin(pose.roll + 1), 0])
        ends = ends[ends @ gone < rng.uniform(0.1, 0.5)]
    warm = 1 - rng.uniform(0, 0.22) * np.array([0, 0.4, 1])
    core = 0.17
    fine = max(0.34, pose.radius / 220)
    for front in (False, True):
        if front:
            brown = blend((0, (0.42, 0.33, 0.20)), (1, (0.28, 0.22, 0.12)))
            seeds(layer, rng, pose, light, core, core * 0.6, 0.03, brown)
        group = ends[(ends[:, 2] > 0) == front]
        stalks, tufts = [], []
        for end in group:
            tip = end[:2] * pose.radius
            stalks.append([*(tip * core / 0.84), *tip])
            spokes = rng.randint(11, 17)
            out = end / np.linalg.norm(end)
            side = np.cross(out, [0.3, 0.5, 0.8])
            side /= np.linalg.norm(side)
            other = np.cross(out, side)
            turns = rng.uniform(0, 2 * np.pi) + np.arange(spokes) * 2 * np.pi / spokes
            reach = rng.uniform(0.16, 0.24, (spokes, 1))
            rays = np.cos(turns)[:, None] * side + np.sin(turns)[:, None] * other + 0.55 * out
            tufts.append(
                np.concatenate(
                    [np.tile(tip, (spokes, 1)), tip + (rays * reach)[:, :2] * pose.radius], 1
                )
            )
        if not stalks:
            continue
        centred = np.tile(pose.centre, 2)
        grey = np.array([0.80, 0.78, 0.72] if front else [0.62, 0.62, 0.58]) * warm
        white = np.array([0.99, 0.99, 0.99] if front else [0.80, 0.82, 0.80]) * warm
        hairs(layer, np.array(stalks) + centred, grey, 0.55, fine * 1.2)
        hairs(layer, np.concatenate(tufts) + centred, white, 0.85 if front else 0.5, fine)


def rose(
    layer: Layer, rng: RandomState, pose: Pose, light: np.ndarray, colours: np.ndarray
) -> None:
    """Broad petals in spirals, steeper and closer towards the middle."""
    finish = Finish(
        curl=-0.55, arch=-0.7, veins=0.05, vein_count=7, shadow=0.55, reach=0.13, occlusion=0.75
    )
    deep = colours * np.float32([0.86, 0.80, 0.80])
    rings = rng.randint(6, 9)
    turn = rng.uniform(0, 2 * np.pi)
    for k in range(rings):
        share = 1 - k / rings
        petals = 5 if share > 0.45 else 4 if share > 0.3 else 3
        turn += GOLDEN_ANGLE
        whorl(
            layer, rng, pose, light,
            count=petals, inner=0.04 * share, length=0.2 + 0.76 * share,
            width=(0.16 + 0.46 * share), elevation=1.05 * (1 - share) ** 1.2, height=0.1 * (1 - share),
            shape=outline(rng.uniform(0.62, 0.74), 0.42, 0.25),
            colours=colours * np.float32(share) + deep * np.float32(1 - share),
            finish=finish,
            jitter=0.07, turn=turn,
        )  # fmt: skip
    for k in range(7):  # the rolled-up heart
        share = 1 - k / 7
        middle = pose.centre + pose.project(0, 0, 0.2)
        size = pose.radius * 0.2 * share
        shift = size * 0.35 * np.array([np.cos(turn + k * 2.2), np.sin(turn + k * 2.2)])
        shade = (0.62 + 0.4 * (k % 2)) * (0.75 + 0.25 * share)
        flat = np.array([1, max(0.6, np.cos(pose.tilt))])
        bead(
            layer,
            middle + shift,
            (size * flat).clip(0.5),
            np.clip(colours[200] * shade, 0, 1),
            light,
        )


def sunflower(
    layer: Layer, rng: RandomState, pose: Pose, light: np.ndarray, colours: np.ndarray
) -> None:
    """Pointed petals in two rows around a wide disc of spiralling seeds."""
    disc = rng.uniform(0.42, 0.58)
    count = rng.randint(17, 26)
    shape = outline(rng.uniform(0.35, 0.5), rng.uniform(0.8, 1.05), 0.5)
    finish = Finish(curl=0.55, veins=0.16, vein_count=4, shadow=0.45, reach=0.09, occlusion=0.5)
    dark = np.array(
        pick(rng, {(0.20, 0.11, 0.05): 5, (0.36, 0.22, 0.08): 3, (0.38, 0.36, 0.10): 2})
    )
    heart = pick(rng, {(0.16, 0.10, 0.05): 3, (0.42, 0.44, 0.14): 3, (0.50, 0.34, 0.08): 1})
    rim = np.clip(dark * 2.2 + (0.14, 0.08, 0), 0, 1)
    rings = blend((0, heart), (0.4, dark), (0.72, dark * 1.25), (0.86, rim), (1, dark))

    def face():
        seeds(layer, rng, pose, light, disc, disc * 0.2, 0.026, rings)

    elevation = rng.uniform(-0.3, 0.35)
    length = 1 - disc * 0.85
    ring = dict(
        inner=disc * 0.85, width=length * rng.uniform(0.24, 0.32), shape=shape, finish=finish
    )
    back = colours * np.float32(0.86)
    whorl(
        layer, rng, pose, light, count=count, length=length, elevation=elevation - 0.15, colours=back, **ring
    )  # fmt: skip
    whorl(
        layer, rng, pose, light, count=count, length=length * 0.92, elevation=elevation,
        colours=colours, between=face, jitter=0.12, **ring,
    )  # fmt: skip


def tulip(
    layer: Layer, rng: RandomState, pose: Pose, light: np.ndarray, colours: np.ndarray
) -> None:
    """A cup of six petals, seen from the side; wide open and from above now and then."""
    if rng.rand() < 0.3:  # flamed: another colour at the rim
        edge = np.linspace(0, 1, len(colours), dtype=np.float32)[:, None] ** 2
        colours = colours * (1 - edge) + tinted(rng, pick(rng, PALETTES["tulips"])) * edge
    if pose.tilt < 0.45:
        open_tulip(layer, rng, pose, light, colours)
        return
    finish = Finish(
        curl=0.75, arch=0.3, veins=0.10, vein_count=7, shadow=0.5, reach=0.09, occlusion=0.35
    )
    shape = outline(rng.uniform(0.4, 0.52), rng.uniform(0.6, 0.9), rng.uniform(0.2, 0.35))
    gape = rng.uniform(0.1, 0.34)  # how far the cup is open
    slim = rng.uniform(0.36, 0.46)
    up, right = pose.project(0, -1, 0) / np.cos(pose.tilt), pose.project(1, 0, 0)
    up = right[[1, 0]] * (1, -1)
    base = pose.centre - up * 0.8
    leaning = rng.uniform(-0.15, 0.15)
    places = (  # lean, length, width, bend inwards, brightness
        (-0.45, 1.50, 0.85, -0.1, 0.66),
        (0.5, 1.52, 0.85, 0.1, 0.66),
        (0.05, 1.58, 0.9, 0.0, 0.74),
        (-1.0, 1.50, 0.95, 0.75, 0.90),
        (1.0, 1.50, 0.95, -0.75, 0.90),
        (0.0, 1.40, 1.2, 0.0, 1.0),
    )
    for lean, length, width, bend, bright in places:
        angle = lean * gape + leaning * 0.3 + rng.normal(0, 0.03)
        direction = up * np.cos(angle) + right * np.sin(angle)
        sideways = right * np.cos(angle) - up * np.sin(angle)
        petal(
            layer,
            base + right * lean * 0.16,
            direction * length * (1 + rng.normal(0, 0.04)),
            sideways * slim * width,
            shape,
            np.clip(colours * np.float32(bright), 0, 1),
            light,
            finish,
            -bend if gape < 0.28 else -bend * 0.3,
        )


def open_tulip(
    layer: Layer, rng: RandomState, pose: Pose, light: np.ndarray, colours: np.ndarray
) -> None:
    """Two rings of three broad petals, a dark or yellow star and six anthers."""
    star = np.array(pick(rng, {(0.12, 0.07, 0.10): 2, (0.85, 0.72, 0.10): 2}), np.float32)
    fade = np.clip(1 - np.linspace(0, 4, len(colours), dtype=np.float32), 0, 1)[:, None]
    colours = colours * (1 - fade) + star * fade
    finish = Finish(
        curl=-0.5, arch=-0.3, veins=0.1, vein_count=7, shadow=0.5, reach=0.1, occlusion=0.3
    )
    turn = rng.uniform(0, 2 * np.pi)

    def anthers():
        for k in range(6):
            angle = turn + k * np.pi / 3
            tip = pose.centre + pose.project(0.2 * np.cos(angle), 0.2 * np.sin(angle), 0.2)
            bead(layer, tip, np.array([0.05, 0.07]) * pose.radius, (0.2, 0.12, 0.1), light)
        bead(layer, pose.centre, np.array([0.08, 0.09]) * pose.radius, (0.6, 0.66, 0.3), light)

    for k, between in enumerate((None, anthers)):
        whorl(
            layer, rng, pose, light, count=3, inner=0.02, length=0.98 - 0.06 * k, width=0.46,
            elevation=0.35 + 0.2 * k, shape=outline(0.55, 0.6, 0.4), colours=colours, finish=finish,
            jitter=0.05, turn=turn + k * np.pi / 3, between=between,
        )  # fmt: skip


HEADS = {
    "daisy": daisy,
    "dandelion": dandelion,
    "roses": rose,
    "sunflowers": sunflower,
    "tulips": tulip,
}
