"""The notebooks of a class: which there are, whose they are, and what in them is the learner's own."""

import ast
import contextlib
import io
import json
import os
import re
import stat
import unicodedata
import zipfile
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from lab_utils.check import progress, sources, todos
from lab_utils.teach import pages
from lab_utils.teach.marks import CHECK

ROOT = Path(__file__).parents[3]
_NOTEBOOK = re.compile(r"\.ipynb(\.txt|\.json)?$", re.I)  # some browsers add an ending
_PROGRESS = re.compile(r"(^|_)progress[^_/]*\.json$", re.I)  # what `lab_utils progress` wrote
# Moodle: "Ann Lee_1234_assignsubmission_file_", a folder's name or the start of a file's.
# Canvas: "leeann_LATE_1234_56789_02_four_changes-1.ipynb", "leeann_1234_text.html".
_PLATFORMS = (
    re.compile(r"(?P<who>.+?)_(?P<id>\d+)_assignsubmission_[a-z]+(?:_.*)?"),
    re.compile(r"(?P<who>[^_\d][^_]*)(?:_LATE)?_(?P<id>\d+)_(?:\d+_.+|text\.html)"),
)
# What the name of a file or folder holds beside the learner's and the lab's.
_A_LAB = r"(?<![^\W_])(lab|week|hw|homework|assignment|exercise)[ _-]*\d{1,2}(?![^\W_])"
_FILLING = r"(?<![^\W_])(final|copy of)(?![^\W_])|\.(ipynb|txt|json)\b|-copy\d*|\(\d+\)"
_TODO = re.compile(r"^[ ]*(?:# TODO |check\([\"'])(\d{1,2})[a-z]\b", re.M)
# What macOS, Jupyter, Python and git leave in a folder; nobody hands it in.
_LEFT_BEHIND = {"__MACOSX", "__pycache__", ".ipynb_checkpoints", ".git", ".DS_Store"}
_DEEPEST = 8  # archives within archives
_NONE = "is not a notebook (.ipynb)"
_FOREIGN = "is not one of our labs, since it names no TODO of a lab"


@dataclass(frozen=True)
class Cell:
    """A code cell: what messages call it, its source, and whether the learner has written in it."""

    label: str
    source: str
    own: bool = True

    @property
    def words(self) -> str:
        """Its source without regard to spaces and line ends."""
        return _words(self.source)


@dataclass(frozen=True)
class HandedOut:
    """A lab as learners get it: cells that all work needs, the words of all, the arguments of checks."""

    given: tuple[Cell, ...]
    words: frozenset[str]
    checks: dict[str, tuple[str, ...]]


@dataclass
class Submission:
    """A file of a learner's: the cells of a lab's notebook; `problem` says why it cannot be graded.

    `parts` is its place below the class's folder, in which archives are folders. `minutes` is what a file of
    `lab_utils progress` says: the minutes of each lab that is solved whole.
    """

    parts: tuple[str, ...]
    lab: int | None = None
    cells: tuple[Cell, ...] = ()
    problem: str = ""
    learner: str = ""
    remarks: list[str] = field(default_factory=list)
    minutes: dict[int, float] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The file's name."""
        return self.parts[-1]

    def say(self, text: str) -> str:
        """`text` behind the file's name; a folder in which there is nothing has none."""
        return f"{self.name}: {text}" if self.name else text

    @property
    def work(self) -> frozenset[str]:
        """What somebody has written into it; empty for a notebook as it was handed out, and for none."""
        return frozenset(cell.words for cell in self.cells if cell.own)


def find(place: Path) -> list[Submission]:
    """The submissions in a folder, an archive (.zip) or a notebook, by learner.

    Everything is read here, before anybody's code runs. A learner without a notebook is one with a problem.

    Raises:
        OSError: it is not there, or cannot be read.
        ValueError: it holds no notebook of a lab; the message says why.
    """
    place.stat()
    if place.is_dir():
        os.listdir(place)
        files = list(_folder(place, ()))
    else:
        files = list(_file((_text(place.name),), place.read_bytes))
    if not any(file.lab is not None for file in files):
        problems = {f"{file.name or 'a folder'} {file.problem}" for file in files}
        problems = "; ".join(sorted(problems)[:5])
        raise ValueError(f"{_text(str(place))} holds no notebook of a lab. {problems}")
    by_learner: dict[str, list[Submission]] = defaultdict(list)
    common = len(os.path.commonprefix([file.parts[:-1] for file in files]))
    labs = {file.lab for file in files} - {None}
    for file in files:
        file.learner = _learner(file.parts, common, {file.lab} if file.lab is not None else labs)
        if not file.learner:
            file.learner = "/".join(file.parts)
            file.remarks.append("the name of the file does not say whose notebook it is")
        by_learner[file.learner].append(file)
    submissions = [file for files in by_learner.values() for file in _counting(files)]
    authors: dict[frozenset[str], set[str]] = defaultdict(set)
    for file in submissions:
        authors[file.work].add(file.learner)
    for file in submissions:
        if file.work and (others := authors[file.work] - {file.learner}):
            file.remarks.append(f"the same code as {', '.join(sorted(others))}")
    return sorted(submissions, key=lambda file: (file.learner.casefold(), file.parts))


