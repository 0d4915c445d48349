"""The input lists: CSV rows `path,label`, and the labels file; what other programs write is explained."""

import csv
import itertools
import unicodedata
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from lab_utils.common.figures import counted
from lab_utils.convert import storage
from lab_utils.convert.errors import ConversionError, RejectError

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_LONGEST = 1 << 20  # bytes of the first line: what is longer may be gigabytes without an end
_NOT_UTF8 = "not text in UTF-8: save the file as UTF-8"
_EXAMPLES = 3  # classes of a long list


@dataclass(frozen=True, slots=True)
class Row:
    """What a CSV row says: where the image is, its class, and the path as it stands in the CSV."""

    path: str
    label: str
    filename: bytes


def read_lines(path: str) -> Iterator[tuple[int, bytes]]:
    """Yields (line number from 1, line without its end) for each line of a text file that is not blank.

    Raises:
        ConversionError: if the file cannot be read, or is not text.
    """
    try:
        with storage.open_to_read(path) as file:
            first = file.readline(_LONGEST)
            if b"\0" in first or len(first) == _LONGEST:
                raise ConversionError(f"{path} is {_NOT_UTF8}, one row or class a line")
            for number, line in enumerate(itertools.chain([first], file), 1):
                # Windows joins files with their marks.
                line = line.removeprefix(_BYTE_ORDER_MARK).rstrip(b"\r\n")
                if line.strip():
                    yield number, line
    except OSError as error:
        raise ConversionError(f"cannot read {path}: {error.strerror or error}") from None


def read_labels(path: str) -> list[str]:
    """Returns the classes, one a line of the labels file, in its order; the first has id 1 in the records.

    Raises:
        ConversionError: if a class stands there twice, none does, or a line is not one in UTF-8.
    """
    lines: dict[str, int] = {}
    for number, line in read_lines(path):
        try:
            label = composed(_text(line).strip())
        except RejectError as error:
            raise ConversionError(f"{path}, line {number}: {error}") from None
        if label in lines:
            raise ConversionError(
                f"{path}, line {number}: class {label!r} is already on line {lines[label]}"
            )
        lines[label] = number
    if not lines:
        raise ConversionError(f"{path} contains no classes; it must have one class per line")
    return list(lines)


def parse_row(line: bytes, csv_path: str, classes: Collection[str]) -> Row:
    """Returns what one line of a CSV says; relative paths are taken from the CSV's folder.

    Raises:
        RejectError: if the line is not two columns in UTF-8, or the label is none of the classes.
    """
    text = _text(line)
    try:
        reader = csv.reader([text], strict=True, skipinitialspace=True)
        columns = [column.strip() for column in next(reader)]
    except csv.Error as error:
        raise RejectError(f"not a row of a list: {error}; is a closing quote missing?") from None
    if len(columns) != 2:
        separator = next((sign for sign in ";\t|" if len(columns) == 1 and sign in text), "")
        hint = f"; they seem to be separated by {separator!r} instead of a comma" * bool(separator)
        raise RejectError(
            f"{counted(len(columns), 'column')} where 2 are expected: path,label{hint}"
        )
    path, label = columns
    if not (path and label):
        raise RejectError("no label" if path else "no path")
    label = composed(label)
    if label not in classes:
        first = ", ".join(map(repr, itertools.islice(classes, _EXAMPLES)))
        more = f", ... ({len(classes):,} in all)" if len(classes) > _EXAMPLES else ""
        raise RejectError(
            f"unknown label {label!r}: a row is path,label without a header, and the labels file has "
            f"{first}{more}"
        )
    return Row(storage.join(storage.parent(csv_path), path), label, path.encode())


def readable(line: bytes) -> str:
    """Returns the text of a line, for a person; what is not UTF-8 stands as escapes."""
    return line.decode(errors="backslashreplace")


def composed(label: str) -> str:
    """Returns the same class, however it was typed: letter and accent as one sign (Unicode's form C)."""
    return unicodedata.normalize("NFC", label)


def _text(line: bytes) -> str:
    try:
        text = line.decode()
    except UnicodeDecodeError:
        raise RejectError(_NOT_UTF8) from None
    if "\r" in text or "\0" in text:
        raise RejectError(
            "there is a carriage return or a zero byte in this line: save the file as UTF-8 text "
            "whose lines end in line feeds"
        )
    return text
