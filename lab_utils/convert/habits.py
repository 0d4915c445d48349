"""What a list, a path or a file of another habit looks like, said where it is refused."""

import itertools
import os
import re
import urllib.parse
from collections.abc import Iterator

from lab_utils.common import names

_SEPARATORS = {
    ";": "semicolons",
    "\t": "tabs",
    "|": "bars",
    "\N{FULLWIDTH COMMA}": "full-width commas",
    "\N{ARABIC COMMA}": "Arabic commas",
}
_CURLY = "\u2018\u2019\u201c\u201d"  # quotes that word processors write
_HEADERS = {"label", "labels", "class", "classes", "class_name", "category", "target", "species"}
# The first bytes of a file that is taken for a list of lines and is none.
_LISTS = (
    (b"PAR1", "Parquet"),
    (b"ARROW1", "Arrow"),
    (b"PK\x03\x04", "Excel, or a zip archive"),
    (b"\xd0\xcf\x11\xe0", "old Excel"),
    (b"\x1f\x8b", "gzip"),
    (b"BZh", "bzip2"),
    (b"\xfd7zXZ", "xz"),
    (b"\x28\xb5\x2f\xfd", "zstd"),
    (b"SQLite format", "SQLite"),
    (b"\x89HDF", "HDF5"),
    (b"%PDF", "PDF"),
    (b"{\\rtf", "RTF"),
    (b'{"', "JSON lines"),
    (b'["', "JSON"),
    (b"[{", "JSON"),
    (b"[[", "JSON"),
    (b"<!DOCTYPE", "HTML: was a page to sign in saved in its place?"),
    (b"<html", "HTML: was a page to sign in saved in its place?"),
    (b"version https://git-lfs", "Git LFS's pointer: run git lfs pull"),
)
_LABEL_ENDS = re.compile(r"[,;:\t \"']+")
_SHOWN = 3  # classes of a long list
# The first bytes of what is taken for an image and is none that can be read here.
_KINDS = (
    (128, b"DICM", "it is DICOM: save it as PNG, with the window that you read it in"),
    (
        0,
        b"\0\x05\x16\x07",
        "it is a file of notes that macOS keeps beside another one (AppleDouble)",
    ),
    (0, b"\xff\x0a", "it is JPEG XL: save it as JPEG"),
    (4, b"JXL ", "it is JPEG XL: save it as JPEG"),
    (0, b"8BPS", "it is a Photoshop file: save it as PNG"),
    (0, b"\x93NUMPY", "it is a NumPy array: save it as PNG"),
    (0, b"\x89HDF", "it is HDF5: save its pictures as PNG"),
    (0, b"SIMPLE  =", "it is FITS: save it as PNG"),
    (0, b"PK\x03\x04", "it is a zip archive"),
    (0, b"\x1f\x8b", "it is compressed with gzip"),
    (0, b"/9j/", "it is base64 text: decode it"),
    (0, b"data:", "it is a data URL: decode it"),
    (0, b"../.git/annex", "it is a git-annex pointer: run git annex get"),
    (0, b"/annex/", "it is a git-annex pointer: run git annex get"),
    (0, b"II*\0", "it is a TIFF: save it as PNG"),
    (0, b"MM\0*", "it is a TIFF: save it as PNG"),
    (4, b"ftyp", "it is HEIC, AVIF or a video: save it as JPEG"),
    (4, b"jP  ", "it is a JPEG 2000: save it as PNG"),
    (0, b"%PDF", "it is a PDF"),
    (0, b"\xc3\xbf\xc3\x98", "it is a JPEG that was saved as text: copy the original as it is"),
    (0, b"\xef\xbf\xbd", "it was saved as text: copy the original as it is"),
    (0, b"version https://git-lfs", "it is a Git LFS pointer: run git lfs pull"),
    (0, b"<", "it is text: SVG, or a web page that was saved in its place"),
)


def of_list(start: bytes) -> str:
    """Names the kind of file that begins so, where it is not text of one row or class a line; else ""."""
    if start[1:2] == start[3:4] == b"\0" or start[:1] == start[2:3] == b"\0":
        return "UTF-16"
    return next((kind for sign, kind in _LISTS if start.startswith(sign)), "")


def of_columns(columns: list[str]) -> str:
    """Says what seems to be wrong with a row of other than two columns; "" where nothing is known."""
    text = columns[0]
    if len(columns) == 1:
        for sign, name in _SEPARATORS.items():
            if sign in text:
                return f"; {name} seem to separate them, where plain commas are expected"
        return "; a space seems to separate them" if os.path.splitext(text)[1].find(" ") > 0 else ""
    if not any(columns[2:]):
        return "; the last ones are empty"
    if text.isdecimal() or not text:
        return (
            "; the first seems to count the rows: write the list without it (pandas: index=False)"
        )
    return ""


