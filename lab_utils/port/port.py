"""From a program's source to the source of its port."""

import io
import tokenize

from lab_utils.port.forms import Forms
from lab_utils.port.listed import list_rest
from lab_utils.port.names import Rename, style
from lab_utils.port.program import NotPython, Program, Todo


def ported(source: bytes) -> tuple[bytes, list[Todo]]:
    """The port of a file, in its encoding and with its line ends, and what is left to a person.

    Raises:
        NotPython: it cannot be read as Python 3.
    """
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(source).readline)
        text = source.decode(encoding)
    except (SyntaxError, UnicodeDecodeError) as error:
        raise NotPython(f"its text cannot be read: {error}") from None
    old, for_lines = Program(text), Program(text)
    v1, is_old = style(old)
    list_rest(old)
    Forms(old, v1).apply()
    new = Rename(Program(old.result()), v1, is_old).apply()
    Rename(for_lines, v1, is_old).apply()  # what it lists has the lines of the old file
    return (source if new == text else new.encode(encoding)), sorted(old.todo | for_lines.todo)
