"""The rooms of the package and the arrows between them: who may import whom.

An import inside a function counts as one at the top; one under TYPE_CHECKING counts too. The rooms stand in
layers: a room imports from layers below its own, and never from one beside it or above.
"""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "lab_utils"

# From the ground up; the layers of dry_run stand below. The longest name that fits a module is its room.
LAYERS = (
    ("the ground", ("common",)),
    ("what cells show", ("notebook", "estimator")),
    ("the machine and the data", ("runtime", "datasets", "convert", "port.contrib")),
    ("the dry run", ("dry_run",)),
    ("the job, the port", ("equivalence", "flowers", "port", "runtime.doctor")),
    ("on a chip", ("runtime.verify",)),
    ("the checks", ("check",)),
    ("the teacher's, and commands", ("teach", "__main__", "runtime.__main__")),
)
LAYER = {room: number for number, (_, rooms) in enumerate(LAYERS) for room in rooms}

# "rules" is the catalogue, with the pages; "rules.*" are the functions beside it. What is handed over gives
# facts (frontends, facts), and rules are functions of facts: neither of the two sees the other.
DRY_RUN = (
    ("unavailable", "wording"),
    ("records", "ops", "cache", "elsewhere", "advice", "progress"),
    ("private", "remote"),
    ("rules", "program", "graphs"),
    ("workload", "report"),
    ("lower",),
    ("facts",),
    ("engine", "frontends"),
    ("rules.*", "session"),
    ("trace", "read", "compile", "run", "feed"),
    ("stages",),
    ("api", "choose"),
    ("", "target"),
    ("inspect", "isolation"),
    ("__main__",),
)
DRY_RUN_LAYER = {room: number for number, rooms in enumerate(DRY_RUN) for room in rooms}


def modules() -> dict[str, Path]:
    """Full name -> file of every module of the package."""
    names = {}
    for path in PACKAGE.rglob("*.py"):
        parts = path.relative_to(ROOT).with_suffix("").parts
        names[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return names


MODULES = modules()


def room(module: str) -> str:
    """The room of a module: the longest name of LAYERS that it begins with."""
    name = module.removeprefix("lab_utils.")
    name = {"build": "teach", "grade": "teach"}.get(
        name, name
    )  # a command that stands before its room
    fits = [each for each in LAYER if f"{name}.".startswith(f"{each}.")]
    return max(fits, key=len, default="")


def inner_room(module: str) -> str:
    """The room of a module of the dry run: its folder or its own name there; "" for the face."""
    first, *others = module.removeprefix("lab_utils.dry_run").removeprefix(".").split(".")
    return "rules.*" if first == "rules" and others else first


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


def test_every_room_stands_in_a_layer():
    assert {room(module) for module in MODULES} - {""} == LAYER.keys()
    within = {inner_room(module) for module in MODULES if room(module) == "dry_run"}
    assert within == DRY_RUN_LAYER.keys()


def test_the_listing_is_short():
    """At most fourteen entries at the top of the package."""
    entries = {path.name for path in PACKAGE.iterdir() if path.suffix == ".py" or path.is_dir()}
    entries -= {"__init__.py", "__main__.py", "__pycache__"}
    assert len(entries) <= 14


@pytest.mark.parametrize("module", sorted(set(MODULES) - {"lab_utils"}))
def test_no_arrow_back(module):
    """A room imports from layers below its own, and never from one beside it or above."""
    here = room(module)
    back = {
        target
        for target in ARROWS[module]
        if room(target) != here and LAYER[room(target)] >= LAYER[here]
    }
    if here == "dry_run":
        inner = inner_room(module)
        back |= {
            target
            for target in ARROWS[module]
            if room(target) == "dry_run"
            and inner_room(target) != inner
            and DRY_RUN_LAYER[inner_room(target)] >= DRY_RUN_LAYER[inner]
        }
    assert not back, f"{module} imports {back}, of a layer that is not below its own"


def test_facts_and_frontends_know_no_rule_and_no_stage():
    """They say what is; which rules apply follows from the facts that these need."""
    others = {"rules", "rules.*", "engine", "session", "stages", "trace", "read", "compile"}
    others |= {"run", "feed"}
    for module, targets in ARROWS.items():
        if module.startswith(("lab_utils.dry_run.frontends", "lab_utils.dry_run.facts")):
            seen = {
                name for name in targets if room(name) == "dry_run" and inner_room(name) in others
            }
            assert not seen, f"{module} imports {seen}"


def test_rules_stand_beside_their_pages_and_see_no_frontend():
    """So a rule can be asked of every program whose facts it needs."""
    for module, targets in ARROWS.items():
        if re.search(r"engine import .*\brule\b", MODULES[module].read_text("utf-8")):
            assert inner_room(module) == "rules.*", f"{module} has rules"
        if inner_room(module) == "rules.*":
            seen = {name for name in targets if inner_room(name) == "frontends"}
            assert not seen, f"{module} imports {seen}"


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


FACES = {f"lab_utils.dry_run{face}" for face in ("", ".inspect", ".cache", ".rules")}


def test_rooms_and_notebooks_look_at_the_dry_run_through_its_faces():
    for module, targets in ARROWS.items():
        if room(module) != "dry_run":
            inner = {name for name in targets if name.startswith("lab_utils.dry_run")} - FACES
            assert not inner, f"{module} imports {inner}"
    for path in [*(ROOT / "solutions").rglob("*.ipynb"), *(ROOT / "labs").glob("*.ipynb")]:
        used = set(re.findall(r"from (lab_utils\.dry_run[\w.]*) import", path.read_text("utf-8")))
        assert used <= {"lab_utils.dry_run", "lab_utils.dry_run.inspect"}, f"{path.name}: {used}"


def test_the_dry_run_knows_nothing_of_labs_and_flowers():
    above = ("check", "flowers", "equivalence", "runtime.verify", "teach", "datasets", "convert")
    for module, targets in ARROWS.items():
        if module.startswith("lab_utils.dry_run"):
            assert not {room(target) for target in targets} & set(above), module


def test_the_set_up_cells_of_all_solutions_are_equal_but_for_what_a_lab_needs():
    import nbformat

    cells = {}
    for path in sorted((ROOT / "solutions").glob("*.ipynb")):
        notebook = nbformat.read(path, as_version=4)
        first = next(cell for cell in notebook.cells if cell.cell_type == "code")
        cells.setdefault(re.sub(r"^ready\(.*\)$", "ready()", first.source, flags=re.M), []).append(
            path.name
        )
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
