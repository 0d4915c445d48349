"""StrEnum on Python 3.10 too: the image of a TPU VM with TensorFlow 2.15 has no newer one."""

import sys

if sys.version_info >= (3, 11):
    from enum import StrEnum
else:
    from enum import Enum

    class StrEnum(str, Enum):
        """An enumeration whose members are text, as `enum.StrEnum`."""

        def __str__(self) -> str:
            return str(self.value)


__all__ = ["StrEnum"]
