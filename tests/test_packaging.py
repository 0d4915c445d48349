"""The wheel: what it brings, and that a notebook that is opened alone installs it and starts."""

import importlib.metadata
import json
import os
import re
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
LABS = sorted((ROOT / "labs").glob("*.ipynb"))
DATA = re.compile(r"datasets\.(bundled|play)\(\)")
NAME = "tpu-porting-labs"
KEPT = ("tensorflow-cpu", "numpy", "protobuf")
SMALL = "markdown"  # a dependency that the fresh environment lacks, for pip to fetch

# Runs the cells of a notebook up to the number given; prints the versions after it, and where lab_utils is.
DRIVER = """\
import importlib.metadata, importlib.util, json, os, sys
import nbformat
from nbclient import NotebookClient
path, cells, kept = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
notebook = nbformat.read(path, as_version=4)
del notebook.cells[cells:]
NotebookClient(notebook, timeout=900, resources={"metadata": {"path": os.path.dirname(path)}}).execute()
said = [o.get("text", "") for c in notebook.cells for o in c.get("outputs", []) if o.get("name") == "stdout"]
print(json.dumps([{name: importlib.metadata.version(name) for name in kept}, "".join(said)]))
"""


@pytest.fixture(scope="module")
def wheels(tmp_path_factory) -> Path:
    """A folder of wheels: the course's, and that of a small package which it needs."""
    folder = tmp_path_factory.mktemp("wheels")
    pip = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", str(folder)]
    version = importlib.metadata.version(SMALL)
    ran = subprocess.run([*pip, str(ROOT), f"{SMALL}=={version}"], capture_output=True, text=True)
    if ran.returncode:
        pytest.skip(f"needs a package index for hatchling and {SMALL}: {ran.stderr[-300:]}")
    return folder


@pytest.fixture
def fresh(tmp_path) -> Path:
    """The Python of a fresh environment that sees all packages of this one but the course and SMALL."""
    subprocess.run([sys.executable, "-m", "venv", str(tmp_path / "venv")], check=True)
    python = tmp_path / "venv" / "bin" / "python"
    seen = tmp_path / "seen"
    seen.mkdir()
    for entry in Path(sysconfig.get_path("purelib")).iterdir():
        other = re.match(rf"(_?tpu_porting_labs|__editable__|{SMALL}|pip\b)|.*\.pth$", entry.name)
        if not other:
            (seen / entry.name).symlink_to(entry)
    (packages,) = (tmp_path / "venv").glob("lib/python*/site-packages")
    (packages / "seen.pth").write_text(f"{seen}\n")
    return python