def _folder(folder: Path, parts: tuple[str, ...]) -> Iterator[Submission]:
    """All that a folder holds, as submissions of nobody yet; one where it holds nothing."""
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError as error:
        yield Submission((*parts, ""), problem=f"cannot be read: {error.strerror}")
        return
    entries = [entry for entry in entries if not _is_left_behind(entry.name)]
    for entry in entries:
        inner = (*parts, _text(entry.name))
        if entry.is_symlink():
            yield Submission(inner, problem="is a link: the file itself is needed")
        elif entry.is_dir():
            yield from _folder(Path(entry.path), inner)
        elif entry.is_file():
            yield from _file(inner, Path(entry.path).read_bytes)
        else:
            yield Submission(inner, problem="is neither a file nor a folder")
    if not entries:
        yield Submission((*parts, ""), problem=_NONE)


def _file(
    parts: tuple[str, ...], read: Callable[[], bytes], depth: int = 0
) -> Iterator[Submission]:
    """One file, or all that an archive holds. Only notebooks, archives and progress are read."""
    name, is_archive = parts[-1], parts[-1].lower().endswith(".zip")
    if not (is_archive or _NOTEBOOK.search(name) or _PROGRESS.search(name)):
        yield Submission(parts, problem=_NONE)
        return
    if depth == _DEEPEST and is_archive:
        yield Submission(parts, problem="is nested in too many archives")
        return
    try:
        data = read()
        archive = _opened(data) if is_archive else None
    except MemoryError:
        yield Submission(parts, problem="is too large to be read")
    except OSError as error:  # one of bzip2's has only a text
        yield Submission(parts, problem=f"cannot be read: {error.strerror or error}")
    except Exception:  # zipfile and what unpacks raise a dozen kinds
        yield Submission(parts, problem="is an archive that is damaged or has a password")
    else:
        if archive:
            yield from _archive((*parts[:-1], name[: -len(".zip")]), archive, depth)
        elif _NOTEBOOK.search(name):
            yield _notebook(parts, data)
        else:
            yield Submission(parts, problem=_NONE, minutes=_minutes(data))


def _opened(data: bytes) -> zipfile.ZipFile:
    """An archive. macOS writes names in UTF-8 without saying so."""
    try:
        return zipfile.ZipFile(io.BytesIO(data), metadata_encoding="utf-8")
    except UnicodeDecodeError:
        return zipfile.ZipFile(io.BytesIO(data))


def _archive(parts: tuple[str, ...], archive: zipfile.ZipFile, depth: int) -> Iterator[Submission]:
    """All that an archive holds, in one walk through its list: nothing is unpacked to the disk."""
    filled, folders = {parts}, [parts]
    for entry in archive.infolist():
        names = [part for part in re.split(r"[/\\]", entry.filename) if part not in ("", ".", "..")]
        if not names or any(map(_is_left_behind, names)):
            continue
        inner = (*parts, *map(_text, names))
        if entry.is_dir():
            folders.append(inner)
            continue
        filled |= {inner[:length] for length in range(len(parts), len(inner))}
        if stat.S_ISLNK(entry.external_attr >> 16):
            yield Submission(inner, problem="is a link: the file itself is needed")
        else:
            yield from _file(inner, lambda entry=entry: archive.read(entry), depth + 1)
    empty = folders if filled == {parts} else [each for each in folders if each not in filled]
    for each in empty:
        yield Submission((*each, ""), problem=_NONE)


def _is_left_behind(name: str) -> bool:
    return name in _LEFT_BEHIND or name.startswith("._")


def _text(name: str) -> str:
    """A name from a disk as text. An archive from Windows may leave names there that are not UTF-8."""
    data = os.fsencode(name)
    try:
        text = data.decode()
    except UnicodeDecodeError:
        text = data.decode("latin-1")
    return unicodedata.normalize("NFC", text)


def _notebook(parts: tuple[str, ...], data: bytes) -> Submission:
    try:
        source = [
            (cell["cell_type"], "".join(cell["source"]))
            for cell in json.loads(data.decode("utf-8-sig"))["cells"]
        ]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return Submission(
            parts, problem="cannot be read as a notebook: the .ipynb file is needed again"
        )
    return of_cells(parts, source)


def of_cells(parts: tuple[str, ...], source: list[tuple[str, str]]) -> Submission:
    """A notebook, given as the kind and the source of each cell."""
    lab = _lab_of("\n".join(text for _, text in source))
    if lab is None:
        return Submission(parts, problem=_FOREIGN)
    code = enumerate((text for kind, text in source if kind == "code"), 1)
    ours = handed_out(lab).words
    cells = [Cell(f"code cell {n}", text, _words(text) not in ours) for n, text in code]
    submission = Submission(parts, lab, tuple(cells))
    if submission.work >= _work_of_solution(lab):
        submission.remarks.append("its answers are identical to our solution")
    return submission


