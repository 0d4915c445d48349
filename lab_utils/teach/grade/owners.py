"""Whose a file is: by the names that learning platforms give, else by its folder, else by its own name."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import yaml

from lab_utils.teach.grade.cells import LABS

# Words that stand between letters and digits of other words are not meant.
_START, _END = r"(?<![^\W_])", r"(?![^\W_])"
_LAB_WORD = r"(?:lab(?:oratory)?|week|hw|homework|assignment|exercise|session|unit|task|day)s?"
_NUMBERS = "one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve"
_LAB_FOLDER = re.compile(rf"(?:{_LAB_WORD})[ _-]*\d{{1,2}}{_END}.*", re.I)
# Moodle: "Ann Learner_1234567_assignsubmission_file_", as a folder's name or at the start of a file's.
# Canvas: "learnerann_LATE_1234_56789_02_four_changes-1.ipynb", "learnerann_1234_text.html".
# Blackboard: "Lab 2_ann7_attempt_2026-11-20-14-33-12_02_four_changes.ipynb", and a .txt that gives the name.
# nbgrader's exchange: "ann+02+2026-11-20 14:33:12 UTC+Ab1".
# Brightspace: "12345-67890 - Ann Learner - Nov 20, 2026 2-33 PM".
_PLATFORMS = (
    re.compile(r"(?P<who>.+?)_(?P<id>\d+)_assignsubmission_[a-z]+(?:_(?P<file>.*))?"),
    re.compile(r".+_(?P<who>[^_]+)_attempt_\d{4}(?:-\d\d){5}(?P<id>)(?:_(?P<file>.+)|\.txt)?"),
    re.compile(r"(?P<who>[^+]+)\+[^+]+\+\d{4}-\d\d-\d\d(?P<id>)[^+]*\+.*"),
    re.compile(r"(?P<id>\d+)-\d+ - (?P<who>.+?) - (?P<file>.*\d.*)"),
)
_CANVAS = re.compile(
    rf"(?!{_LAB_WORD}\d*_|\d+_)(?P<who>[^_]+)(?:_LATE)?_(?P<id>\d+)_(?:\d+_(?P<file>.+)|(?:text|link)\.html)",
    re.I,
)
_BLACKBOARD_NAME = re.compile(r"^Name: (.+?) \((.+)\)\s*$", re.M)
_GRADESCOPE = re.compile(r"submission_\d+")
_TEAMS = {"submitted files", "working files"}  # each holds a folder a learner
# "ann_hw1" and "ann_hw2", folders or archives of one learner.
_LAB_AT_END = re.compile(rf"(?P<who>.*[^\W\d_].*?)[ _-]+{_LAB_WORD}[ _-]*\d{{1,2}}", re.I)
# "Section A", "Group 2 (Tue)": a folder of learners, where it holds folders and no notebook itself.
_SECTION = re.compile(
    rf"(?:section|group|class|tutorial|seminar|period|cohort|gruppe|kurs|klasse)s?{_END}.*", re.I
)
_OF_A_CLONE = {"labs", "solutions", "datasets", "lab_utils", "notebooks", "tests"}
_FILLING = re.compile(
    rf"{_START}(?:copy of|kopie von|copie de|copia de|cópia de|copia di|kopia|"
    rf"{_LAB_WORD}[ _-]*(?:\d{{1,2}}|{_NUMBERS})|lab(?:oratory)?|homework|hw|assignment|exercises?|"
    rf"final|finished|solved|submissions?|untitled\d*|notebook[0-9a-f]{{8,}}|colab(?:oratory)?|"
    rf"attempt[ _-]*\d*|version[ _-]*\d+|v\d+|\d{{1,2}}){_END}"
    r"|\(\d+\)|-?copy\d+$|\.ipynb|\.py$",
    re.I,
)


@dataclass(frozen=True)
class Owner:
    """A learner's name; from a learning platform also an id, and the folder `export` that it counts in.

    `loose`: the file stands in no learner's folder; not `sure`: its name gives none either.
    """

    name: str
    id: str = ""
    export: tuple[str, ...] | None = None
    loose: bool = False
    sure: bool = True


def owners(
    files: Sequence[tuple[tuple[str, ...], int | None, str]], texts: dict[tuple[str, ...], str]
) -> list[list[Owner]]:
    """Who owns each of `files`: (its place, its lab, whom it names itself); several for a group's file.

    Args:
        files: of the whole class, since folders tell their meaning only together.
        texts: of files that platforms add, by place.
    """
    groups, names = _gradescope(texts), _blackboard(texts)
    found: dict[int, list[Owner]] = {}
    for number, (parts, *_) in enumerate(files):
        if own := _by_platform(parts, groups, names):
            found[number] = own
    places = _without_labs([parts for parts, *_ in files], [lab for _, lab, _ in files])
    places = _without_sections(_without_wrappers(places, set(found)))
    for number, parts in enumerate(places):
        if number in found:
            continue
        if len(parts) > 1:
            # GitHub Classroom: "lab-02-ann"
            rest = of_file(parts[0]) if _LAB_FOLDER.fullmatch(parts[0]) else ""
            said = _LAB_AT_END.fullmatch(parts[0])
            found[number] = [Owner(rest or (said["who"] if said else parts[0]))]
        else:
            name = of_file(parts[0]) or files[number][2]
            found[number] = [Owner(name or parts[0].split(".")[0], loose=True, sure=bool(name))]
    return [found[number] for number in range(len(files))]


def of_file(name: str) -> str:
    """The learner that a file's name gives, beside the lab's own name: "02_four_changes_ann (1).ipynb"."""
    rest = re.sub(
        r"(\.(ipynb|py|txt|json|html?|zip|tar|gz|tgz|rar|7z|url|webloc))+$", "", name, flags=re.I
    )
    for stem in sorted((each.stem for each in LABS.glob("*.ipynb")), key=len, reverse=True):
        words = stem.split("_")
        title = r"[ _-]*".join(words[1:])
        rest = re.sub(rf"(?:{words[0]}[ _·.-]*)?{_START}{title}{_END}", " ", rest, flags=re.I)
    rest = " ".join(_FILLING.sub(" ", rest).split())
    return rest.strip(" _-.,·–")


def key(name: str) -> str:
    """Equal for one learner's name in several spellings: "Ann_Lee", "ann lee"."""
    return " ".join(re.split(r"[\s_.-]+", name.casefold())).strip()


