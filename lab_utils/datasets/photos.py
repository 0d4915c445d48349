"""A folder of photographs in class sub-folders, and its split into training and evaluation."""

import csv
import hashlib
import io
import os
import unicodedata
from collections import Counter, defaultdict
from dataclasses import dataclass
from pathlib import Path

from tqdm import tqdm

from lab_utils.common import files
from lab_utils.common.figures import counted

EVAL_SHARE = 0.2  # of each class, rounded to whole photographs, at least one
SUFFIXES = (".jpg", ".jpeg", ".jfif", ".png", ".gif", ".bmp", ".webp")
# The wheel brings them beside this file; in a checkout they stand at its top (pyproject.toml).
IN_WHEEL, IN_CHECKOUT = (
    Path(__file__).resolve().with_name("files"),
    Path(__file__).resolve().parents[2] / "datasets",
)


class DatasetError(Exception):
    """Photographs that cannot be had or used; the message says why, and what to do."""


@dataclass(frozen=True)
class Photos:
    """Photographs, and the files that say which is what.

    The CSV files have no header; a row is `path,label`, the path absolute or relative
    to the CSV file's folder.
    """

    folder: Path
    train_csv: Path
    eval_csv: Path
    labels_file: Path  # one class a line

    @classmethod
    def at(cls, folder: Path, csv_folder: Path) -> "Photos":
        """The photographs in `folder` with the three files in `csv_folder`, there or not."""
        return cls(folder, *(csv_folder / name for name in ("train.csv", "eval.csv", "labels.txt")))


@dataclass(frozen=True)
class Photo:
    """One file: where, what, and the SHA-256 of its bytes."""

    path: Path
    label: str
    digest: str


def files_folder() -> Path:
    """The folder of the bundled files: pictures of flowers, and a text.

    Raises:
        DatasetError: they are neither in the installed package nor in a checkout around it.
    """
    for folder in (IN_WHEEL, IN_CHECKOUT):
        if (folder / "flowers" / "train.csv").is_file():
            return folder
    raise DatasetError(
        f"The bundled data is neither in {IN_WHEEL} nor in {IN_CHECKOUT}: install the package again, from "
        "its wheel or from a whole checkout."
    )


def bundled() -> Photos:
    """The small set of drawn flowers that comes with the package.

    Raises:
        DatasetError: it is not there.
    """
    folder = files_folder() / "flowers"
    return Photos.at(folder, folder)


def play() -> str:
    """William Shakespeare, As You Like It: 125,179 characters of ASCII, with tabs and newlines.

    Raises:
        DatasetError: as for `bundled`.
    """
    return (files_folder() / "shakespeare" / "as_you_like_it.txt").read_text(encoding="ascii")


def from_folder(folder: str | os.PathLike[str], output_dir: str | os.PathLike[str]) -> Photos:
    """Splits photographs in class sub-folders, and writes the three files outside of their folder.

    The photographs stay where they are. What was left out is printed.

    Args:
        folder: as for `write_lists`.
        output_dir: where the three files go; outside `folder`. Made where it is missing.

    Raises:
        DatasetError: as for `write_lists`, or `output_dir` is in `folder`.
    """
    # Unlike Path.resolve, this raises no RuntimeError for a link that leads to itself.
    output_dir, folder = (Path(os.path.realpath(path)) for path in (output_dir, folder))
    if output_dir.is_relative_to(folder):
        raise DatasetError(
            f"{output_dir} is in the folder of photographs, which must not change: choose another "
            "output_dir."
        )
    return write_lists(folder, output_dir)


def write_lists(folder: Path, output_dir: Path) -> Photos:
    """Splits photographs in class sub-folders, and writes train.csv, eval.csv and labels.txt.

    Which side a photograph is on depends on its bytes and those of its class alone: not on names, order or
    machine. Copies of the same bytes are always on one side.

    Args:
        folder: holds one sub-folder for each class, with the photographs directly in it.
        output_dir: where the three files go. Made where it is missing. Paths to photographs within it are
            written relative to it.

    Raises:
        DatasetError: no photographs, one class only, too few in a class, or other CSV files in `output_dir`.
    """
    photographs = scan(folder)
    train, evaluation = split(photographs)
    labels = sorted({photo.label for photo in photographs})
    photos = Photos.at(folder, output_dir)
    contents = {
        photos.labels_file: "".join(f"{label}\n" for label in labels),
        photos.eval_csv: _rows(evaluation, output_dir),
        photos.train_csv: _rows(train, output_dir),
    }
    output_dir.mkdir(parents=True, exist_ok=True)
    for path, text in contents.items():
        if path.exists() and path.read_bytes() != text.encode():
            raise DatasetError(
                f"{path} exists already and has different contents (from other photographs). "
                "Nothing was overwritten: choose another output_dir, or move this one away."
            )
    for path, text in contents.items():
        files.write(path, text)
    parts = f"{counted(len(train), 'photograph')} to train on, {len(evaluation):,} to evaluate"
    print(f"{counted(len(labels), 'class')}, {parts}")
    return photos


