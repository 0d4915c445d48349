"""What a solution's outputs depend on, as one digest: an elective's is run again when that has changed.

`STORE_DIGESTS=1 python -m pytest tests/test_labs.py -k "gives_the_outputs"` stores those that pass.
"""

import ast
import hashlib
import json
from pathlib import Path

import nbformat

from lab_utils.common import files
from lab_utils.dry_run import cache

ROOT = Path(__file__).parents[1]
STORED = Path(__file__).with_suffix(".json")


def digest(solution: Path) -> str:
    """Of its cells, of what they and the lab's checks import of this package, and of the lock."""
    notebook = nbformat.read(solution, as_version=4)
    cells = [cell.source for cell in notebook.cells if cell.cell_type == "code"]
    modules = {"lab_utils.check"}
    for cell in cells:
        modules |= _imported(cell)
    paths = cache.imported(*modules)
    paths |= set((ROOT / "lab_utils/check/labs").rglob(f"lab_{solution.name[:2]}*/*.py"))
    paths |= set((ROOT / "lab_utils/check/labs").glob(f"lab_{solution.name[:2]}*.py"))
    summed = hashlib.sha256("\0".join(cells).encode())
    for path in (*sorted(paths), ROOT / "requirements.lock"):
        summed.update(path.read_bytes())
    return summed.hexdigest()[:16]


def _imported(cell: str) -> set[str]:
    """The modules that a cell names; a cell with IPython's own commands names none."""
    try:
        nodes = list(ast.walk(ast.parse(cell)))
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
