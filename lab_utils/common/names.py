"""The names of classes: which are none, and which are easily taken for another."""

import re
import unicodedata
from collections import defaultdict
from collections.abc import Collection, Iterator

from lab_utils.common.figures import counted

# What systems and tools put beside the folders of a person.
OF_SYSTEMS = frozenset(
    ("__MACOSX", "@eaDir", "#recycle", "$RECYCLE.BIN", "System Volume Information", "lost+found")
)
# Folders whose names hold such words alone are parts of a data set; class folders stand deeper, if at all.
_PARTS = (
    {"train", "training", "test", "testing", "val", "valid", "validation", "eval", "dev"},
    {"images", "image", "masks", "mask", "labels", "annotations", "img", "segmentation"},
)
_BESIDE = {"set", "data", "dataset", "split", "part", "images", "image", "seg", "all"}
_NOTES = 5  # of a list with thousands of them
_JOINERS = "\u200c\u200d"  # of Persian, of Indic scripts and of emoji


def fits_a_row(text: str) -> bool:
    """Whether it can stand in a line of a UTF-8 file, and be read there."""
    return not any(unicodedata.category(sign) in ("Cc", "Cs") for sign in text)


def composed(name: str) -> str:
    """The same class, however a disk writes it: a letter and its accent as one sign (Unicode's form C)."""
    return unicodedata.normalize("NFC", name)


def are_parts(labels: Collection[str]) -> bool:
    """Whether these are names of splits, or of images and masks, rather than of classes."""
    words = [set(re.findall(r"[^\W\d_]+", label.casefold())) for label in labels]
    return any(all(own & names and own <= names | _BESIDE for own in words) for names in _PARTS)


def visible(text: str) -> str:
    """The text without signs that cannot be seen, such as a byte-order mark or a zero-width space."""
    return "".join(sign for sign in text if sign in _JOINERS or unicodedata.category(sign) != "Cf")


def notes(labels: Collection[str]) -> Iterator[str]:
    """Yields a line on each of the first names that a reader takes for another."""
    alike = defaultdict(list)
    for label in sorted(labels):
        alike[label.casefold()].append(label)
    found = [
        f"the classes {label!r} and {other!r} differ in upper and lower case alone"
        for label, *others in alike.values()
        for other in others
    ]
    found += [
        f"the class {label!r} holds signs that cannot be seen"
        for label in sorted(labels)
        if visible(label) != label
    ]
    yield from found[:_NOTES]
    if len(found) > _NOTES:
        yield f"so do {counted(len(found) - _NOTES, 'class')} more, or hold such signs"
