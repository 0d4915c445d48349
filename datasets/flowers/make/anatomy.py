"""What the heads of flowers have in common: a place to look from, rings of petals, domes of seeds."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from brush import Colour, Finish, Layer, bead, outline, petal, ramp
from numpy.random import RandomState

GOLDEN_ANGLE = np.pi * (3 - np.sqrt(5))
T = TypeVar("T")


@dataclass(frozen=True)
class Pose:
    """Where a head stands and which way it looks.

    `tilt` 0 looks at the viewer, pi/2 straight up; `roll` turns the picture of it. Radians and pixels.
    """

    centre: np.ndarray
    radius: float
    tilt: float
    roll: float

    def project(self, x: float, y: float, z: float) -> np.ndarray:
        """A vector in units of the radius (z: where the head looks to), as pixels (x, y)."""
        down = y * np.cos(self.tilt) - z * np.sin(self.tilt)
        cos, sin = np.cos(self.roll), np.sin(self.roll)
        return self.radius * np.array([x * cos - down * sin, x * sin + down * cos])

    def nearness(self, y: float, z: float) -> float:
        """How near to the viewer a point (any x, y, z) is, in units of the radius."""
        return y * np.sin(self.tilt) + z * np.cos(self.tilt)


def tinted(rng: RandomState, colours: tuple[Colour, ...]) -> np.ndarray:
    """The ramp of these colours, a little different for each flower."""
    shift = rng.uniform(-0.05, 0.05, 3) + rng.uniform(-0.04, 0.04)
    return np.clip(ramp(*colours) + shift.astype(np.float32), 0, 1)


def pick(rng: RandomState, choices: dict[T, float]) -> T:
    """One of the keys, by weight."""
    weights = np.cumsum(list(choices.values()), dtype=float)
    return list(choices)[int(np.searchsorted(weights, rng.rand() * weights[-1]))]


def whorl(
    layer: Layer,
    rng: RandomState,
    pose: Pose,
    light: np.ndarray,
    *,
    count: int,
    inner: float,
    length: float,
    width: float,
    elevation: float,
    shape: np.ndarray,
    colours: np.ndarray,
    finish: Finish,
    jitter: float = 0.08,
    height: float = 0.0,
    turn: float | None = None,
    between: Callable[[], None] | None = None,
) -> None:
    """Paints a ring of petals, the farthest first; `between` paints what stands within the ring.

    Lengths are in units of the head's radius; `width` is half a petal's; `elevation`, in radians, is how far
    the petals rise out of the head's plane.
    """
    turn = rng.uniform(0, 2 * np.pi) if turn is None else turn
    angles = turn + (np.arange(count) + rng.uniform(-1, 1, count) * jitter * 2) * 2 * np.pi / count
    rises = elevation + rng.normal(0, jitter, count)
    lengths = length * (1 + rng.normal(0, jitter, count).clip(-2 * jitter, jitter))
    bends = rng.normal(0, jitter * 3, count)
    shades = 1 + rng.normal(0, 0.04, count)
    mids = [
        (np.sin(a) * (inner + 0.5 * s * np.cos(e)), height + 0.5 * s * np.sin(e))
        for a, e, s in zip(angles, rises, lengths, strict=True)
    ]
    order = np.argsort([pose.nearness(*mid) + rng.normal(0, 0.02) for mid in mids], kind="stable")
    waiting = between
    for i in order:
        if (
            waiting is not None
            and elevation > 0.1
            and pose.nearness(*mids[i]) > pose.nearness(0, height)
        ):
            waiting()
            waiting = None
        cos, sin = np.cos(angles[i]), np.sin(angles[i])
        flat, rise = lengths[i] * np.cos(rises[i]), lengths[i] * np.sin(rises[i])
        petal(
            layer,
            pose.centre + pose.project(inner * cos, inner * sin, height),
            pose.project(flat * cos, flat * sin, rise),
            pose.project(-sin * width, cos * width, 0),
            shape,
            np.clip(colours * np.float32(shades[i]), 0, 1),
            light,
            finish,
            bends[i],
        )
    if waiting is not None:
        waiting()


def seeds(
    layer: Layer,
    rng: RandomState,
    pose: Pose,
    light: np.ndarray,
    radius: float,
    dome: float,
    size: float,
    colour_at: Callable[[float], np.ndarray],
) -> None:
    """Paints a dome of seeds in spirals, as a sunflower's.

    Vogel's model ("A better way to construct the sunflower head", Mathematical Biosciences 44, 1979):
    seed k stands at k times the golden angle, at a distance that grows as the square root of k.
    """
    across, along = pose.project(radius, 0, 0), pose.project(0, 2 * radius, 0)
    bed = pose.centre + pose.project(0, -radius, dome * 0.2)
    earth = ramp(colour_at(0.5) * 0.4, colour_at(0.5) * 0.4)
    petal(layer, bed, along, across, outline(0.5), earth, light, Finish(occlusion=0, veins=0))
    count = int(np.clip((radius / size) ** 2 * 0.8, 12, 420))
    turn = rng.uniform(0, 2 * np.pi)
    spread = radius * pose.radius / np.sqrt(count) * 0.95
    flat = max(0.45, np.cos(pose.tilt))
    for k in range(count - 1, -1, -1):
        r = np.sqrt((k + 0.5) / count)
        angle = turn + k * GOLDEN_ANGLE
        x, y, z = r * radius * np.cos(angle), r * radius * np.sin(angle), dome * (1 - r * r)
        colour = colour_at(r) * (1 + rng.normal(0, 0.12))
        at = pose.centre + pose.project(x, y, z)
        bead(layer, at, np.array([spread, spread * flat]).clip(0.6), np.clip(colour, 0, 1), light)


def blend(*stops: tuple[float, Colour]) -> Callable[[float], np.ndarray]:
    """Colours by distance from the centre, 0 to 1."""
    at = [stop for stop, _ in stops]
    table = np.array([colour for _, colour in stops])
    return lambda r: np.array([np.interp(r, at, table[:, i]) for i in range(3)])
