"""Whether a submission has changed the grader: its code runs with the rights of the person who grades."""

import compileall
import hashlib
from pathlib import Path

from lab_utils.teach.grade.cells import LABS

_PACKAGE = Path(__file__).parents[2]
_SUFFIXES = {".py", ".pyc", ".json", ".ipynb"}
_READ = ("check", "teach", "dry_run", "equivalence", "flowers")  # what checks are made of


class Files:
    """The files that checks are made of, as they were when grading began."""

    def __init__(self) -> None:
        for name in _READ:  # so that no process has a reason to write compiled files from here on
            compileall.compile_dir(_PACKAGE / name, quiet=2)
        self._before = _digests()

    def changed(self) -> list[str]:
        """Files that were changed or taken away since."""
        now = _digests()
        names = (path for path, digest in self._before.items() if now.get(path) != digest)
        return sorted(str(path.relative_to(_PACKAGE.parent)) for path in names)


def _digests() -> dict[Path, bytes]:
    folders = [*(_PACKAGE / name for name in _READ), LABS]
    return {
        path: hashlib.blake2b(path.read_bytes()).digest()
        for folder in folders
        for path in folder.rglob("*")
        if path.suffix in _SUFFIXES and path.is_file()
    }
