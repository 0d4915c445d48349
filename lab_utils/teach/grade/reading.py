"""What a file of a class is: a notebook of a lab, its export as Python, a link to it, or something else."""

import contextlib
import json
import re
from collections import Counter
from dataclasses import dataclass, replace
from typing import Any

from lab_utils.check import todos
from lab_utils.teach.grade.entries import UNREAD

_HEADING = re.compile(r"^# (\d\d) · ", re.M)
_TODO = re.compile(r"^[ ]*(?:# TODO |check\([\"'])(\d{1,2}[a-z])\b", re.M)
_NOTEBOOK = re.compile(r"\.ipynb\b", re.I)  # browsers add .txt, .json, .html
_LINK = re.compile(
    r"https?://(?:colab\.research\.google\.com|colab\.google|drive\.google\.com|github\.com|gist\.github\.com"
    r"|www\.kaggle\.com|nbviewer\.org)/[^\s\"'<>)\\]+"
)
_LARGEST_LINK = 2**20  # bytes of a page that may hold one
_LINKING = ("txt", "html", "htm", "url", "webloc", "desktop", "md", "rtf")
_MARKER = re.compile(r"^# (?:In\[[\d ]*\]:|%%.*|<codecell>)[ ]*$", re.M)


@dataclass(frozen=True)
class Read:
    """A file: what it is, the lab it belongs to, its code cells; `problem` says why it cannot be graded.

    Kinds are notebook, script, link, module (Python without TODOs) and other.
    """

    kind: str
    lab: int | None = None
    code: tuple[str, ...] = ()
    problem: str = ""
    author: str = ""  # whom Colab or the notebook's metadata names
    text: str = ""
    in_text: tuple[str, ...] = ()  # TODOs that stand in cells which are no code


def read(name: str, data: bytes) -> Read:
    """Reads a file by its name and bytes; never raises."""
    suffix = name.rpartition(".")[2].lower() if "." in name else ""
    if _NOTEBOOK.search(name) and suffix not in UNREAD:
        return _notebook(data)
    if suffix == "py":
        return _script(data)
    start = data[:200].lstrip(b"\xef\xbb\xbf \r\n\t")
    if suffix in ("json", "txt", "") and start.startswith(b"{") and b'"cells"' in data:
        return _notebook(data)
    if suffix in _LINKING and len(data) <= _LARGEST_LINK:
        text = data.decode("utf-8", "replace")
        if found := _LINK.search(text):
            return Read("link", problem=_linked(found[0]), text=text)
        if suffix in ("html", "htm") and "jp-Notebook" in text or "jp-Cell" in text:
            return Read("link", problem="is a page made from the notebook: ask for the .ipynb")
        return Read("other", text=text)
    return Read("other")


def lab_of(text: str) -> int | None:
    """The lab that a notebook's text is of, whatever its file is called: most of its TODOs say so."""
    numbers = [int(id[:-1]) for id in _TODO.findall(text)]
    numbers = numbers or [int(n) for n in _HEADING.findall(text)]
    return max(set(numbers), key=numbers.count) if numbers else None


def unknown_todos(lab: int, text: str) -> list[str]:
    """The TODOs of a lab that a text names and this release does not have."""
    known = {todo.id for todo in todos.of_lab(lab)}
    return sorted({id for id in _TODO.findall(text) if int(id[:-1]) == lab} - known)


def _linked(address: str) -> str:
    how = "File > Download > Download .ipynb" if "colab" in address else "the file itself"
    return f"is a link ({address}) and not the notebook: ask for {how}"


def _text(data: bytes) -> str:
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return data.decode("utf-16")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return data.decode("cp1252", "replace")


def _notebook(data: bytes) -> Read:
    def problem(why: str) -> Read:
        return Read("notebook", problem=why)

    try:
        text = _text(data)
        if not text.strip("\0 \r\n\t"):
            return problem("is empty")
        made = json.loads(text)
    except (ValueError, RecursionError):
        return problem(_unreadable(text if "text" in locals() else ""))
    try:
        cells = made["cells"] if "cells" in made else _old_cells(made)
        sources = [(cell.get("cell_type"), _source(cell)) for cell in cells]
    except (KeyError, TypeError, AttributeError):
        return problem("is not a notebook: it has no cells as notebooks have")
    code = tuple(source for kind, source in sources if kind == "code")
    found = _of_a_lab("notebook", "\n".join(source for _, source in sources), code)
    if found.problem:
        return found
    texts = "\n".join(source for kind, source in sources if kind != "code")
    in_text = {id for id in _TODO.findall(texts) if int(id[:-1]) == found.lab}
    return replace(found, author=_author(made, cells), in_text=tuple(sorted(in_text)))


def _old_cells(made: dict[str, Any]) -> list[dict[str, Any]]:
    """The cells of format 2 or 3."""
    return [cell for sheet in made["worksheets"] for cell in sheet["cells"]]


def _source(cell: dict[str, Any]) -> str:
    return "".join(cell.get("source") or cell.get("input") or "")


def _unreadable(text: str) -> str:
    start = text[:500].lstrip().lower()
    if start.startswith(("<!doctype html", "<html")):
        found = _LINK.search(text)
        return (
            _linked(found[0])
            if found
            else "is a web page under a notebook's name: ask for the .ipynb"
        )
    if start.startswith("version https://git-lfs"):
        return "is a pointer of Git LFS: ask for the file itself"
    if re.search(r"^(<<<<<<<|>>>>>>>) ", text, re.M):
        return "is not a notebook: it holds the marks of a merge conflict"
    if start.startswith("{") and '"cells"' in start + text and not text.rstrip().endswith("}"):
        return "is cut off: its JSON cannot be read to the end"
    return "is not a notebook: its JSON cannot be read"


def _script(data: bytes) -> Read:
    """A notebook exported as Python: by nbconvert or an editor with marks, by Colab without."""
    text = _text(data).replace("\r\n", "\n")
    if lab_of(text) is None:
        return Read("module", text=text)
    pieces = [piece.strip("\n") for piece in _MARKER.split(text)]
    return _of_a_lab("script", text, tuple(filter(str.strip, pieces)))


def _of_a_lab(kind: str, text: str, code: tuple[str, ...]) -> Read:
    lab = lab_of(text)
    if lab is None:
        return Read(kind, problem="is not one of our labs: it names no TODO")
    try:
        todos.of_lab(lab)
    except ModuleNotFoundError:
        return Read(kind, problem=f"names TODOs of lab {lab}, which there is not")
    return Read(kind, lab, code)


def _author(made: dict[str, Any], cells: list[dict[str, Any]]) -> str:
    """Whom the notebook names: Colab notes who ran a cell."""
    names = Counter()
    for cell in cells:
        try:
            names[str(cell["metadata"]["executionInfo"]["user"]["displayName"]).strip()] += 1
        except (KeyError, TypeError):
            continue
    with contextlib.suppress(KeyError, TypeError, IndexError):
        names[str(made["metadata"]["authors"][0]["name"]).strip()] += 1
    return next((name for name, _ in names.most_common() if name), "")
