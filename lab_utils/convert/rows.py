"""The input lists: CSV rows `path,label`, the labels file, and how rows are dealt out to shards."""

import contextlib
import csv
import itertools
import random
import unicodedata
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from lab_utils.common.figures import counted
from lab_utils.convert import habits, storage
from lab_utils.convert.errors import ConversionError, RejectError

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_LONGEST = 1 << 20  # bytes of the first line: what is longer may be gigabytes without an end
_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")


@dataclass(frozen=True, slots=True)
class Row:
    """What a CSV row says.

    Attributes:
        paths: where the image may be, best guess first; more than one only where the row is not valid UTF-8.
        label: the class.
        filename: the path as it stands in the CSV, byte for byte.
    """

    paths: tuple[str, ...]
    label: str
    filename: bytes


def decode(line: bytes) -> str:
    """Returns the text of a line: UTF-8, or else Windows's cp1252, or else latin-1, which any bytes are."""
    for encoding in ("utf-8", "cp1252"):
        with contextlib.suppress(UnicodeDecodeError):
            return line.decode(encoding)
    return line.decode("latin-1")


def read_lines(path: str) -> Iterator[tuple[int, bytes]]:
    """Yields (line number from 1, line without its end) for each line of a text file that is not blank.

    Raises:
        ConversionError: if the file cannot be read, or has no lines in UTF-8.
    """
    try:
        with storage.open_to_read(path) as file:
            first = file.readline(_LONGEST)
            if first.startswith(_UTF16_MARKS):
                raise ConversionError(f"{path} is in UTF-16; save it as UTF-8")
            if kind := habits.of_list(first.removeprefix(_BYTE_ORDER_MARK)):
                raise ConversionError(f"{path} is not text in UTF-8 but {kind}")
            if len(first) == _LONGEST:
                raise ConversionError(
                    f"{path} is not a list: its first line has more than {_LONGEST:,} bytes"
                )
            for number, line in enumerate(itertools.chain([first], file), 1):
                # Windows joins files with their marks, and DOS ended them with Ctrl-Z.
                line = line.removeprefix(_BYTE_ORDER_MARK).rstrip(b"\r\n\x1a")
                if line.strip():
                    yield number, line
    except OSError as error:
        raise ConversionError(f"cannot read {path}: {error.strerror or error}") from None


def read_labels(path: str) -> list[str]:
    """Returns the classes, one a line of the labels file, in its order; the first has id 1 in the records.

    Raises:
        ConversionError: if a class stands there twice, or none does, or its lines end otherwise.
    """
    lines: dict[str, int] = {}
    for number, line in read_lines(path):
        label = _composed(decode(line).strip())
        if "\r" in label or "\0" in label:
            raise ConversionError(
                f"{path}, line {number}: a carriage return or a zero byte stands in a class; save the file "
                "as UTF-8 text whose lines end in line feeds"
            )
        if label in lines:
            raise ConversionError(
                f"{path}, line {number}: class {label!r} stands on line {lines[label]} already"
            )
        lines[label] = number
    if not lines:
        raise ConversionError(f"{path} holds no classes; it must have one a line")
    return list(lines)


def not_utf8(path: str) -> str | None:
    """The first line of a text file that is not UTF-8, as `decode` takes it; None where there is none."""
    for _, line in read_lines(path):
        try:
            line.decode()
        except UnicodeDecodeError:
            return decode(line)
    return None


def parse_row(line: bytes, csv_path: str) -> Row:
    """Returns what one line of a CSV says; relative paths are taken from the CSV's folder.

    Names in an odd encoding are looked for twice: by the very bytes of the row, which are the file's name
    where the CSV came from the same disk, and by the name they spell in cp1252, of which
    latin-1 is a part.

    Raises:
        RejectError: if the line is not two columns.
    """
    try:
        texts = [line.decode()]
    except UnicodeDecodeError:
        texts = [line.decode("utf-8", "surrogateescape"), decode(line)]
    parsed = [_parse_columns(text) for text in texts]
    folder = storage.parent(csv_path)
    return Row(
        paths=tuple(storage.join(folder, path) for path, _ in parsed),
        label=_composed(parsed[-1][1]),
        filename=parsed[0][0].encode("utf-8", "surrogateescape"),
    )


def parse_labelled(line: bytes, csv_path: str, known: Collection[str]) -> Row:
    """`parse_row` of a row whose label is one of the `known` classes, in the labels file's order.

    Raises:
        RejectError: as there, or the label is none of them.
    """
    row = parse_row(line, csv_path)
    if row.label not in known:
        hint = habits.of_label(row.label, decode(row.filename), list(known))
        raise RejectError(f"unknown label {row.label!r}: {hint}")
    return row


def _composed(label: str) -> str:
    """The same class, however it was typed: a letter and its accent as one sign (Unicode's form C)."""
    return unicodedata.normalize("NFC", label)


def _parse_columns(text: str) -> tuple[str, str]:
    if "\r" in text:
        raise RejectError(
            "this line contains a carriage return; if the lines of the file end in one, save it "
            "with line feeds"
        )
    if "\0" in text:
        raise RejectError("a zero byte stands in this line; save the list as text in UTF-8")
    try:
        reader = csv.reader([text], strict=True, skipinitialspace=True)
        columns = [column.strip() for column in next(reader)]
    except csv.Error as error:
        if len(text) > csv.field_size_limit():
            raise RejectError(f"not a row of a list: {error}") from None
        raise RejectError(
            "a quote is not closed on this line, or stands in the middle of a column"
        ) from None
    if len(columns) != 2:
        raise RejectError(
            f"{counted(len(columns), 'column')} where 2 are expected: path,label{habits.of_columns(columns)}"
        )
    for name, column in zip(("path", "label"), columns, strict=True):
        if not column:
            raise RejectError(f"no {name}")
    return columns[0], columns[1]


def deal(
    rows: Iterable[tuple[int, bytes]], shards: int, seed: str
) -> Iterator[tuple[int, tuple[int, bytes]]]:
    """Yields (shard, row), dealing the rows out like cards.

    Of each run of `shards` rows every shard gets one, in an order drawn again for each run. So all shards are
    of equal length, and a CSV that is sorted by class still puts its share of each class in every shard.
    """
    random_source = random.Random(seed)
    deck: list[int] = []
    for row in rows:
        if not deck:
            deck = list(range(shards))
            random_source.shuffle(deck)
        yield deck.pop(), row
