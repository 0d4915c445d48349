"""The rooms of the package and the arrows between them: who may import whom.

An import inside a function counts as one at the top; one under TYPE_CHECKING counts too. The rooms stand in
floors: a room imports from floors below its own, and never from one beside it or above.
"""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "lab_utils"

# From the ground up. A module of dry_run without a folder is a room of its own.
FLOORS = (
    ("chips", "enums", "interrupts", "look", "proxies", "synthetic_flowers"),
    ("figures",),
    ("names",),
    ("command",),
    ("runtime",),
    ("estimator",),
    ("files", "leases"),
    ("scratch",),
    ("source", "plots", "drawings", "sliders", "profiles", "datasets", "convert"),
    ("contrib",),
    # dry_run: the ground of its own
    (
        "dry_run.private",
        "dry_run.records",
        "dry_run.ops",
        "dry_run.cache",
        "dry_run.elsewhere",
        "dry_run.doubts",
    ),
    (
        "dry_run.evidence",
        "dry_run.rules",
        "dry_run.program",
        "dry_run.traced",
        "dry_run.graphs",
        "dry_run.rehearsal",
    ),
    ("dry_run.unchanged", "dry_run.fingerprint", "dry_run.workload", "dry_run.report"),
    ("dry_run.lower",),
    ("dry_run.session",),
    ("dry_run.trace",),
    ("dry_run.compile", "dry_run.run", "dry_run.feed", "dry_run.read"),
    ("dry_run.frontends", "dry_run.stages"),
    ("dry_run.api",),
    ("dry_run", "dry_run.target", "dry_run.arguments"),
    ("dry_run.__main__",),
    ("equivalence", "doctor"),
    ("flowers", "port", "clinic"),
    ("verify",),
    ("check",),
    ("author",),
    ("grade",),
    ("build", "__main__"),
)
FLOOR = {room: number for number, rooms in enumerate(FLOORS) for room in rooms}


def modules() -> dict[str, Path]:
    """Full name -> file of every module of the package."""
    names = {}
    for path in PACKAGE.rglob("*.py"):
        parts = path.relative_to(ROOT).with_suffix("").parts
        names[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return names


MODULES = modules()


def room(module: str) -> str:
    """The room of a module: its folder or its own name below lab_utils; within dry_run, one deeper."""
    parts = module.split(".")[1:]
    return ".".join(parts[:2] if parts and parts[0] == "dry_run" else parts[:1])


def imported(path: Path) -> set[str]:
    """The modules of the package that a file imports."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            full = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= {name if name in MODULES else node.module for name in full}
    return {name for name in found if name in MODULES and name != "lab_utils"}


ARROWS = {module: imported(path) - {module} for module, path in MODULES.items()}


def test_every_room_stands_on_a_floor():
    rooms = {room(module) for module in MODULES} - {""}
    assert rooms == FLOOR.keys()


@pytest.mark.parametrize("module", sorted(set(MODULES) - {"lab_utils"}))
def test_no_arrow_back(module):
    own = room(module)
    back = {
        target
        for target in ARROWS[module]
        if room(target) != own and FLOOR[room(target)] >= FLOOR[own]
    }
    # The package's own face names its types for editors, without importing them.
    assert not back, f"{module} imports {back}, of a floor that is not below its own"


def test_no_circle():
    left = {module: set(targets) for module, targets in ARROWS.items()}
    while leaves := {module for module, targets in left.items() if not targets & left.keys()}:
        for module in leaves:
            del left[module]
    assert not left, f"these import each other: {sorted(left)}"


def test_private_names_stay_in_their_package():
    """Private names of TensorFlow and JAX are reached through dry_run alone; _names by their own folder."""
    for module, targets in ARROWS.items():
        for target in targets:
            if target.startswith("lab_utils.dry_run.private"):
                assert module.startswith("lab_utils.dry_run"), f"{module} imports {target}"
    for module, path in MODULES.items():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("lab_utils"):
                names = [alias.name for alias in node.names if alias.name.startswith("_")]
                assert not names, f"{module} imports {names} from {node.module}"


def test_the_dry_run_knows_nothing_of_labs_and_flowers():
    above = ("check", "flowers", "equivalence", "verify", "author", "datasets", "convert")
    for module, targets in ARROWS.items():
        if module.startswith("lab_utils.dry_run"):
            assert not {room(target) for target in targets} & set(above), module


def test_the_set_up_cells_of_all_solutions_are_equal():
    import nbformat

    cells = {}
    for path in sorted((ROOT / "solutions").glob("*.ipynb")):
        notebook = nbformat.read(path, as_version=4)
        first = next(cell for cell in notebook.cells if cell.cell_type == "code")
        cells.setdefault(re.sub(r"setup\(.*?\)", "setup()", first.source), []).append(path.name)
    assert len(cells) == 1, [names for names in cells.values()]


@pytest.mark.parametrize("folder", ["benchmarks", "drivers"])
def test_scripts_that_no_test_runs_import_what_is_there(folder):
    lost = []
    for path in sorted((ROOT / "tests" / folder).glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("lab_utils"):
                source = MODULES.get(node.module)
                text = source.read_text(encoding="utf-8") if source else ""
                lost += [
                    f"{path.name}: {node.module}.{alias.name}"
                    for alias in node.names
                    if f"{node.module}.{alias.name}" not in MODULES
                    and not re.search(rf"\b{alias.name}\b", text)
                ]
    assert not lost, lost