def is_header(line: bytes) -> bool:
    """Whether a row seems to name the columns."""
    last = line.rpartition(b",")[2].decode("latin-1").strip(' "\r')
    return last.casefold() in _HEADERS or line.startswith(b"sep=")


def of_label(label: str, path: str, known: list[str]) -> str:
    """Says how an unknown label differs from the known classes; `path` is the row's other column."""
    if path in known:
        return f"{path!r} is one: the path comes first, then the label"
    within = [each for each in known[:1000] if label in _LABEL_ENDS.split(each)]
    if within:
        return f"the labels file has {within[0]!r}: it should have one class on each line"
    if told := _of_number(label, known):
        return told
    if (bare := label.strip("'\"" + _CURLY)) in known:
        return f"the labels file has {bare!r}: take the quotes away"
    if (seen := names.visible(label)) != label and seen in known:
        return f"the labels file has {seen!r}: signs that cannot be seen stand in {label!r}"
    alike = [each for each in known if each.casefold() == label.casefold()]
    if alike:
        return f"the labels file has {alike[0]!r}: upper and lower case differ"
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


def _of_number(label: str, known: list[str]) -> str:
    """Says what a program made of a class that is called like a number; "" where that is not known."""
    if label.endswith(".0") and label[:-2] in known:
        return (
            f"the labels file has {label[:-2]!r}: pandas writes whole numbers like this in a column "
            "where one is missing"
        )
    if not label.isdecimal():
        return ""
    if longer := [each for each in known if each.isdecimal() and int(each) == int(label)]:
        return f"the labels file has {longer[0]!r}: Excel removes zeros at the start"
    if not any(each.isdecimal() for each in known):
        return "the labels file has names: write the class's name in each row, not its number"
    return ""


def of_path(path: str) -> str:
    """Says why a path of another system or shell leads nowhere; "" where it does not look like one."""
    if "\\" in path:
        return "; folders are separated by / here, not by backslashes"
    if "/~" in path or "/$" in path:
        return "; only a shell replaces ~ and $: write the whole path"
    if re.search(r"/[A-Za-z]:/", path):
        return "; it is a path of Windows, and this is another system (WSL has drive C: at /mnt/c)"
    if re.search(r"(^|/)((Posix|Windows)?Path\(|b')", path):
        return "; it is Python's notation of a path: write str(path)"
    if names.visible(path) != path:
        return f"; signs that cannot be seen stand in it: {os.path.basename(path)!r}"
    if any(sign in path for sign in _CURLY):
        return "; curly quotes stand in it, as word processors write them: take them away"
    if other := next(filter(os.path.exists, _in_other_case(path)), None):
        rest, name = os.path.split(other)
        if rest != os.path.dirname(path):
            name = os.path.join(os.path.basename(rest), name)
        return f"; there is {name}: upper and lower case differ"
    extension = os.path.splitext(path)[1]
    for other in (".jpg", ".jpeg", ".png", ".JPG", ".JPEG"):
        if not extension and os.path.exists(path + other):
            return f"; there is {os.path.basename(path + other)}: the list needs the whole name"
    if "%" in path and os.path.exists(urllib.parse.unquote(path)):
        return "; there is a file of that name with %20 and the like decoded"
    return ""


def _in_other_case(path: str) -> Iterator[str]:
    """The path as a system that does not tell upper from lower case may have had it."""
    rest, name = os.path.split(path)
    above, folder = os.path.split(rest)
    stem, extension = os.path.splitext(name)
    changes = (str, str.lower, str.upper, str.capitalize)
    forms = [
        dict.fromkeys(change(part) for change in changes) for part in (folder, stem, extension)
    ]
    for of_folder, of_stem, of_extension in itertools.product(*forms):
        found = os.path.join(above, of_folder, of_stem + of_extension)
        if found != path:
            yield found


def of_image(data: bytes) -> str:
    """Says what kind of file it seems to be, by its first bytes."""
    for start, sign, kind in _KINDS:
        if data.startswith(sign, start):
            return kind
    if data.startswith((b"GIF8", b"\x89PNG", b"BM", b"RIFF")):
        return f"it begins as one ({data[:8]!r}), and is damaged"
    if (before := data.find(b"\xff\xd8\xff", 0, 64)) > 0:
        return f"a JPEG begins at its byte {before}: take away what stands before it"
    if data[:32].strip().startswith(b"<"):
        return "it is text: a web page that was saved in its place?"
    start = data[:40].decode("latin-1")
    if start.isascii() and start.replace("\r", "").replace("\n", " ").isprintable():
        return f"it is text: {start!r}"
    return f"it begins with {data[:8]!r}"
