"""Takes the solutions out of the course's wheel, for `make handout SOLUTIONS=none`.

python -m lab_utils.teach.without_solutions out/handout/*.whl

Learners then see what is asked, and their answers are checked after they have handed in: a check compares
with the solution, which this copy has not. Hints and the dry run work as ever.
"""

import argparse
import os
import sys
import tempfile
import zipfile
from pathlib import Path

from lab_utils.common import command, files

# The marked notebooks; the programs of the clinic without their faults.
_SOLUTIONS = ("lab_utils/check/notebooks/", "lab_utils/datasets/files/clinic/")


def strip(wheel: Path) -> int:
    """Removes the solutions from a wheel, and their rows from its record; returns how many files went.

    Raises:
        ValueError: it has none.
        OSError, zipfile.BadZipFile: it cannot be read or written.
    """
    gone = 0
    number, name = tempfile.mkstemp(dir=wheel.parent, suffix=".part")
    with zipfile.ZipFile(wheel) as before, zipfile.ZipFile(os.fdopen(number, "wb"), "w") as after:
        for entry in before.infolist():
            if entry.filename.startswith(_SOLUTIONS):
                gone += 1
                continue
            data = before.read(entry)
            if entry.filename.endswith(".dist-info/RECORD"):
                rows = data.decode().splitlines(keepends=True)
                data = "".join(r for r in rows if not r.startswith(_SOLUTIONS)).encode()
            after.writestr(entry, data, zipfile.ZIP_DEFLATED)
    if not gone:
        os.unlink(name)
        raise ValueError(f"{wheel} holds no solutions")
    os.chmod(name, 0o644)
    os.replace(name, wheel)
    return gone


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