def environment(wheels: Path, home: Path, **more: str) -> dict[str, str]:
    """No index, one folder of wheels, a home of its own, and nothing of Colab, Kaggle or this checkout."""
    foreign = ("PIP_", "COLAB_", "KAGGLE_", "PYTHON", "JUPYTER", "VIRTUAL_ENV")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(foreign)}
    own = {"HOME": str(home), "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(wheels)}
    return kept | own | {"PIP_CONFIG_FILE": os.devnull} | more


def first_cells(
    python: Path, notebook: Path, cells: int, environ: dict[str, str]
) -> tuple[dict, str]:
    """Runs them; the versions of KEPT after it, and what the cells printed."""
    command = [python, "-c", DRIVER, notebook, str(cells), *KEPT]
    ran = subprocess.run(command, env=environ, cwd=notebook.parent, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr[-3000:]
    return tuple(json.loads(ran.stdout.splitlines()[-1]))


@pytest.mark.slow
def test_the_wheel_brings_the_data_and_not_what_draws_it(wheels):
    (wheel,) = wheels.glob("tpu_porting_labs-*.whl")
    names = set(zipfile.ZipFile(wheel).namelist())
    shipped = {name for name in names if name.startswith("lab_utils/datasets/files/")}
    tracked = subprocess.run(
        ["git", "ls-files", "datasets"], cwd=ROOT, capture_output=True, text=True
    )
    assert {
        f"lab_utils/datasets/files/{name.split('/', 1)[1]}" for name in tracked.stdout.split()
    } == shipped
    assert not [name for name in names if name.startswith("tests")]
    assert wheel.stat().st_size < 6_000_000
    package = {str(path.relative_to(ROOT)) for path in (ROOT / "lab_utils").rglob("*.[mjyc][dsa]*")}
    assert {name for name in package if "__pycache__" not in name} <= names


@pytest.mark.slow
def test_a_notebook_alone_installs_the_course_and_leaves_the_versions(fresh, wheels, tmp_path):
    lab = next(path for path in LABS if path.name.startswith("02"))
    alone = tmp_path / "alone" / lab.name
    alone.parent.mkdir()
    alone.write_bytes(lab.read_bytes())
    (wheel,) = wheels.glob("tpu_porting_labs-*")
    (alone.parent / wheel.name).write_bytes(wheel.read_bytes())
    before = {name: importlib.metadata.version(name) for name in KEPT}
    after, said = first_cells(
        fresh, alone, 5, environment(wheels, tmp_path, COLAB_RELEASE_TAG="release")
    )
    assert after == before
    assert re.search(r"^Ready: Python .*, TensorFlow .* on Colab\.$", said, re.M), said


@pytest.mark.slow
def test_what_make_handout_makes_starts_and_holds_no_solution(fresh, wheels, tmp_path):
    """Its wheel lies beside the notebooks; pip finds nothing of the course elsewhere."""
    ready = next(Path(sys.prefix).glob(".ready-*"), Path("none")).relative_to(ROOT)
    # The checkout's own path may hold a space, at which make splits.
    venv = os.path.relpath(sys.prefix, ROOT)
    command = ["make", "-o", ready, "handout", f"HANDOUT={tmp_path}/class", f"VENV={venv}"]
    subprocess.run([*command, "SOLUTIONS=none"], cwd=ROOT, check=True)
    (examination,) = (tmp_path / "class").glob("*.whl")
    with zipfile.ZipFile(examination) as archive:
        assert not [name for name in archive.namelist() if "check/notebooks/" in name]
    subprocess.run(command, cwd=ROOT, check=True)
    with zipfile.ZipFile(tmp_path / "class.zip") as archive:
        archive.extractall(tmp_path / "learner")
    (folder,) = (tmp_path / "learner").iterdir()
    names = {path.name for path in folder.iterdir()}
    (wheel,) = (name for name in names if name.endswith(".whl"))
    pages = {"START.md", "LICENSE", *(path.name for path in (ROOT / "labs").glob("*.md"))}
    assert names == {lab.name for lab in LABS} | {wheel} | pages
    assert wheel in (folder / "START.md").read_text()
    others = tmp_path / "others"
    others.mkdir()
    for path in wheels.glob(f"{SMALL}-*"):
        (others / path.name).write_bytes(path.read_bytes())
    _, said = first_cells(fresh, folder / LABS[2].name, 5, environment(others, tmp_path))
    assert "Ready: Python" in said


@pytest.mark.slow
def test_every_lab_finds_its_data_where_only_the_package_is_installed(fresh, wheels, tmp_path):
    pip = [fresh, "-m", "pip", "install", "-q", f"{NAME}[course]"]
    environ = environment(wheels, tmp_path)
    subprocess.run(pip, env=environ, cwd=tmp_path, check=True)
    read = set()
    for lab in LABS:
        cells = json.loads(lab.read_text())["cells"]
        data = [n for n, cell in enumerate(cells) if DATA.search("".join(cell["source"]))]
        if data:  # the others read none
            read.add(lab.name[:2])
            alone = tmp_path / "alone" / lab.name
            alone.parent.mkdir(exist_ok=True)
            alone.write_bytes(lab.read_bytes())
            first_cells(fresh, alone, data[0] + 1, environ)
    assert read == {"00", "05", "06", "07", "10", "11", "13", "14"}
