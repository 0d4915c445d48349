"""The notebooks of a class: which there are, and whose they are."""

import os
import re
from collections import defaultdict
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

from lab_utils.teach.grade import reading
from lab_utils.teach.grade.cells import untouched
from lab_utils.teach.grade.entries import entries
from lab_utils.teach.grade.owners import Owner, key, owners
from lab_utils.teach.grade.reading import Read

_LARGEST_MODULE = 2**20  # characters of Python beside a notebook
_FILES_OF_PLATFORMS = (".txt", ".yml")
_DOCUMENTS = re.compile(  # that hold answers to read; not what labs write, nor what a repository brings
    r"(?!readme|license)(onlinetext\.html|.+\.(pdf|docx?|odt|rtf|pages|tex|md|pptx?|heic|jpe?g))",
    re.I,
)
_OF_NBGRADER = {"source", "release", "autograded", "feedback", "gradebook.db", "nbgrader_config.py"}
_HANDED_IN = ("notebook", "script", "link")
_KINDS = (*_HANDED_IN, "other", "module")


@dataclass(frozen=True)
class Submission:
    """One learner's notebook of one lab: its code cells; `problem` says why it cannot be graded.

    `beside` are the Python files in its folder, by name, which its cells may import.
    """

    learner: str
    path: PurePosixPath
    lab: int | None
    code: tuple[str, ...] = ()
    problem: str = ""
    remarks: tuple[str, ...] = ()
    beside: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class _File:
    parts: tuple[str, ...]
    read: Read
    owner: Owner = Owner("")

    @property
    def name(self) -> PurePosixPath:
        return PurePosixPath(*self.parts)


def find(place: Path) -> list[Submission]:
    """The submissions in a folder or an archive, by learner: grading.md lists the ways they may be named.

    Everything is read here, before anybody's code runs. Links are not followed.

    Raises:
        OSError: the folder cannot be read.
        ValueError: it holds no notebook.
    """
    files, texts = [], {}
    for entry in entries(place):
        read = _read(entry.parts, entry.data, entry.problem)
        files.append(_File(entry.parts, read))
        if entry.parts[-1].endswith(_FILES_OF_PLATFORMS):
            texts[entry.parts] = entry.data.decode("utf-8", "replace")
    files = _submitted(files)
    if not any(file.read.kind in _HANDED_IN for file in files):
        raise ValueError(f"{place} holds no notebook (.ipynb)")
    asked = [(file.parts, file.read.lab, file.read.author) for file in files]
    owned = [
        replace(file, owner=owner)
        for file, several in zip(files, owners(asked, texts), strict=True)
        for owner in several
        if file.read.kind in _HANDED_IN or not owner.loose
    ]
    by_learner = _by_learner(owned)
    found = [each for name, own in by_learner.items() for each in _of_learner(name, own)]
    return sorted(
        _compared(found), key=lambda each: (each.learner.casefold(), each.lab or 0, str(each.path))
    )


def _submitted(found: list[_File]) -> list[_File]:
    """All of it; of the folder of an nbgrader course, what learners have submitted."""
    depth = len(os.path.commonprefix([each.parts[:-1] for each in found])) if found else 0
    tops = {each.parts[depth] for each in found}
    if "submitted" in tops and tops & _OF_NBGRADER:
        return [each for each in found if each.parts[depth] == "submitted"]
    return found


def _read(parts: tuple[str, ...], data: bytes, problem: str) -> Read:
    if problem:
        return Read("notebook", problem=problem)
    return reading.read(parts[-1], data)


def _by_learner(files: list[_File]) -> dict[str, list[_File]]:
    """Files by learner. Two of one name are told apart by their ids, where one export gives two."""
    ids: dict[tuple, set[str]] = defaultdict(set)
    for file in files:
        ids[file.owner.export, key(file.owner.name)].add(file.owner.id)
    doubled = {name for (_, name), own in ids.items() if len(own) > 1}
    grouped: dict[str, list[_File]] = defaultdict(list)
    for file in files:
        name = key(file.owner.name)
        grouped[f"{name} ({file.owner.id})" if name in doubled else name].append(file)
    named = {}
    for own in grouped.values():
        name = max((file.owner.name for file in own), key=lambda name: sum(map(str.isupper, name)))
        named[f"{name} ({own[0].owner.id})" if key(name) in doubled else name] = own
    return named


