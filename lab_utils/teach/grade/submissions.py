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
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from lab_utils.check import todos
from lab_utils.teach.grade import cells

_LARGEST = 256 * 2**20  # bytes of a file in an archive
_DEEPEST = 3  # archives in archives
_NOTEBOOK = re.compile(r"\.ipynb(\.txt|\.json)?$", re.I)  # some browsers add an ending
_ARCHIVES = (".zip", ".rar", ".7z", ".tar", ".tgz", ".gz", ".bz2", ".xz")
_SYSTEM = {"__MACOSX", "__pycache__", ".ipynb_checkpoints", "Thumbs.db", "desktop.ini"}
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


@dataclass(frozen=True)
class Submission:
    """A file of a learner's: the code cells of a lab's notebook; `problem` says why it cannot be graded.

    `parts` is its place below the class's folder, in which archives are folders.
    """

    parts: tuple[str, ...]
    lab: int | None = None
    code: tuple[cells.Code, ...] = ()
    problem: str = ""
    learner: str = ""
    remarks: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The file's name."""
        return self.parts[-1]


def find(place: Path) -> list[Submission]:
    """The submissions in a folder, an archive (.zip) or a notebook, by learner.

    Everything is read here, before anybody's code runs. A learner without a notebook is one with a problem.

    Raises:
        OSError: it is not there, or cannot be read.
        ValueError: it holds no notebook of a lab; the message says why.
    """
    if place.is_dir():
        paths = sorted(place.rglob("*"))
        files = [each for path in paths for each in _of_folder(place, path)]
    else:
        data = place.read_bytes()
        files = list(_read((place.name,), lambda: data))
    if not any(file.lab is not None for file in files):
        problems = "; ".join(sorted({f"{file.name} {file.problem}" for file in files})[:5])
        raise ValueError(f"{place} holds no notebook of a lab. {problems}")
    by_learner: dict[str, list[Submission]] = defaultdict(list)
    for file, learner in zip(files, _learners([file.parts for file in files]), strict=True):
        known = next((name for name in by_learner if _key(name) == _key(learner)), learner)
        remarks = () if learner else ("whose is it? its name gives no learner",)
        known = known or "/".join(file.parts)
        by_learner[known].append(replace(file, learner=known, remarks=remarks))
    handed_in = [file for files in by_learner.values() for file in _counting(files)]
    same: dict[tuple, set[str]] = defaultdict(set)
    for file in handed_in:
        if file.lab is not None and not cells.untouched(file.lab, file.code):
            same[file.code].add(file.learner)
    for n, file in enumerate(handed_in):
        if others := same[file.code] - {file.learner}:
            remark = f"the same code as {', '.join(sorted(others))}"
            handed_in[n] = replace(file, remarks=(*file.remarks, remark))
    return sorted(handed_in, key=lambda file: (file.learner.casefold(), file.parts))


def _of_folder(place: Path, path: Path) -> Iterator[Submission]:
    parts = path.relative_to(place).parts
    if path.is_file():
        yield from _read(parts, path.read_bytes)
    elif path.is_dir() and not any(path.iterdir()):
        yield Submission((*parts, ""), problem=_NONE)


def _read(parts: tuple[str, ...], data: Callable[[], bytes], deep: int = 0) -> Iterator[Submission]:
    """A file as a submission of nobody yet, or what it holds where it is an archive."""
    parts = tuple(unicodedata.normalize("NFC", part) for part in parts)
    name = parts[-1].lower()
    if not _SYSTEM.isdisjoint(parts):
        return
    if _NOTEBOOK.search(name):
        yield _notebook(parts, data())
    elif not name.endswith(_ARCHIVES):
        yield Submission(parts, problem=_NONE)
    elif not name.endswith(".zip") or deep == _DEEPEST:
        yield Submission(parts, problem="is an archive that is not opened here: use .zip")
    else:
        inside = (*parts[:-1], parts[-1][: -len(".zip")])
        try:
            with zipfile.ZipFile(io.BytesIO(data())) as archive:
                for info in archive.infolist():
                    if not info.is_dir() and info.file_size <= _LARGEST:
                        path = (*inside, *_name(info).split("/"))
                        yield from _read(path, partial(archive.read, info), deep + 1)
        except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError):
            yield Submission(parts, problem="is an archive that is damaged or has a password")


def _name(info: zipfile.ZipInfo) -> str:
    """The name of a member. macOS writes UTF-8 without saying so, and zipfile then reads cp437."""
    with contextlib.suppress(UnicodeError):
        if not info.flag_bits & 0x800:
            return info.filename.encode("cp437").decode("utf-8")
    return info.filename


def _notebook(parts: tuple[str, ...], data: bytes) -> Submission:
    try:
        source = [
            (cell["cell_type"], cell.get("id", ""), "".join(cell["source"]))
            for cell in json.loads(data.decode("utf-8-sig"))["cells"]
        ]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return Submission(parts, problem="cannot be read as a notebook: ask for the file again")
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


def _learners(places: list[tuple[str, ...]]) -> list[str]:
    """Whose each file is; "" where neither folder nor name says so.

    A platform's name counts; else the first folder below the one that holds all, unless it is a lab's;
    else what the file's name holds beside the lab's. Two of one name are told apart by their ids.
    """
    common = len(os.path.commonprefix([parts[:-1] for parts in places]))
    platform = [_by_platform(parts) for parts in places]
    ids: dict[tuple, set[str]] = defaultdict(set)
    for export, name, id in filter(None, platform):
        ids[export, name].add(id)
    learners = []
    for parts, match in zip(places, platform, strict=True):
        if match:
            export, name, id = match
            learners.append(f"{name} ({id})" if len(ids[export, name]) > 1 else name)
            continue
        below = [part for part in parts[common:-1] if of_name(part)]
        above = [part for part in parts[:common] if of_name(part)]
        learners.append((below[:1] or [of_name(parts[-1])])[0] or "".join(above[-1:]))
    return learners


def _by_platform(parts: tuple[str, ...]) -> tuple[tuple[str, ...], str, str] | None:
    """The folder of the export, the learner's name and id."""
    for depth, part in enumerate(parts):
        for pattern in _PLATFORMS:
            if match := pattern.fullmatch(part):
                return parts[:depth], match["who"].strip(), match["id"]
    return None


def of_name(name: str) -> str:
    """The learner that a name gives, beside the lab's own: "02_four_changes_ann (1).ipynb"."""
    for path in cells.LABS.glob("*.ipynb"):
        name = re.sub(path.stem.replace("_", "[ _-]*"), " ", name, flags=re.I)
    return " ".join(_FILLING.sub(" ", name).split()).strip(" _-.,")


def _key(name: str) -> str:
    """Equal for one learner's name in several spellings: "Ann_Lee", "ann lee"."""
    return " ".join(re.split(r"[\s_.-]+", name.casefold())).strip()


def _counting(files: list[Submission]) -> list[Submission]:
    """What counts of a learner's files: notebooks that somebody has worked on, else what there is."""
    notebooks = [file for file in files if file.lab is not None]
    worked = [file for file in notebooks if not cells.untouched(file.lab, file.code)]
    broken = [file for file in files if file.lab is None and file.problem != _NONE]
    if counting := (worked or notebooks[:1]) + broken:
        return counting
    only = ", ".join(sorted(file.name for file in files if file.name)[:3])
    return [replace(files[0], problem=f"holds no notebook (.ipynb){only and ', only '}{only}")]
