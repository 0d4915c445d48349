"""What a solution's outputs depend on, as one digest: it is run again when that has changed.

`STORE_DIGESTS=1 python -m pytest tests/test_labs.py -k "gives_the_outputs"` stores those that pass.
"""

import ast
import hashlib
import json
from pathlib import Path

import nbformat

from lab_utils.common import files

ROOT = Path(__file__).parents[1]
STORED = Path(__file__).with_suffix(".json")


def digest(solution: Path) -> str:
    """Of its cells, of what they and the lab's checks import of this package, the clinic, and the lock."""
    notebook = nbformat.read(solution, as_version=4)
    cells = [cell.source for cell in notebook.cells if cell.cell_type == "code"]
    checks = {"lab_utils.check", f"lab_utils.check.labs.lab_{solution.name[:2]}"}
    paths = _closure(checks.union(*map(_imported, cells)))
    paths |= set((ROOT / "datasets/clinic").glob("*.py"))
    summed = hashlib.sha256("\0".join(cells).encode())
    for path in (*sorted(paths), ROOT / "requirements.lock"):
        summed.update(path.read_bytes())
    return summed.hexdigest()[:16]


def _closure(modules: set[str]) -> set[Path]:
    """The files of these modules, and of all of this package that they import, also inside functions."""
    paths: set[Path] = set()
    waiting = sorted(modules)
    while waiting:
        place = ROOT.joinpath(*waiting.pop().split("."))
        for path in (place.with_suffix(".py"), place / "__init__.py"):
            if place.is_relative_to(ROOT / "lab_utils") and path.is_file() and path not in paths:
                paths.add(path)
                waiting += _imported(path.read_text(encoding="utf-8"))
    return paths


def _imported(code: str) -> set[str]:
    """The modules that code names; a cell with IPython's own commands names none."""
    try:
        nodes = list(ast.walk(ast.parse(code)))
    except SyntaxError:
        return set()
    found = {a.name for node in nodes if isinstance(node, ast.Import) for a in node.names}
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return found


def is_stored(solution: Path) -> bool:
    """Whether it passed with the same digest."""
    return _stored().get(solution.stem) == digest(solution)


def store(solution: Path) -> None:
    """Notes that it passed."""
    with files.locked(STORED.with_suffix(".lock"), wait=60):
        files.write(STORED, json.dumps(_stored() | {solution.stem: digest(solution)}, indent=1))


def _stored() -> dict[str, str]:
    return json.loads(STORED.read_text()) if STORED.exists() else {}