def _lab_of(text: str) -> int | None:
    """The lab that a notebook's text is of, whatever its file is called: most of its TODOs say so."""
    numbers = [int(number) for number in _TODO.findall(text)]
    lab = max(set(numbers), key=numbers.count, default=None)
    with contextlib.suppress(ImportError):
        return lab if lab is not None and todos.of_lab(lab) else None
    return None


def _words(source: str) -> str:
    return " ".join(source.split())


@cache
def handed_out(lab: int) -> HandedOut:
    """A lab as learners get it.

    Raises:
        ValueError: the labs are not here.
    """
    given, words, checks = [], {""}, {}
    for name, cell in pages.cells(ROOT, lab, "labs").items():
        source = cell["source"]
        words.add(_words(source))
        starter = cell["metadata"].get("nbgrader", {}).get("solution")
        if name == "setup" or ("given" in cell["metadata"].get("tags", []) and not starter):
            given.append(Cell("", source, own=False))
        if CHECK.search(source):
            calls = (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call))
            call = next(each for each in calls if getattr(each.func, "id", "") == "check")
            id, *arguments = call.args
            checks[ast.literal_eval(id)] = tuple(map(ast.unparse, arguments))
    return HandedOut(tuple(given), frozenset(words), checks)


@cache
def _work_of_solution(lab: int) -> frozenset[str]:
    solved = pages.cells(ROOT, lab).values()
    return frozenset(_words(cell["source"]) for cell in solved) - handed_out(lab).words


def writes(source: str, todo: str) -> bool:
    """Whether a cell's text is an answer to a TODO: it has its comment, or gives what its check asks for."""
    asked = handed_out(todos.lab_of(todo)).checks[todo]
    names = "|".join(re.escape(each.strip("'")) for each in asked)
    gives = rf"^%%writefile +({names})$|^[ ]*((def|class) +({names})\b|({names})\b[^=\n]*=[^=])"
    return bool(re.search(rf"TODO {todo}\b|{gives}", source, re.M))


def _minutes(data: bytes) -> dict[int, float]:
    """Minutes from opening a lab to its last solution, of each lab in which all TODOs are solved.

    A longer break does not count: the learner was doing something else.

    Args:
        data: the file of `lab_utils progress`: {"2a": {"first": seconds, "solved": seconds}, ...}.

    Returns:
        By the number of the lab; none from a file that does not read so.
    """
    minutes = {}
    with contextlib.suppress(ValueError, TypeError, AttributeError, RecursionError):
        times = json.loads(data)
        solved = {id for id, each in times.items() if each.get("solved")}
        for lab in sources.paths():
            if solved.issuperset(ids := sources.ids(lab)):
                minutes[lab] = progress.minutes(ids, times)
    return minutes


def _learner(parts: tuple[str, ...], common: int, labs: set[int]) -> str:
    """Whose a file is; "" where neither folder nor name says so.

    A platform's name counts, with the id that tells two of one name apart; else the first folder below the
    one that holds all, unless it is a lab's; else what the file's name holds beside the lab's.
    """
    for part in parts:
        for pattern in _PLATFORMS:
            if match := pattern.fullmatch(part):
                return f"{match['who'].strip()} ({match['id']})"
    places = (*parts[common:-1], parts[-1], *reversed(parts[:common]))
    return next(filter(None, (_of_name(place, labs) for place in places)), "")


def _of_name(name: str, labs: set[int]) -> str:
    """The learner that a name gives, beside the lab's own: "02_four_changes_ann (1).ipynb".

    Of plain numbers only the lab's goes, where nothing else names the lab: the folders student_01 and
    student_02 are of two learners.
    """
    rest, found = _of_a_lab().subn(" ", name)
    rest = " ".join(re.sub(_FILLING, " ", rest, flags=re.I).split()).strip(" _-.,")
    if rest.isdigit() or (_NOTEBOOK.search(name) and not found):
        number = "|".join(f"0?{lab}" for lab in labs)
        rest = re.sub(rf"(?<![^\W_])({number})(?![^\W_])", " ", rest)
    return " ".join(rest.split()).strip(" _-.,")


@cache
def _of_a_lab() -> re.Pattern[str]:
    """What names a lab: the title of one of ours, or a word such as "lab" with a number."""
    titles = (path.stem.replace("_", "[ _-]*") for path in ROOT.glob("labs/*.ipynb"))
    return re.compile("|".join((*titles, _A_LAB)), re.I)


def _counting(files: list[Submission]) -> list[Submission]:
    """What counts of a learner's files: notebooks that somebody has worked on, else what there is."""
    worked = [file for file in files if file.work]
    notebooks = [file for file in files if file.lab is not None]
    ignored = {_NONE, _FOREIGN} if notebooks else {_NONE}  # an environment holds notebooks, too
    broken = [file for file in files if file.lab is None and file.problem not in ignored]
    minutes = {lab: each for file in files for lab, each in file.minutes.items()}
    counting = (worked or notebooks[:1]) + broken
    if not counting:
        only = ", ".join(sorted(file.name for file in files if file.name)[:3])
        files[0].problem = f"holds no notebook (.ipynb){only and ', only '}{only}"
        counting = files[:1]
    counting[0].minutes = minutes
    return counting
