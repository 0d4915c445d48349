"""nbgrader for real, in an environment of its own: release, grading and feedback of the made-up class."""

import csv
import json
import os
import shutil
import site
import subprocess
import sys
from pathlib import Path

import made_up_class
import pytest

ROOT = Path(__file__).parents[1]
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def nbgrader(tmp_path_factory):
    """A command that runs nbgrader in a course's folder, with this environment's packages beside its own."""
    folder = tmp_path_factory.mktemp("nbgrader")
    python = folder / "venv" / "bin" / "python"
    uv = Path(sys.executable).with_name("uv")
    subprocess.run([uv, "venv", "-q", "--python", sys.executable, folder / "venv"], check=True)
    added = subprocess.run(
        [uv, "pip", "install", "-q", "--python", python, "nbgrader==0.9.6"],
        capture_output=True,
        text=True,
    )
    if added.returncode:
        pytest.skip(f"nbgrader cannot be installed here: {added.stderr.strip()[-200:]}")
    (own,) = (folder / "venv").glob("lib/python*/site-packages")
    (own / "course.pth").write_text("\n".join([str(ROOT), *site.getsitepackages()]))
    course = folder / "course"
    (course / "source" / "02").mkdir(parents=True)
    shutil.copy(ROOT / "solutions/instructor/nbgrader_config.py", course)
    shutil.copy(ROOT / "labs" / made_up_class.NAME, course / "source" / "02")

    def run(*arguments):
        names = ("HOME", "XDG_STATE_HOME", "IPYTHONDIR", "JUPYTER_CONFIG_DIR")
        home = dict.fromkeys(names, str(folder))
        home["PATH"] = f"{python.parent}{os.pathsep}{os.environ['PATH']}"  # nbgrader calls alembic
        ran = subprocess.run(
            [python, "-m", "nbgrader", *arguments],
            cwd=course,
            env=os.environ | home,
            capture_output=True,
            text=True,
        )
        assert ran.returncode == 0, ran.stderr[-3000:]
        assert "WARNING" not in ran.stderr and "ERROR" not in ran.stderr, ran.stderr[-3000:]
        return course

    return run


def sources(path):
    return ["".join(cell["source"]) for cell in json.loads(path.read_text())["cells"]]


def test_release_grades_and_feedback(nbgrader):
    """The points are those that `python -m lab_utils.grade` gives (tests/test_grade.py)."""
    course = nbgrader("generate_assignment", "02")
    released = course / "release" / "02" / made_up_class.NAME
    assert sources(released) == sources(ROOT / "labs" / made_up_class.NAME)
    learners = {name: made_up_class.learners()[name] for name in ("right", "wrong", "cheating")}
    for name, (made, _) in learners.items():
        folder = course / "submitted" / name / "02"
        folder.mkdir(parents=True)
        grades = {cell["id"]: cell for cell in json.loads(released.read_text())["cells"]}
        for cell in made["cells"]:  # handed out by nbgrader, so with its metadata
            if cell.get("id") in grades:
                cell["metadata"] = grades[cell["id"]]["metadata"]
        (folder / made_up_class.NAME).write_text(json.dumps(made))
    nbgrader("autograde", "02", "--Grade.step_seconds=90", "--Grade.total_seconds=400")
    nbgrader("export", "--to", "grades.csv")
    with (course / "grades.csv").open() as file:
        scores = {row["student_id"]: float(row["score"]) for row in csv.DictReader(file)}
    assert scores == {name: wanted.count("1") for name, (_, wanted) in learners.items()}
    nbgrader("generate_feedback", "02")
    page = (course / "feedback" / "wrong" / "02" / made_up_class.NAME).with_suffix(".html")
    feedback = page.read_text()
    assert "TODO 2a: incorrect" in feedback and "Traceback (most" not in feedback
    assert not list(course.parent.rglob("progress.json")), "nobody's progress is written"
