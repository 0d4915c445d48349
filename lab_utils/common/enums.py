"""StrEnum, which Python 3.10 lacks: the image of a TPU VM with TensorFlow 2.15 has no newer one."""

from enum import Enum


class StrEnum(str, Enum):
    """An enumeration whose members are text, as `enum.StrEnum`."""

    __str__ = str.__str__
