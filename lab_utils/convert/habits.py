"""What a list, a path or a file of another habit looks like, said where it is refused."""

import os

_SEPARATORS = {";": "semicolons", "\t": "tabs", "|": "bars"}
_HEADERS = {"label", "labels", "class", "classes", "class_name", "category", "target", "species"}
_SHOWN = 3  # classes of a long list
# The first bytes of what is taken for an image and is none that can be read here.
_KINDS = (
    (0, b"II*\0", "it is a TIFF: save it as PNG"),
    (0, b"MM\0*", "it is a TIFF: save it as PNG"),
    (4, b"ftyp", "it is HEIC, AVIF or a video: save it as JPEG"),
    (4, b"jP  ", "it is a JPEG 2000: save it as PNG"),
    (0, b"%PDF", "it is a PDF"),
    (0, b"version https://git-lfs", "it is a Git LFS pointer: run git lfs pull"),
    (0, b"<", "it is text: SVG, or a web page that was saved in its place"),
)


def of_columns(text: str) -> str:
    """Says what seems to separate the columns of a row without commas; "" where nothing does."""
    for sign, name in _SEPARATORS.items():
        if sign in text:
            return f"; {name} seem to separate them, where commas are expected"
    return ""


def of_label(label: str, known: list[str]) -> str:
    """Says how an unknown label differs from the known classes."""
    alike = [each for each in known if each.casefold() == label.casefold()]
    if alike:
        return f"the labels file has {alike[0]!r}, and upper and lower case count"
    more = f", ... ({len(known):,} in all)" if len(known) > _SHOWN else ""
    header = (
        "; if this row is a header, remove it: the list has none"
        if label.casefold() in _HEADERS
        else ""
    )
    return (
        "it is not in the labels file, which has "
        f"{', '.join(map(repr, known[:_SHOWN]))}{more}{header}"
    )


def of_path(path: str) -> str:
    """Says why a path of another system or shell leads nowhere; "" where it does not look like one."""
    if "\\" in path:
        return "; folders are separated by / here, not by backslashes"
    if "/~" in path or "/$" in path:
        return "; ~ and $ mean something to a shell alone: write the folder out"
    stem, extension = os.path.splitext(path)
    for other in (extension.lower(), extension.upper()):
        if other != extension and os.path.exists(stem + other):
            return f"; there is {os.path.basename(stem + other)}: upper and lower case count"
    return ""


def of_image(data: bytes) -> str:
    """Says what kind of file it seems to be, by its first bytes."""
    for start, sign, kind in _KINDS:
        if data.startswith(sign, start):
            return kind
    return f"it begins with {data[:8]!r}"
