"""python -m lab_utils.port FILE.py: the mechanical part of a port as a diff, and what is left."""

import argparse
import difflib
import io
import os
import sys
import tokenize
from collections.abc import Sequence
from pathlib import Path

from lab_utils.common import command, files
from lab_utils.port.forms import Forms
from lab_utils.port.listed import list_rest
from lab_utils.port.names import Rename, style
from lab_utils.port.program import NotPython, Program

_EPILOG = """\
examples:
    python -m lab_utils.port train.py > train.diff
    python -m lab_utils.port train.py | patch -p1 && python -m lab_utils.dry_run --main train.py

The diff goes to stdout, what is left to do to stderr.

exit status: 0 ported (or nothing to port), 2 the file cannot be read
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; returns its exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m lab_utils.port",
        description="Ports a program of tf.contrib or of the plain Estimator to TPUEstimator, as far "
        "as that is mechanical.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("file", metavar="FILE.py", type=files.path_argument)
    path = parser.parse_args(arguments).file
    if path.suffix == ".ipynb":
        parser.error(f"{path} is a notebook: jupyter nbconvert --to script makes a program of it")
    try:
        old = path.read_bytes()
        new, todo = ported(old)
    except OSError as error:
        parser.error(f"{path}: {error.strerror}")
    except NotPython as error:
        print(f"{path}: {error}", file=sys.stderr)
        return 2
    sys.stdout.buffer.write(diff(old, new, path))
    sys.stdout.flush()
    head = f"{len(todo)} left to do by hand:" if todo else "This tool sees nothing else to do."
    print(
        head,
        *(f"  {path}: line {line}: {message}" for line, message in todo),
        sep="\n",
        file=sys.stderr,
    )
    return 0


def diff(old: bytes, new: bytes, path: Path) -> bytes:
    """A unified diff that `patch -p1` and `git apply` take; b"" where nothing changes."""
    name = os.fsencode(path.as_posix().lstrip("/"))
    lines = difflib.diff_bytes(
        difflib.unified_diff,
        old.splitlines(keepends=True),
        new.splitlines(keepends=True),
        b"a/" + name,
        b"b/" + name,
    )
    lines = (
        line if line.endswith(b"\n") else line + b"\n\\ No newline at end of file\n"
        for line in lines
    )
    return b"".join(lines)


def ported(source: bytes) -> tuple[bytes, list[tuple[int, str]]]:
    """The port of a file, in its encoding and with its line ends, and lines with what is left to a person.

    Raises:
        NotPython: it cannot be read as Python 3.
    """
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(source).readline)
        text = source.decode(encoding)
    except (SyntaxError, LookupError, UnicodeError) as error:
        raise NotPython(f"its text cannot be read: {error}") from None
    program = Program(text)
    v1, is_old = style(program)
    rename = Rename(program, v1, is_old)
    list_rest(program)
    rename.names()
    Forms(program, v1).apply()
    rename.imports()
    new = program.result()
    return (source if new == text else new.encode(encoding)), sorted(program.todo)


if __name__ == "__main__":
    command.run(main)
