"""Labs and solutions as pairs: each lab runs untouched, each solution is right, wrong answers are told so."""

import ast
import importlib.util
import json
import os
import re
import subprocess
import sys
import types
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

from lab_utils.check import check, todos
from lab_utils.check.outcome import Status

ROOT = Path(__file__).parents[1]
SOLUTIONS = sorted((ROOT / "solutions").glob("*.ipynb"))
LABS = [ROOT / "labs" / path.name for path in SOLUTIONS]
NUMBERS = [int(path.name[:2]) for path in SOLUTIONS]
OUTCOME = re.compile(r"^TODO (\d+[a-z]): (" + "|".join(Status) + r")\.", re.M)


def by_name(path: Path) -> str:
    return path.stem


@pytest.fixture(autouse=True)
def no_progress(tmp_path, monkeypatch):
    """Each test starts as a learner without any progress, and leaves that of the person here alone."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))


def code_cells(path: Path) -> list[nbformat.NotebookNode]:
    notebook = nbformat.read(path, as_version=4)
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def outcomes(cells: list[nbformat.NotebookNode]) -> dict[str, str]:
    """What the checks in executed cells say, by TODO."""
    said = [
        output.data.get("text/plain", "")
        for cell in cells
        for output in cell.outputs
        if output.output_type == "execute_result"
    ]
    return dict(match.groups() for text in said if (match := OUTCOME.match(text)))


def ids(lab: int) -> list[str]:
    return [each.id for each in todos.of_lab(lab)]


@pytest.mark.parametrize("path", LABS, ids=by_name)
def test_an_untouched_lab_runs_and_every_todo_is_open(path):
    """To the last TODO; with WHOLE_LABS=1 (`make test-all`) to the end, as the solutions always run."""
    notebook = nbformat.read(path, as_version=4)
    if not os.environ.get("WHOLE_LABS"):
        checks = [n for n, cell in enumerate(notebook.cells) if cell.source.startswith("check(")]
        del notebook.cells[checks[-1] + 1 :]
    NotebookClient(notebook, timeout=600, resources={"metadata": {"path": path.parent}}).execute()
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert outcomes(cells) == dict.fromkeys(ids(int(path.name[:2])), "not attempted")


@pytest.mark.parametrize("path", SOLUTIONS, ids=by_name)
def test_a_solution_gives_the_outputs_that_it_shows(path):
    command = [sys.executable, "-m", "pytest", "--nbval", "--nbval-current-env", "-q", "-x"]
    ran = subprocess.run(
        [*command, "-p", "no:cacheprovider", str(path)], cwd=ROOT, capture_output=True, text=True
    )
    assert ran.returncode == 0, ran.stdout[-4000:]


@pytest.mark.parametrize("path", SOLUTIONS, ids=by_name)
def test_a_solution_shows_every_todo_correct_and_nothing_of_this_machine(path):
    cells = code_cells(path)
    assert outcomes(cells) == dict.fromkeys(ids(int(path.name[:2])), "correct")
    loud = [o.text for cell in cells for o in cell.outputs if o.get("name") == "stderr"]
    assert not loud
    assert not re.search(r"/(work|home|root|tmp|Users)/", json.dumps([c.outputs for c in cells]))


@pytest.mark.parametrize("path", LABS, ids=by_name)
def test_todos_agree_between_text_code_checks_and_hints(path):
    notebook = nbformat.read(path, as_version=4)
    code = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "code")
    text = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    registered = ids(int(path.name[:2]))
    for pattern, where in (
        (r"\*\*TODO (\d+[a-z])\b", text),
        (r"# TODO (\d+[a-z]): ", code),
        (r'^check\("(\d+[a-z])"', code),
        (r'^# hint\("(\d+[a-z])"\)', code),
    ):
        assert sorted(re.findall(pattern, where, re.M)) == registered, pattern
    assert re.search(r"^from lab_utils.check import .*\bhint\b", code, re.M), (
        "hint is commented out"
    )
    named = {
        id
        for call in re.findall(r"working\((.*)\)", code)
        for id in re.findall(r'"(\d\d?[a-z])"', call)
    }
    assert named <= set(registered)


@pytest.mark.parametrize("path", LABS, ids=by_name)
def test_lab_cells_are_python_without_outputs_or_solutions(path):
    for cell in code_cells(path):
        ast.parse(cell.source)
        assert not cell.outputs and cell.execution_count is None
        assert "SOLUTION" not in cell.source and "STARTER" not in cell.source


def wrong_answer(lab: int, mutant: todos.Mutant, path: Path) -> types.ModuleType:
    """The lab's solution with that mistake, as a module in a file of its own: AutoGraph reads sources."""
    source = Path(todos.reference(lab).__file__).read_text(encoding="utf-8")
    assert source.count(mutant.old) == 1, f"once in the solution: {mutant.old}"
    path.write_text(source.replace(mutant.old, mutant.new), encoding="utf-8")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("lab", NUMBERS)
def test_wrong_answers_are_told_what_is_wrong_with_them(lab, record_property, tmp_path):
    missed, tried = [], 0
    for todo in todos.of_lab(lab):
        assert len(todo.mutants) >= 3, f"TODO {todo.id} has fewer than three wrong answers"
        for mutant in todo.mutants:
            tried += 1
            answer = wrong_answer(lab, mutant, tmp_path / f"answer_{tried}.py")
            outcome = check(todo.id, *(getattr(answer, name) for name in todo.names))
            if outcome.status is not Status.INCORRECT or not re.search(mutant.says, outcome.why):
                missed.append(f"{mutant.new!r} should hear {mutant.says!r}, hears: {outcome}")
    right = f"{tried - len(missed)} of {tried}"
    record_property("score", f"lab {lab:02d}: {right} wrong answers told what is wrong with them")
    assert not missed, "\n".join(missed)
