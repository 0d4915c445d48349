"""A finding's file as a code host names it: from the repository's top, a notebook apart from its cell."""

import os
import re
from pathlib import Path, PurePath

_CELL = re.compile(r"(.+\.ipynb)\[(cell \d+)[^\]]*\]")


def file_and_cell(file: str) -> tuple[str, str]:
    """Path and cell: ("nb.ipynb", "cell 3"), ("", "cell In [5]") of a notebook at work, ("train.py", "").

    A workflow of GitHub's names the repository's top in GITHUB_WORKSPACE; elsewhere the path is as it was.
    """
    if file.startswith(("cell ", "a notebook cell")):
        return "", file
    named = _CELL.fullmatch(file)
    path, cell = named.groups() if named else (file, "")
    top = os.environ.get("GITHUB_WORKSPACE")
    if path and top and Path(path).absolute().is_relative_to(top):
        path = Path(path).absolute().relative_to(top).as_posix()
    return (PurePath(path).as_posix() if path else ""), cell
