"""A handout without solutions: its wheel has none, and what needs them says so."""

import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from lab_utils.check import sources, todos
from lab_utils.teach import without_solutions

ROOT = Path(__file__).parents[1]
NOTEBOOK = "lab_utils/check/notebooks/01_x.ipynb"
KEPT = "lab_utils/check/__init__.py"


def test_a_wheel_loses_the_solutions_and_their_rows(tmp_path):
    wheel, checks = tmp_path / "a_course-1-py3-none-any.whl", "lab_utils/check/labs/lab_02.py"
    record = f"{KEPT},sha256=x,1\n{NOTEBOOK},sha256=y,2\n{checks},sha256=z,3\na_course-1.dist-info/RECORD,,\n"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr(KEPT, "1")
        archive.writestr(NOTEBOOK, "{}")
        archive.writestr(checks, (ROOT / checks).read_text(encoding="utf-8"))
        archive.writestr("a_course-1.dist-info/RECORD", record)
    assert without_solutions.strip(wheel) == 2
    with zipfile.ZipFile(wheel) as archive:
        rows = archive.read("a_course-1.dist-info/RECORD").decode().splitlines()
        assert sorted(archive.namelist()) == sorted(row.split(",")[0] for row in rows)
        assert NOTEBOOK not in archive.namelist() and KEPT in archive.namelist()
        text = archive.read(checks).decode()
    ids = re.findall(r"^todo\('(2\w)'", text, re.M)
    assert ids == sources.ids(2) and todos.find("2d").hints[0] in text
    assert "never wrapped" not in text and todos.find("2d").why not in text
    with pytest.raises(ValueError, match="holds no solutions"):
        without_solutions.strip(wheel)
    assert list(tmp_path.iterdir()) == [wheel]


def test_where_no_solutions_are_a_check_says_that_it_comes_later(tmp_path):
    """In a process of its own: solutions once read are remembered."""
    code = """
from lab_utils.check import check, hint, sources, solution, working
sources._FOLDERS = ()
mine = lambda params: None
print(check("2a", mine), hint("2a"), solution("2a"), working(mine, "2a") is mine, sep="\\n")
from lab_utils.check import progress
print(progress.show([]))
print(check("0b", {"TPU101": "A", "TPU201": "B"}))
"""
    command = [sys.executable, "-c", code]
    ran = subprocess.run(
        command,
        env={"HOME": str(tmp_path), "PATH": "", "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 0, ran.stderr[-2000:]
    outcome, first_hint, ours, own, *said = ran.stdout.splitlines()
    assert outcome.startswith("TODO 2a: cannot be checked here") and "after you hand" in outcome
    assert first_hint.startswith("Hint 1 of 3") and "has no solutions" in ours and own == "True"
    assert "has no solutions" in said[0] and said[-2] == "1"
    assert said[-1].startswith("TODO 0b: cannot be checked here"), "the right letters are judged"


@pytest.mark.parametrize("folder", ["a-name", "datasets/an-owner/a-name"])
def test_the_line_for_kaggle_copies_the_wheel_wherever_it_is_mounted(folder, tmp_path):
    page = (ROOT / "labs/set_up.md").read_text(encoding="utf-8")
    (line,) = re.findall(r"^!(.*/kaggle/input.*)$", page, re.M)
    wheel = tmp_path / "input" / folder / "a_course-1-py3-none-any.whl"
    wheel.parent.mkdir(parents=True)
    wheel.write_text("")
    command = line.replace("/kaggle/input", str(tmp_path / "input"))
    subprocess.run(command, shell=True, cwd=tmp_path, check=True)
    assert (tmp_path / wheel.name).exists()
