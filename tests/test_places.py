"""The labs in the packages of Colab and of Kaggle: a first cell installs the course there, the solutions run.

tests/places has a list of packages for each place; an environment is made from it, as fresh as a learner's
session there. Its kernel loads Matplotlib, and Pillow with it, before the first cell, as theirs do. In `make
test` one lab runs in Colab's packages, in `make test-all` all labs do in both. Their TPU runtimes have no
TensorFlow, or none with Keras 2: there the dry run judges programs. To renew a list, give each of its
packages the version of the newest source that its head names.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
import test_labs
from nbclient import NotebookClient

ROOT = Path(__file__).parents[1]
# What a place sets in its kernels, and what is said of it.
VARIABLES = {"colab": "COLAB_RELEASE_TAG", "kaggle": "KAGGLE_KERNEL_RUN_TYPE"}
FIRST = "02_four_changes"  # whose kernel installs the course, and goes on without a restart
NO_NETWORK = re.compile("Failed to fetch|network was disabled|error sending request|dns error")
UV = [sys.executable, "-m", "uv"]


def uv(*arguments: str | Path) -> str:
    """What uv prints. Without a package index the test is skipped."""
    ran = subprocess.run([*UV, *arguments], cwd=ROOT, capture_output=True, text=True)
    if NO_NETWORK.search(ran.stderr):
        pytest.skip(f"no package index is reached: {ran.stderr.strip().splitlines()[-1]}")
    assert ran.returncode == 0, ran.stderr[-3000:]
    return ran.stdout


def interpreter(version: str) -> str:
    """A Python of that version, on the PATH or of pyenv, whose own names on the PATH may lead nowhere."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    installed = sorted(map(str, pyenv.glob(f"versions/{version}.*/bin/python{version}")))
    for path in filter(None, [shutil.which(f"python{version}"), *installed]):
        if subprocess.run([path, "--version"], capture_output=True).returncode == 0:
            return path
    pytest.skip(f"no Python {version} here")


def packages(folder: Path) -> dict[str, str]:
    """The versions of the packages in the environment of a place."""
    listed = json.loads(uv("pip", "list", "--format=json", "--python", folder / "venv/bin/python"))
    return {each["name"]: each["version"] for each in listed}


def found(place: str, folder: Path) -> Path:
    """Makes the place as it is found, with the wheel of the course beside it; returns its Python."""
    packages_of = ROOT / "tests/places" / f"{place}.txt"
    (version,) = re.findall(r"^# Python (3\.\d+)\.", packages_of.read_text(), re.M)
    uv("venv", "--quiet", "--seed", "--python", interpreter(version), folder / "venv")
    python = folder / "venv/bin/python"
    uv("pip", "install", "--quiet", "--no-deps", "--python", python, "-r", packages_of)
    (folder / "before.json").write_text(json.dumps(packages(folder)))
    uv("build", "--quiet", "--wheel", "--out-dir", folder / "content", ROOT)
    return python


def fill(place: str, folder: Path) -> None:
    """Makes the place: its packages, its kernel, the solutions and the wheel; then runs FIRST there."""
    python = found(place, folder)
    for path in test_labs.SOLUTIONS:
        shutil.copy(path, folder / "content")
    kernel = folder / "jupyter/kernels/place/kernel.json"
    kernel.parent.mkdir(parents=True)
    start = ["-m", "ipykernel_launcher", "--matplotlib=inline", "-f", "{connection_file}"]
    variables = {"XDG_CACHE_HOME": folder / "cache", "XDG_STATE_HOME": folder / "state"}
    variables |= {test_labs.SILENCE: "1", VARIABLES[place]: "1"}
    spec = {"argv": [str(python), *start], "display_name": place, "language": "python"}
    spec["env"] = {name: str(value) for name, value in variables.items()}
    kernel.write_text(json.dumps(spec))
    execute(folder, FIRST)


def execute(folder: Path, lab: str) -> None:
    """Runs a solution in the place's kernel; a cell that fails raises CellExecutionError."""
    notebook = nbformat.read(folder / "content" / f"{lab}.ipynb", as_version=4)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JUPYTER_PATH", str(folder / "jupyter"))
        where = {"metadata": {"path": folder / "content"}}
        NotebookClient(notebook, timeout=900, kernel_name="place", resources=where).execute()
    nbformat.write(notebook, folder / f"{lab}.ipynb")


@pytest.fixture
def folder(place, once) -> Path:
    return once(f"place {place}", lambda folder: fill(place, folder))


