"""The notebooks of a class in one folder, and whose they are."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from lab_utils.check import todos
from lab_utils.grade.cells import LABS

_SYSTEM = {"__MACOSX", "node_modules"}
_NOTEBOOK = re.compile(r"\.(ipynb(\.txt|\.json)?|zip)$", re.I)  # browsers add .txt and .json
_LARGEST = 64 * 2**20  # bytes of a notebook
_HEADING = re.compile(r"^# (\d\d) · ", re.M)
_TODO = re.compile(r"^[ ]*(?:# TODO |check\([\"'])(\d{1,2}[a-z])\b", re.M)
# Canvas: "learnerann_LATE_1234_56789_02_four_changes-1.ipynb".
# Moodle: "Ann Learner_1234567_assignsubmission_file_", as a folder's name or at the start of a file's.
_CANVAS = re.compile(r"(?P<who>[^_]+)(?:_LATE)?_(?P<id>\d+)_\d+_(?P<file>.+)")
_MOODLE = re.compile(r"(?P<who>.+?)_(?P<id>\d+)_assignsubmission_\w*?_(?P<file>.*)")


@dataclass(frozen=True)
class Submission:
    """One learner's notebook of one lab: its code cells; `problem` says why it cannot be graded."""

    learner: str
    path: Path
    lab: int | None
    code: tuple[str, ...] = ()
    problem: str = ""


def find(folder: Path) -> list[Submission]:
    """The submissions of a folder, by learner: one folder a learner, or files as Moodle and Canvas name them.

    Everything is read here, before anybody's code runs.

    Raises:
        ValueError: it holds no notebook.
    """
    while (inside := _wrapper(folder)) is not None:
        folder = inside
    found = [
        _read(path, *_owner(path.relative_to(folder)))
        for path in _files(folder)
        if _NOTEBOOK.search(path.name)
    ]
    if not found:
        raise ValueError(f"{folder} holds no notebook (.ipynb)")
    for path in _visible(folder):
        if path.is_dir() and not any(path in each.path.parents for each, *_ in found):
            name, id = _owner(path.relative_to(folder) / "none")
            found.append(
                (Submission(name, path, None, problem="holds no notebook (.ipynb)"), id, name)
            )
    owners: dict[str, set[str]] = {}
    for _, id, name in found:
        owners.setdefault(name, set()).add(id)
    named = [
        replace(each, learner=f"{name} ({id})") if id and len(owners[name]) > 1 else each
        for each, id, name in found
    ]
    return sorted(named, key=lambda each: (each.learner.casefold(), each.lab or 0, str(each.path)))


def _wrapper(folder: Path) -> Path | None:
    """The one folder that an archive was unpacked into; None where there is more, or one learner."""
    match _visible(folder):
        case [inside] if inside.is_dir() and not _MOODLE.match(inside.name):
            files = [path for path in _visible(inside) if _NOTEBOOK.search(path.name)]
            owners = {_owner(path.relative_to(inside))[0] for path in files}
            if not files or len(owners) == len(files) > 1 and not owners & {p.stem for p in files}:
                return inside
    return None


def lab_of(text: str) -> int | None:
    """The lab that a notebook's text is of, whatever its file is called: most of its TODOs say so."""
    numbers = [int(id[:-1]) for id in _TODO.findall(text)] or [
        int(n) for n in _HEADING.findall(text)
    ]
    return max(set(numbers), key=numbers.count) if numbers else None


def _visible(folder: Path) -> list[Path]:
    return sorted(
        p for p in folder.iterdir() if not p.name.startswith(".") and p.name not in _SYSTEM
    )


def _files(folder: Path) -> Iterator[Path]:
    for path in _visible(folder):
        if path.is_dir() and not path.is_symlink():
            yield from _files(path)
        elif path.is_file():
            yield path


def _owner(path: Path) -> tuple[str, str]:
    """The learner that a path names, and the id that the learning platform gives them, or ""."""
    first = path.parts[0]
    for pattern in (_MOODLE, _CANVAS):
        if found := pattern.fullmatch(first if len(path.parts) > 1 else path.name):
            return found["who"], found["id"]
    if len(path.parts) > 1:
        return first, ""
    # "02_four_changes_ann.ipynb", "ann - 02_four_changes (1).ipynb": what is left beside the lab's own name
    rest = path.stem
    for stem in (each.stem for each in LABS.glob("*.ipynb")):
        rest = rest.replace(stem, "")
    rest = re.sub(r"(\(\d+\)|-?Copy\d*)$", "", rest.strip())
    return rest.strip(" _-.") or path.stem, ""


def _read(path: Path, name: str, id: str) -> tuple[Submission, str, str]:
    def problem(why: str) -> tuple[Submission, str, str]:
        return Submission(name, path, None, problem=why), id, name

    if path.suffix == ".zip":
        return problem("is an archive: unpack it")
    try:
        if path.stat().st_size > _LARGEST:
            return problem(f"is larger than {_LARGEST // 2**20} MiB")
        text = path.read_text(encoding="utf-8-sig")
        if not text.strip():
            return problem("is empty")
        cells = json.loads(text)["cells"]
        sources = [(cell["cell_type"], "".join(cell["source"])) for cell in cells]
    except OSError as error:
        return problem(f"cannot be opened: {error.strerror}")
    except (ValueError, RecursionError):
        return problem("is not a notebook: its JSON cannot be read")
    except (KeyError, TypeError):
        return problem("is not a notebook: it has no cells as notebooks of format 4 do")
    lab = lab_of("\n".join(source for _, source in sources))
    if lab is None:
        return problem("is not one of our labs: it names no TODO")
    try:
        todos.of_lab(lab)
    except ModuleNotFoundError:
        return problem(f"names TODOs of lab {lab}, which there is not")
    code = tuple(source for kind, source in sources if kind == "code")
    return Submission(name, path, lab, code), id, name