def _by_platform(
    parts: tuple[str, ...], groups: dict[str, list[str]], names: dict[str, str]
) -> list[Owner]:
    for depth, part in enumerate(parts):
        if _GRADESCOPE.fullmatch(part) and part in groups:
            return [Owner(name, export=parts[:depth]) for name in groups[part]]
        for pattern in (*_PLATFORMS, _CANVAS):
            if said := pattern.fullmatch(part):
                before = part.partition("_attempt_")[0]
                return [Owner(names.get(before, said["who"].strip()), said["id"], parts[:depth])]
    return []


def _gradescope(texts: dict[tuple[str, ...], str]) -> dict[str, list[str]]:
    """Submission folders with those who handed them in, by submission_metadata.yml."""
    found: dict[str, list[str]] = {}
    for parts, text in texts.items():
        if parts[-1] != "submission_metadata.yml":
            continue
        try:
            for folder, entry in yaml.load(text, _Ruby).items():
                names = [str(each[":name"]) for each in entry[":submitters"] if each.get(":name")]
                found[folder] = names or [folder]
        except (yaml.YAMLError, AttributeError, KeyError, TypeError):
            continue
    return found


class _Ruby(yaml.SafeLoader):
    """YAML whose marks of Ruby's classes are left out."""


def _plain(loader: yaml.SafeLoader, suffix: str, node: Any) -> Any:
    if isinstance(node, yaml.MappingNode):
        return loader.construct_mapping(node)
    return None


_Ruby.add_multi_constructor("!", _plain)


def _blackboard(texts: dict[tuple[str, ...], str]) -> dict[str, str]:
    """Full names by what stands before "_attempt_"."""
    return {
        parts[-1].partition("_attempt_")[0]: said[1]
        for parts, text in texts.items()
        if "_attempt_" in parts[-1] and (said := _BLACKBOARD_NAME.search(text))
    }


def _without_labs(places: list[tuple[str, ...]], labs: list[int | None]) -> list[tuple[str, ...]]:
    """Without folders that stand for a lab; a bare number does if all that lies below is of that lab."""
    stems = {each.stem.casefold() for each in LABS.glob("*.ipynb")}
    below: dict[str, set[int | None]] = {}
    for parts, lab in zip(places, labs, strict=True):
        for part in parts[:-1]:
            if part.isdecimal() and len(part) <= 2:
                below.setdefault(part, set()).add(lab)
    numbers = bool(below) and all(found - {None} <= {int(part)} for part, found in below.items())

    inside: dict[str, set[str]] = {}
    for parts in places:
        for part, below_it in zip(parts[:-2], parts[1:-1], strict=True):
            inside.setdefault(part, set()).add(below_it)

    def of_lab(part: str) -> bool:
        if part.casefold() in stems | _TEAMS or (numbers and part in below):
            return True
        if not _LAB_FOLDER.fullmatch(part):
            return False
        return not of_file(part) or len(inside.get(part, set()) - _OF_A_CLONE) > 1

    return [(*(part for part in parts[:-1] if not of_lab(part)), parts[-1]) for parts in places]


def _without_sections(places: list[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """Without the folders of a class's sections, if one of them holds several learners' folders."""
    inside: dict[str, set[str]] = {}
    for parts in places:
        if len(parts) > 1 and _SECTION.fullmatch(parts[0]):
            inside.setdefault(parts[0], set()).add(parts[1] if len(parts) > 2 else "")
    sections = {name for name, below in inside.items() if "" not in below}
    if not any(len({each for each in inside[name] if of_file(each)}) > 1 for name in sections):
        return places
    return [parts[1:] if parts[0] in sections else parts for parts in places]


def _without_wrappers(places: list[tuple[str, ...]], known: set[int]) -> list[tuple[str, ...]]:
    """Without the folder that holds all, unless it is the only learner's; `known` are files with an owner."""
    while all(len(parts) > 1 for parts in places) and len({parts[0] for parts in places}) == 1:
        inside = [parts[1:] for parts in places]
        loose = [of_file(p[0]) for n, p in enumerate(inside) if len(p) == 1 and n not in known]
        if loose and not (all(loose) and len({key(name) for name in loose}) > 1):
            break
        places = inside
    return places
