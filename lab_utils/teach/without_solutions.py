"""Takes the solutions out of the course's wheel, for `make handout SOLUTIONS=none`.

python -m lab_utils.teach.without_solutions out/handout/*.whl

Learners then see what is asked, and their answers are checked after they have handed in. The checks go, too,
since they hold the right letters and the mistakes to expect; the hints stay. The dry run works as ever.
"""

import argparse
import base64
import hashlib
import os
import sys
import tempfile
import zipfile
from pathlib import Path

from lab_utils.check import sources, todos
from lab_utils.common import command, files

_CHECKS = "lab_utils/check/labs/"
_NOTEBOOKS = "lab_utils/check/notebooks/"  # the marked ones
# With them, the programs of the clinic without their faults, and the checks.
_GONE = (_NOTEBOOKS, "lab_utils/datasets/files/clinic/", _CHECKS)


def strip(wheel: Path) -> int:
    """Removes solutions and checks from a wheel, and their rows from its record; returns how many files went.

    Raises:
        ValueError: it has none.
        OSError, zipfile.BadZipFile: it cannot be read or written.
    """
    with zipfile.ZipFile(wheel) as archive:
        entries = {entry: archive.read(entry) for entry in archive.infolist()}
    if not any(entry.filename.startswith(_NOTEBOOKS) for entry in entries):
        raise ValueError(f"{wheel} holds no solutions")
    kept = {entry: data for entry, data in entries.items() if not entry.filename.startswith(_GONE)}
    added = _hints()
    number, name = tempfile.mkstemp(dir=wheel.parent, suffix=".part")
    with zipfile.ZipFile(os.fdopen(number, "wb"), "w") as archive:
        for path, text in added.items():
            archive.writestr(path, text, zipfile.ZIP_DEFLATED)
        for entry, data in kept.items():
            if entry.filename.endswith(".dist-info/RECORD"):
                rows = data.decode().splitlines(keepends=True)
                rows = [row for row in rows if not row.startswith(_GONE)]
                data = "".join([*map(_row, added, added.values()), *rows]).encode()
            archive.writestr(entry, data, zipfile.ZIP_DEFLATED)
    os.chmod(name, 0o644)
    os.replace(name, wheel)
    return len(entries) - len(kept)


def _hints() -> dict[str, str]:
    """A module for each lab, in the place of its checks: its TODOs with their hints, by path in the wheel."""
    modules = {f"{_CHECKS}__init__.py": '"""The TODOs of each lab, with their hints."""\n'}
    for lab in sources.paths():
        entries = (
            f"todo({entry.id!r}, {list(entry.hints)!r}, names={list(entry.names)!r})(print)\n"
            for entry in todos.of_lab(lab)
        )
        start = "from lab_utils.check.todos import todo\n\n"
        modules[f"{_CHECKS}lab_{lab:02d}.py"] = start + "".join(entries)
    return modules


def _row(path: str, text: str) -> str:
    """A file's row in the record of a wheel: its path, its digest and its size."""
    digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest())
    return f"{path},sha256={digest.decode().rstrip('=')},{len(text.encode())}\n"


def main() -> int:
    """Runs the command line; returns 1 where the wheel cannot be changed."""
    parser = argparse.ArgumentParser(
        prog="python -m lab_utils.teach.without_solutions", description=__doc__
    )
    parser.add_argument("wheel", type=files.path_argument)
    wheel = parser.parse_args().wheel
    try:
        print(f"{wheel}: {strip(wheel)} files of solutions taken out")
    except (OSError, ValueError, zipfile.BadZipFile) as error:
        print(f"without_solutions: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    command.run(main)
