"""Images that one list names more than once: under one class, which counts them twice, or under two."""

import hashlib
import zlib
from array import array
from collections.abc import Iterator

import numpy as np

from lab_utils.convert.plan import SplitPlan, image_of
from lab_utils.convert.rows import decode, read_lines

# Images; of a longer list one in two, in three, ..., always those of the same names.
_COMPARED = 2**18


def notes(plan: SplitPlan) -> Iterator[str]:
    """Yields a line on images that are listed twice, and one on images that have two classes."""
    part = -(-plan.rows // _COMPARED)
    images, rows = array("Q"), array("Q")
    for _, image, label in _rows(plan):
        if part == 1 or zlib.crc32(image) % part == 0:
            images.append(_digest(image))
            rows.append(_digest(image + b"," + _bare(label)))
    order = np.lexsort((rows, images))
    images, rows = np.asarray(images)[order], np.asarray(rows)[order]
    again, alike = images[1:] == images[:-1], rows[1:] == rows[:-1]
    for found, what in (
        (images[1:][again & ~alike], "have two classes, one of them wrong"),
        (images[1:][again & alike], "are listed more than once, and count as often"),
    ):
        if count := len(np.unique(found)):
            (one, label), (other, second), *_ = _places(plan, int(found[0]), "two" in what)
            number = f"{count} of" if part == 1 else f"about {count * part} of"
            classes = f" ({decode(label)!r} and {decode(second)!r})" * ("two" in what)
            yield (
                f"{number} the images of {plan.csv_path} {what}: see lines {one} and {other}{classes}"
            )


def _rows(plan: SplitPlan) -> Iterator[tuple[int, bytes, bytes]]:
    """The line number, image and class, as typed, of each row that has two columns."""
    folder = plan.folder
    for number, line in read_lines(plan.csv_path):
        path, comma, label = line.rpartition(b",")
        if comma:
            yield number, image_of(path, folder), label


def _bare(label: bytes) -> bytes:
    return label.strip(b' "')


def _digest(text: bytes) -> int:
    """64 bits: two of 262,144 names have the same with a chance of one in 500 million."""
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest())


def _places(plan: SplitPlan, image: int, differing: bool) -> list[tuple[int, bytes]]:
    """Line and class of an image's first row, and of the next one with the same class or another."""
    found: list[tuple[int, bytes]] = []
    for number, path, label in _rows(plan):
        if _digest(path) != image:
            continue
        if not found or (_bare(label) != found[0][1]) == differing:
            found.append((number, _bare(label)))
            if len(found) == 2:
                break
    return found