def _of_learner(learner: str, files: list[_File]) -> list[Submission]:
    """A learner's notebooks; exports and links count only for labs that have none."""
    files = sorted(files, key=lambda file: (_KINDS.index(file.read.kind), file.parts))
    gradable = [file for file in files if file.read.lab is not None]
    gradable = [f for f in gradable if not untouched(f.read.lab, f.read.code)] or gradable
    chosen: dict[tuple, _File] = {}
    for file in gradable:
        notebooks = any(o.read.lab == file.read.lab and o.read.kind == "notebook" for o in gradable)
        if file.read.kind == "notebook" or not notebooks:
            chosen.setdefault((file.read.lab, file.read.code), file)
    found = [_submission(learner, file, files) for file in chosen.values()]
    wrong = [file for file in files if file.read.kind == "notebook" and file.read.problem]
    found += [Submission(learner, f.name, None, problem=f.read.problem) for f in wrong]
    if found:
        told = [f"{f.name} {f.read.problem}" for f in files if f.read.kind == "link"]
        if documents := _documents(files):
            told.append(f"handed in beside it, for you to read: {_named(documents)}")
        return [replace(found[0], remarks=(*found[0].remarks, *told)), *found[1:]]
    (first, *others) = files
    if first.read.kind in ("link", "script"):
        return [Submission(learner, first.name, None, problem=first.read.problem)]
    names = sorted(file.parts[-1] for file in (first, *others) if file.parts[-1])
    told = f", only {_named(names)}" if names else ""
    return [
        Submission(learner, first.name.parent, None, problem=f"holds no notebook (.ipynb){told}")
    ]


def _documents(files: list[_File]) -> list[str]:
    """What a person has to read: documents in a notebook's folder, and a text typed into the platform."""
    folders = {file.parts[:-1] for file in files if file.read.kind in _HANDED_IN}
    return sorted(
        file.parts[-1]
        for file in files
        if file.read.kind == "other"
        and _DOCUMENTS.fullmatch(file.parts[-1])
        and (file.parts[:-1] in folders or file.parts[-1] == "onlinetext.html")
    )


def _named(names: list[str]) -> str:
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(names[:3]) + more


def _submission(learner: str, file: _File, files: list[_File]) -> Submission:
    beside = tuple(
        (other.parts[-1], other.read.text)
        for other in files
        if other.read.kind == "module"
        and other.parts[:-1] == file.parts[:-1]
        and len(other.read.text) <= _LARGEST_MODULE
    )
    remarks = () if file.owner.sure else ("its name gives no learner",)
    unknown = reading.unknown_todos(file.read.lab, "\n".join(file.read.code))
    if unknown:
        remarks += (
            f"names TODO {', '.join(unknown)}, which this release of the lab does not have",
        )
    if file.read.in_text:  # a key turns a cell into text: M in Jupyter
        remarks += (f"TODO {', '.join(file.read.in_text)} stands in a text cell, which is not run",)
    return Submission(learner, file.name, file.read.lab, file.read.code, "", remarks, beside)


def _compared(found: list[Submission]) -> list[Submission]:
    """With a remark where learners handed in the same code, character by character."""
    same: dict[tuple, list[str]] = defaultdict(list)
    for each in found:
        if each.lab is not None and not untouched(each.lab, each.code):
            same[each.lab, each.code].append(each.learner)
    names = {key(each.learner): each.learner for each in found}
    compared = []
    for each in found:
        others = sorted(set(same.get((each.lab, each.code), ())) - {each.learner})
        told = (f"the same code as {', '.join(others)}",) if others else ()
        copy = re.fullmatch(r"(.+?)[ _-]*\(\d\)", each.learner)
        if copy and key(copy[1]) in names:
            told += (f"one learner with {names[key(copy[1])]}, or two?",)
        compared.append(replace(each, remarks=each.remarks + told))
    return compared