def classes(csv_file: Path) -> dict[Path, str]:
    """The photographs of a CSV file of `path,label`, each with its class."""
    with csv_file.open(newline="", encoding="utf-8") as file:
        return {csv_file.parent / row[0]: row[1] for row in csv.reader(file) if len(row) == 2}


def scan(folder: Path) -> list[Photo]:
    """Every photograph in the class sub-folders of `folder`; prints which other files were left out."""
    if not folder.is_dir():
        raise DatasetError(
            f"{folder} is not a folder. It should hold one sub-folder of photographs for each class."
        )
    photographs, others = [], []
    classes = sorted(e for e in folder.iterdir() if e.is_dir() and not e.name.startswith("."))
    for entry in tqdm(classes, desc="reading photographs", unit="folder", delay=1):
        label = unicodedata.normalize("NFC", entry.name)  # however a disk writes it
        paths = sorted(entry.iterdir())
        usable = list(filter(_is_usable, paths))
        others += set(paths) - set(usable)
        photographs += [Photo(path, label, file_sha256(path)) for path in usable]
        if usable and (not _fits_a_row(str(entry)) or entry.name != entry.name.strip()):
            raise DatasetError(
                f"{str(entry)!r} cannot be written into a CSV row: rename it in UTF-8, without "
                "line breaks or spaces at the ends."
            )
    if others:
        names = ", ".join(repr(str(path.relative_to(folder))) for path in sorted(others)[:5])
        print(
            f"{folder}: left out {counted(len(others), 'file')} of class folders that are not photographs "
            f"({', '.join(SUFFIXES)}), hidden or empty: {names}{', ...' * (len(others) > 5)}"
        )
    labels = {photo.label for photo in photographs}
    if len(labels) < 2:
        content = (
            f"only one class ({labels.pop()})" if labels else "no photographs in class folders"
        )
        raise DatasetError(
            f"{folder} holds {content}. It should hold at least two sub-folders, one for each class, "
            f"with photographs ({', '.join(SUFFIXES)}) directly in them."
        )
    return photographs


def _is_usable(path: Path) -> bool:
    """Whether a file of a class folder is a photograph, by its name and size."""
    if path.name.startswith(".") or path.suffix.lower() not in SUFFIXES:
        return False
    return _fits_a_row(path.name) and path.is_file() and path.stat().st_size > 0


def _fits_a_row(text: str) -> bool:
    """Whether it can stand in a line of a UTF-8 file, and be read there."""
    return not any(unicodedata.category(sign) in ("Cc", "Cs") for sign in text)


def split(photographs: list[Photo]) -> tuple[list[Photo], list[Photo]]:
    """Training and evaluation, each in the order of the SHA-256 of their bytes, which mixes the classes.

    In each class the photographs of lowest SHA-256 are for evaluation. Bytes that stand in two classes are
    for training, all of them: one of their labels is wrong, and evaluation should not count it.
    """
    copies: dict[str, list[Photo]] = defaultdict(list)
    for photo in sorted(photographs, key=lambda photo: (photo.digest, photo.label, photo.path)):
        copies[photo.digest].append(photo)
    sizes = Counter(photo.label for photo in photographs)
    for_evaluation = {label: max(1, int(EVAL_SHARE * size + 0.5)) for label, size in sizes.items()}
    train: list[Photo] = []
    evaluation: list[Photo] = []
    for group in copies.values():
        labels = {photo.label for photo in group}
        label = group[0].label
        if len(labels) == 1 and len(group) <= for_evaluation[label]:
            for_evaluation[label] -= len(group)
            evaluation += group
        else:
            train += group
            if len(labels) > 1:
                places = ", ".join(f"{photo.label}/{photo.path.name}" for photo in group)
                print(
                    "the same photograph is in more than one class, so it is used only for "
                    f"training: {places}"
                )
    for label, size in sizes.items():
        for side, use in ((train, "train on"), (evaluation, "evaluate with")):
            if not any(photo.label == label for photo in side):
                raise DatasetError(
                    f"Class {label!r} leaves nothing to {use}: it has {counted(size, 'photograph')}, copies "
                    "included. Add different photographs, or move the class away."
                )
    if repeated := len(photographs) - len(copies):
        print(f"{counted(repeated, 'file')} repeat another; copies stay on one side")
    return train, evaluation


def _rows(photographs: list[Photo], csv_folder: Path) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    for photo in photographs:
        within = photo.path.is_relative_to(csv_folder)
        path = photo.path.relative_to(csv_folder) if within else photo.path
        writer.writerow([path.as_posix(), photo.label])
    return text.getvalue()


def file_sha256(path: Path) -> str:
    """SHA-256 of a file's bytes, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
