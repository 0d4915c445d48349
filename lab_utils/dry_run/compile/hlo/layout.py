"""How the chip stores an array: shapes of HLO text with their layouts, tiles and padding.

`f32[128,74,74,20]{0,3,2,1:T(8,128)}` has 4 axes; axis 0 lies innermost and axis 3 next to
it; they are stored in tiles of 8 by 128, so that axis 0 is padded to a multiple of 128 and axis 3 to
a multiple of 8. A second tile such as (2,1) packs narrow types and pads nothing more.
(openxla.org/xla/tiled_layout.)
"""

import math
import re
from dataclasses import dataclass

_BYTES = {"pred": 1, "bf16": 2, "c64": 8, "c128": 16, "s4": 0.5, "u4": 0.5}
_SHAPE = re.compile(r"([a-z]\w*)\[([\d,]*)\](?:\{([\d,]*)((?::[^}]*)?)\})?")


@dataclass(frozen=True)
class Shape:
    """An array as the chip stores it; `order` lists its axes from the innermost."""

    dtype: str
    dims: tuple[int, ...]
    order: tuple[int, ...] = ()
    tile: tuple[int, ...] = ()
    memory_space: int = 0  # 0 is HBM

    @property
    def item_bytes(self) -> float:
        """Bytes of an element."""
        return _BYTES.get(self.dtype) or int(re.sub(r"\D.*", "", self.dtype[1:]) or 8) / 8

    @property
    def bytes(self) -> int:
        """Bytes of the data themselves."""
        return math.ceil(math.prod(self.dims) * self.item_bytes)

    @property
    def padded_dims(self) -> tuple[int, ...]:
        """The sizes of the axes, each filled up to whole tiles."""
        padded = list(self.dims)
        for axis, size in zip(self.order, reversed(self.tile), strict=False):
            padded[axis] = math.ceil(padded[axis] / size) * size
        return tuple(padded)

    @property
    def padded_bytes(self) -> int:
        """Bytes that the array takes in memory."""
        elements = math.prod(self.padded_dims)
        # A tile of more axes than the array has: the array is padded to one whole tile.
        missing = self.tile[: max(0, len(self.tile) - len(self.dims))]
        return math.ceil(elements * math.prod(missing) * self.item_bytes)

    @property
    def worst_axis(self) -> int | None:
        """The axis whose padding costs most; None where nothing is padded."""
        growth = [p / d if d else 1 for p, d in zip(self.padded_dims, self.dims, strict=True)]
        if not growth or max(growth) <= 1:
            return None
        return growth.index(max(growth))

    def __str__(self) -> str:
        return f"{self.dtype}[{','.join(map(str, self.dims))}]"


def shapes(text: str) -> list[Shape]:
    """All array shapes in a piece of HLO text: one, or those of a tuple."""
    arrays = []
    for dtype, dims, order, rest in _SHAPE.findall(text):
        tile = re.search(r"T\(([\d,]+)\)", rest)
        space = re.search(r"S\((\d+)\)", rest)
        arrays.append(
            Shape(dtype, numbers(dims), numbers(order), numbers(tile[1] if tile else ""),
                  int(space[1]) if space else 0)
        )  # fmt: skip
    return arrays


def numbers(text: str) -> tuple[int, ...]:
    """The numbers of a list such as "0,3,2"."""
    return tuple(int(number) for number in text.split(",") if number)
