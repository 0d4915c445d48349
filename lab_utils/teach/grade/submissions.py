"""The notebooks of a class: which there are, and whose they are."""

import contextlib
import io
import json
import os
import re
import unicodedata
import zipfile
import zlib
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from lab_utils.check import todos
from lab_utils.teach.grade import cells

_NOTEBOOK = re.compile(r"\.ipynb(\.txt|\.json)?$", re.I)  # some browsers add an ending
# Moodle: "Ann Lee_1234_assignsubmission_file_", a folder's name or the start of a file's.
# Canvas: "leeann_LATE_1234_56789_02_four_changes-1.ipynb", "leeann_1234_text.html".
_PLATFORMS = (
    re.compile(r"(?P<who>.+?)_(?P<id>\d+)_assignsubmission_[a-z]+(?:_.*)?"),
    re.compile(r"(?P<who>[^_\d][^_]*)(?:_LATE)?_(?P<id>\d+)_(?:\d+_.+|text\.html)"),
)
# What the name of a file or folder holds beside the learner's, when the lab's own name is taken out.
_FILLING = re.compile(
    r"(?<![^\W_])((lab|week|hw|homework|assignment|exercise)?[ _-]*\d{1,2}|final|copy of)(?![^\W_])"
    r"|\.(ipynb|txt|json)\b|-copy\d*|\(\d+\)",
    re.I,
)
_TODO = re.compile(r"^[ ]*(?:# TODO |check\([\"'])(\d{1,2})[a-z]\b", re.M)
_NONE = "is not a notebook (.ipynb)"
_DAMAGED = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError)


@dataclass
class Submission:
    """A file of a learner's: the code cells of a lab's notebook; `problem` says why it cannot be graded.

    `parts` is its place below the class's folder, in which archives are folders.
    """

    parts: tuple[str, ...]
    lab: int | None = None
    code: tuple[cells.Code, ...] = ()
    problem: str = ""
    learner: str = ""
    remarks: list[str] = field(default_factory=list)

    @property
    def name(self) -> str:
        """The file's name."""
        return self.parts[-1]

    @property
    def work(self) -> frozenset[str]:
        """What somebody has written into it; empty for a notebook as it was handed out, and for none."""
        return frozenset() if self.lab is None else cells.work(self.lab, self.code)


def find(place: Path) -> list[Submission]:
    """The submissions in a folder, an archive (.zip) or a notebook, by learner.

    Everything is read here, before anybody's code runs. A learner without a notebook is one with a problem.

    Raises:
        OSError: it is not there, or cannot be read.
        ValueError: it holds no notebook of a lab; the message says why.
    """
    place.stat()
    files = list(_files(place, () if place.is_dir() else (place.name,)))
    if not any(file.lab is not None for file in files):
        problems = "; ".join(sorted({f"{file.name} {file.problem}" for file in files})[:5])
        raise ValueError(f"{place} holds no notebook of a lab. {problems}")
    by_learner: dict[str, list[Submission]] = defaultdict(list)
    common = len(os.path.commonprefix([file.parts[:-1] for file in files]))
    for file in files:
        file.learner = _learner(file.parts, common)
        if not file.learner:
            file.learner = "/".join(file.parts)
            file.remarks.append("whose is it? its name gives no learner")
        by_learner[file.learner].append(file)
    submissions = [file for files in by_learner.values() for file in _counting(files)]
    authors: dict[frozenset[str], set[str]] = defaultdict(set)
    for file in submissions:
        authors[file.work].add(file.learner)
    for file in submissions:
        if file.work and (others := authors[file.work] - {file.learner}):
            file.remarks.append(f"the same code as {', '.join(sorted(others))}")
    return sorted(submissions, key=lambda file: (file.learner.casefold(), file.parts))


def _files(path: Path | zipfile.Path, parts: tuple[str, ...]) -> Iterator[Submission]:
    """The file `path`, or all below it where it is a folder or an archive, as submissions of nobody yet."""
    if path.is_dir():
        entries = sorted(path.iterdir(), key=lambda entry: entry.name)
        for entry in entries:
            if not entry.name.startswith((".", "__")):  # of macOS, Jupyter and Python
                yield from _files(entry, (*parts, unicodedata.normalize("NFC", entry.name)))
        if not entries:
            yield Submission((*parts, ""), problem=_NONE)
    elif _NOTEBOOK.search(path.name):
        yield _notebook(parts, path.read_bytes())
    elif path.name.lower().endswith(".zip"):
        try:
            yield from _files(_archive(path.read_bytes()), (*parts[:-1], parts[-1][: -len(".zip")]))
        except _DAMAGED:
            yield Submission(parts, problem="is an archive that is damaged or has a password")
    else:
        yield Submission(parts, problem=_NONE)


def _archive(data: bytes) -> zipfile.Path:
    """An archive as a folder. macOS writes names in UTF-8 without saying so."""
    try:
        archive = zipfile.ZipFile(io.BytesIO(data), metadata_encoding="utf-8")
    except UnicodeDecodeError:
        archive = zipfile.ZipFile(io.BytesIO(data))
    return zipfile.Path(archive)


def _notebook(parts: tuple[str, ...], data: bytes) -> Submission:
    try:
        source = [
            (cell["cell_type"], cell.get("id", ""), "".join(cell["source"]))
            for cell in json.loads(data.decode("utf-8-sig"))["cells"]
        ]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return Submission(
            parts, problem="cannot be read as a notebook: the .ipynb file is needed again"
        )
    lab = lab_of("\n".join(text for *_, text in source))
    if lab is None:
        return Submission(parts, problem="is not one of our labs: it names no TODO of one")
    return Submission(parts, lab, tuple((id, text) for kind, id, text in source if kind == "code"))


def lab_of(text: str) -> int | None:
    """The lab that a notebook's text is of, whatever its file is called: most of its TODOs say so."""
    numbers = [int(number) for number in _TODO.findall(text)]
    lab = max(set(numbers), key=numbers.count, default=None)
    with contextlib.suppress(ImportError):
        return lab if lab is not None and todos.of_lab(lab) else None
    return None


def _learner(parts: tuple[str, ...], common: int) -> str:
    """Whose a file is; "" where neither folder nor name says so.

    A platform's name counts, with the id that tells two of one name apart; else the first folder below the
    one that holds all, unless it is a lab's; else what the file's name holds beside the lab's.
    """
    for part in parts:
        for pattern in _PLATFORMS:
            if match := pattern.fullmatch(part):
                return f"{match['who'].strip()} ({match['id']})"
    places = (*parts[common:-1], parts[-1], *reversed(parts[:common]))
    return next(filter(None, map(of_name, places)), "")


def of_name(name: str) -> str:
    """The learner that a name gives, beside the lab's own: "02_four_changes_ann (1).ipynb"."""
    for path in cells.ROOT.glob("labs/*.ipynb"):
        name = re.sub(path.stem.replace("_", "[ _-]*"), " ", name, flags=re.I)
    return " ".join(_FILLING.sub(" ", name).split()).strip(" _-.,")


def _counting(files: list[Submission]) -> list[Submission]:
    """What counts of a learner's files: notebooks that somebody has worked on, else what there is."""
    worked = [file for file in files if file.work]
    notebooks = [file for file in files if file.lab is not None]
    broken = [file for file in files if file.lab is None and file.problem != _NONE]
    if counting := (worked or notebooks[:1]) + broken:
        return counting
    only = ", ".join(sorted(file.name for file in files if file.name)[:3])
    files[0].problem = f"holds no notebook (.ipynb){only and ', only '}{only}"
    return files[:1]
