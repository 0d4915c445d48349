"""How errors and lists of names read in a sentence."""

import textwrap
from collections.abc import Iterable

from lab_utils.common.source import place, without_stacks


def first_line(error: BaseException, width: int = 160) -> str:
    """The first line of a message that says something, at most so many characters."""
    lines = [line.strip() for line in without_stacks(error).splitlines()]
    if lines[:1] == ["in user code:"]:  # AutoGraph's stack, with the reason at its end
        lines = [line.partition(": ")[2] for line in lines if line][-1:]
    reasons = (line for line in lines if line and line != "Graph execution error:")
    return textwrap.shorten(next(reasons, ""), width)


def in_words(error: BaseException) -> str:
    """Type and first line of an exception, and the learner's line where it passed through one."""
    return f"{type(error).__name__}: {first_line(error)}".removesuffix(": ") + at(error)


def at(error: BaseException) -> str:
    """ " (at FILE:LINE ...)": the learner's line that an exception passed through; "" where it did not."""
    return f" (at {where})" if (where := place(error)) else ""


def some(names: Iterable[str], most: int = 4) -> str:
    """The first few names, and how many more there are: a fact for a finding."""
    items = list(names)
    more = f" and {len(items) - most} more" if len(items) > most else ""
    return ", ".join(items[:most]) + more
