"""The line of a program from which a stand-in of the dry run is called."""

import sys
import traceback
from types import FrameType

from lab_utils.common import source
from lab_utils.common.source import Place


def caller(start: FrameType | None = None) -> Place:
    """The program's innermost line on the stack, from `start` on outwards if it is given."""
    frames = traceback.extract_stack(start)
    while frames and source.is_installed(frames[-1].filename):
        frames.pop()
    return source.place_of_stack(frames)


def maker(made: object) -> Place:
    """The program's line that makes an object, asked within its __init__: none of its classes' own."""
    frame = sys._getframe(1)
    while frame.f_back and _is_init_of(frame, made):
        frame = frame.f_back
    return caller(frame)


def _is_init_of(frame: FrameType, made: object) -> bool:
    """Whether a frame is within the making of an object: it, or one around it, is an __init__ of that."""
    while frame is not None:
        first = frame.f_code.co_varnames[:1]
        if frame.f_code.co_name == "__init__" and first and frame.f_locals.get(first[0]) is made:
            return True
        frame = frame.f_back
    return False