def cells_named(notebook: Path) -> set[str]:
    """The cells that its outputs name as places of findings: "cell In [7]".

    Which lines cost most is another matter: each compiler has its own ten.
    """
    outputs = json.dumps([cell.outputs for cell in test_labs.code_cells(notebook)])
    findings = re.sub(r'<table class=\\"lines\\">.*?</table>', "", outputs)
    return set(re.findall(r"cell In \[\d+\]", findings))


HERE = [pytest.param("colab"), pytest.param("kaggle", marks=pytest.mark.slow)]
LABS = [
    pytest.param(path.stem, marks=[] if path.stem == FIRST else pytest.mark.slow)
    for path in test_labs.SOLUTIONS
]


@pytest.mark.parametrize("place", HERE)
def test_the_first_cell_leaves_the_places_packages_as_they_are(folder):
    """What a kernel has loaded cannot be replaced without a restart."""
    before, after = json.loads((folder / "before.json").read_text()), packages(folder)
    assert before == {name: after.get(name) for name in before}
    assert {"tpu-porting-labs", "apache-beam", "libtpu"} <= after.keys() - before.keys()


@pytest.mark.parametrize("lab", LABS)
@pytest.mark.parametrize("place", HERE)
def test_a_solution_runs_and_names_the_same_cells(lab, place, folder):
    executed = folder / f"{lab}.ipynb"
    if not executed.exists():
        execute(folder, lab)
    cells = test_labs.code_cells(executed)
    said = "".join(output.get("text", "") for output in cells[0].outputs)
    assert re.search(rf"^Ready: Python 3.*, on {place}\.$", said, re.M | re.I), said
    wanted = dict.fromkeys(test_labs.ids(int(lab[:2])), "correct")
    assert test_labs.outcomes(cells) == wanted
    assert cells_named(executed) == cells_named(ROOT / "solutions" / executed.name)


# The model of lab 10 as a program, from the solution's own cell, and a batch split by hand as in lab 11.
LAB_10 = """
import os
os.environ["KERAS_BACKEND"] = "jax"
import keras
import numpy as np
from keras import layers

NETWORK

keras.distribution.set_distribution(keras.distribution.DataParallel())
model = network(64, 5)
loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
model.compile(keras.optimizers.SGD(0.01, momentum=0.9), loss)
draw = np.random.default_rng(0)
pictures = draw.integers(0, 256, (256, 64, 64, 3), dtype=np.uint8)
model.fit(pictures, draw.integers(0, 5, 256), batch_size=64, epochs=2)
"""


@pytest.mark.slow
@pytest.mark.parametrize("place", ["colab_tpu", "kaggle_tpu"])
def test_programs_of_today_are_judged_in_a_tpu_runtime(place, tmp_path):
    """By the commands of places.md, which change none of its packages."""
    python = found(place, tmp_path)
    (wheel,) = (tmp_path / "content").glob("*.whl")
    uv("pip", "install", "--quiet", "--no-deps", "--python", python, wheel, "flatbuffers")
    before, after = json.loads((tmp_path / "before.json").read_text()), packages(tmp_path)
    assert before == {name: after.get(name) for name in before}
    assert "tf-keras" not in after and ("tensorflow-cpu" in after) == (place == "kaggle_tpu")
    cells = test_labs.code_cells(ROOT / "solutions/10_todays_api.ipynb")
    network = next(cell.source for cell in cells if "def network(" in cell.source)
    keras = tmp_path / "flowers.py"
    keras.write_text(LAB_10.replace("NETWORK", network))
    environment = os.environ | {"XDG_CACHE_HOME": str(tmp_path / "cache")}
    verify = [python, "-m", "lab_utils.runtime", "--verify", "--batch", "8", "--image_size", "32"]
    ran = subprocess.run(verify, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert "least time of the step, v5e: " in ran.stdout, ran.stdout + ran.stderr
    for program, stages in (
        (keras, {"read", "compile", "run", "feed"}),
        (ROOT / "tests/jax_mains/named_sharding.py", {"read", "compile", "run"}),
    ):
        command = [python, "-m", "lab_utils.dry_run", "--main", program, "--json", "report.json"]
        ran = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
        assert ran.returncode == 0, ran.stdout + ran.stderr
        report = json.loads((tmp_path / "report.json").read_text())
        assert report["verdict"] == "ready" and report["devices"] == 8
        done = {each["stage"] for each in report["stages"] if each["status"] == "done"}
        assert done == stages, ran.stdout
        assert "TensorFlow" not in report["versions"]


def test_lab_of_make_test_names_cells():
    """What broke under Colab's IPython: the places of findings."""
    assert cells_named(ROOT / "solutions" / f"{FIRST}.ipynb")
