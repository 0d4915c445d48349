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
from made_up_class import NAME, ROOT


@pytest.fixture
def nbgrader(tmp_path):
    """A command that runs nbgrader in tmp_path/course, with this environment's packages beside its own."""
    venv, course = tmp_path / "venv", tmp_path / "course"
    uv = Path(sys.executable).with_name("uv")
    subprocess.run([uv, "venv", "-q", "--python", sys.executable, venv], check=True)
    install = [uv, "pip", "install", "-q", "--python", venv / "bin/python", "nbgrader==0.9.6"]
    if (installed := subprocess.run(install, capture_output=True, text=True)).returncode:
        pytest.skip(f"nbgrader cannot be installed here: {installed.stderr.strip()[-200:]}")
    (packages,) = venv.glob("lib/python*/site-packages")
    (packages / "course.pth").write_text("\n".join([str(ROOT), *site.getsitepackages()]))
    (course / "source" / "02").mkdir(parents=True)
    shutil.copy(ROOT / "solutions/instructor/nbgrader_config.py", course)
    shutil.copy(ROOT / "labs" / NAME, course / "source" / "02")
    names = ("HOME", "XDG_STATE_HOME", "IPYTHONDIR", "JUPYTER_CONFIG_DIR")
    path = f"{venv / 'bin'}{os.pathsep}{os.environ['PATH']}"  # nbgrader calls alembic
    environment = os.environ | dict.fromkeys(names, str(tmp_path)) | {"PATH": path}

    def run(*arguments):
        command = [venv / "bin/python", "-m", "nbgrader", *arguments]
        ran = subprocess.run(command, cwd=course, env=environment, capture_output=True, text=True)
        assert ran.returncode == 0, ran.stderr[-3000:]
        assert "WARNING" not in ran.stderr and "ERROR" not in ran.stderr, ran.stderr[-3000:]

    return run


def cells(path):
    return json.loads(path.read_text())["cells"]


@pytest.mark.slow
def test_release_grades_and_feedback(nbgrader, tmp_path):
    """The points are those that `python -m lab_utils.grade` gives (tests/test_grade.py)."""
    course = tmp_path / "course"
    nbgrader("generate_assignment", "02")
    released = {cell["id"]: cell for cell in cells(course / "release" / "02" / NAME)}
    for cell in cells(ROOT / "labs" / NAME):
        assert "".join(cell["source"]) == "".join(released[cell["id"]]["source"])
    learners = {name: made_up_class.learners()[name] for name in ("right", "wrong", "cheating")}
    for name, (made, _) in learners.items():
        for cell in made["cells"]:  # handed out by nbgrader, so with its metadata
            if cell["id"] in released:
                cell["metadata"] = released[cell["id"]]["metadata"]
        folder = course / "submitted" / name / "02"
        folder.mkdir(parents=True)
        (folder / NAME).write_text(json.dumps(made))
    nbgrader("autograde", "02", "--Grade.step_seconds=90", "--Grade.total_seconds=3000")
    nbgrader("export", "--to", "grades.csv")
    with (course / "grades.csv").open() as file:
        scores = {row["student_id"]: float(row["score"]) for row in csv.DictReader(file)}
    assert scores == {name: wanted.count("1") for name, (_, wanted) in learners.items()}
    nbgrader("generate_feedback", "02")
    feedback = (course / "feedback/wrong/02" / NAME).with_suffix(".html").read_text()
    todo, _ = made_up_class.wrong_answer()
    assert f"TODO {todo}: incorrect" in feedback and "Traceback (most" not in feedback
    assert not list(tmp_path.rglob("progress.json")), "nobody's progress is written"
