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

import digests
import lanes
import nbformat
import pytest
import wrong_answers
from IPython.core.inputtransformer2 import TransformerManager
from nbclient import NotebookClient
from wrong_answers import Right, heard

from lab_utils.check import check, programs, sources, todos
from lab_utils.check.outcome import Status
from lab_utils.check.setup import SILENCE
from lab_utils.teach import minutes

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
    monkeypatch.setenv(SILENCE, "1")


def code_cells(path: Path) -> list[nbformat.NotebookNode]:
    notebook = nbformat.read(path, as_version=4)
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def outcomes(cells: list[nbformat.NotebookNode]) -> dict[str, str]:
    """What the checks in executed cells say, by TODO."""
    said = [
        output.data.get("text/plain", "")
        for cell in cells
        for output in cell.outputs
        if output.output_type in ("display_data", "execute_result")
    ]
    return dict(match.groups() for text in said if (match := OUTCOME.match(text)))


def ids(lab: int) -> list[str]:
    return [each.id for each in todos.of_lab(lab)]


# The others are run with `-m slow`, to keep `make test` short. Their solutions run each time, and what stands
# in a starter is compiled each time (below).
UNTOUCHED = [
    pytest.param(path, marks=[] if number == 2 else pytest.mark.slow, id=by_name(path))
    for path, number in zip(LABS, NUMBERS, strict=True)
]


@pytest.mark.parametrize("path", UNTOUCHED)
def test_an_untouched_lab_runs_and_every_todo_is_open(path):
    """To the last TODO; with WHOLE_LABS=1 (`make test-versions`) to the end, as the solutions always run."""
    notebook = nbformat.read(path, as_version=4)
    if not os.environ.get("WHOLE_LABS"):
        checks = [n for n, cell in enumerate(notebook.cells) if cell.source.startswith("check(")]
        del notebook.cells[checks[-1] + 1 :]
    NotebookClient(notebook, timeout=600, resources={"metadata": {"path": path.parent}}).execute()
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert outcomes(cells) == dict.fromkeys(ids(int(path.name[:2])), "not attempted")


SPINE = range(minutes.SPINE)  # whose solutions always run


@pytest.mark.parametrize("path", SOLUTIONS, ids=by_name)
def test_a_solution_gives_the_outputs_that_it_shows(path):
    """An elective's where something that it rests on has changed since it passed, and in rotation."""
    waits = int(path.name[:2]) not in SPINE and not lanes.turn(path.stem, lanes.rotation(), 4)
    if waits and digests.is_stored(path) and "STORE_DIGESTS" not in os.environ:
        pytest.skip("nothing that it rests on has changed since it passed (tests/digests.json)")
    command = [sys.executable, "-m", "pytest", "--nbval", "--nbval-current-env", "-q", "-x"]
    command += ["-p", "no:cacheprovider", path.name]  # pytest takes no path with brackets in it
    ran = subprocess.run(command, cwd=path.parent, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stdout[-4000:]
    if "STORE_DIGESTS" in os.environ:
        digests.store(path)


@pytest.mark.parametrize("path", SOLUTIONS, ids=by_name)
def test_a_solution_shows_every_todo_correct_and_nothing_of_this_machine(path):
    cells = code_cells(path)
    assert outcomes(cells) == dict.fromkeys(ids(int(path.name[:2])), "correct")
    loud = [o.text for cell in cells for o in cell.outputs if o.get("name") == "stderr"]
    assert not loud
    assert not [cell for cell in cells if re.search("### (BEGIN|END)|STARTER", cell.source)]
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
        assert sorted(set(re.findall(pattern, where, re.M))) == registered, pattern
    assert sources.ids(int(path.name[:2])) == registered
    assert re.search(r"^from lab_utils.check import .*\bhint\b", code, re.M), "of the comment"
    calls = " ".join(re.findall(r"working\((.*)\)", code))
    assert set(re.findall(r'"(\d\d?[a-z])"', calls)) <= set(registered)


@pytest.mark.parametrize("path", LABS, ids=by_name)
def test_lab_cells_are_python_without_outputs_or_solutions(path):
    for cell in code_cells(path):
        code = programs.as_python(cell.source)  # the program of a cell that writes it
        ast.parse(TransformerManager().transform_cell(code))
        assert not cell.outputs and cell.execution_count is None
        assert "SOLUTION" not in cell.source and "STARTER" not in cell.source


@pytest.mark.parametrize("path", LABS, ids=by_name)
def test_slips_fit_the_solution_and_no_hint_holds_it(path):
    """Only solution() shows it: a hint helps to write a line, and does not hold it."""
    for todo in todos.of_lab(int(path.name[:2])):
        code = sources.region(todo.id)
        assert code, f"nothing below `# TODO {todo.id}:` in the solution's module"
        for line in map(str.strip, code.splitlines()):
            assert len(line) < 30 or not any(line in hint for hint in todo.hints), todo.id
        for slip in todo.slips:
            ast.parse(sources.with_slip(todo.id, slip.old, slip.new))


def module_of(source: str, path: Path) -> types.ModuleType:
    """A learner's module, in a file of its own: AutoGraph reads sources."""
    path.write_text(source, encoding="utf-8")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


ON_JAX = (10,)  # labs whose Keras is on JAX: a process has one backend


def passes_on_jax(request) -> None:
    """Runs the same test in a process of its own, whose Keras is on JAX."""
    test = request.node.nodeid
    command = [sys.executable, "-m", "pytest", "-q", "-m", "slow or not slow", test]
    ran = subprocess.run(
        command,
        cwd=request.config.rootpath,
        env=os.environ | {"TESTS_ON_JAX": "1"},
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 0, ran.stdout[-6000:]


WRONG_ALWAYS = 1  # of a TODO's wrong answers, the first; `pytest -m slow` gives all of them


@pytest.mark.parametrize("path", SOLUTIONS, ids=by_name)
@pytest.mark.parametrize(
    "most", [WRONG_ALWAYS, pytest.param(None, marks=pytest.mark.slow)], ids=["some", "all"]
)
def test_answers_of_learners_are_accepted_or_told_what_is_wrong_with_them(
    path, most, request, record_property, tmp_path, monkeypatch
):
    """Every right answer, and of the wrong ones at most so many a TODO."""
    lab = int(path.name[:2])
    if lab in ON_JAX and "TESTS_ON_JAX" not in os.environ:
        passes_on_jax(request)
        return
    monkeypatch.chdir(tmp_path)  # a wrong answer may write where it runs
    assert wrong_answers.of_lab(lab).keys() <= set(ids(lab))
    missed, tried, heard_words = [], {True: 0, False: 0}, {}
    for todo in todos.of_lab(lab):
        answers = [*wrong_answers.of_todo(todo), *wrong_answers.forgotten(todo.id)]
        mistakes = [each for each in answers if type(each) is not Right]
        assert len(mistakes) >= 3, f"TODO {todo.id} has fewer than three wrong answers"
        rights = [each for each in answers if type(each) is Right]
        ours = [getattr(sources.solved(lab), name) for name in todo.names]
        if any(isinstance(value, types.FunctionType) for value in ours):
            rights.append(wrong_answers.as_object(todo.names))
        for answer in (*rights, *mistakes[:most]):
            right = type(answer) is Right
            tried[right] += 1
            name = f"answer_{lab}_{sum(tried.values())}"
            module = module_of(answer.source(todo.id), tmp_path / f"{name}.py")
            outcome = check(todo.id, *(getattr(module, name) for name in todo.names))
            if not right:
                heard_words[wrong_answers.key(todo.id, answer)] = outcome.why
            expected = Status.CORRECT if right else Status.INCORRECT
            if outcome.status is not expected or not (right or heard(answer.says, outcome.why)):
                missed.append((right, f"{answer}\nhears: {outcome}"))
    if "STORE_MESSAGES" in os.environ and most is None:
        wrong_answers.store(lab, heard_words)
    score = ", ".join(
        f"{tried[right] - sum(was is right for was, _ in missed)} of {tried[right]} {words}"
        for right, words in ((True, "right answers accepted"), (False, "wrong ones told why"))
    )
    record_property("score", f"lab {lab:02d}: {score}")
    assert not missed, "\n\n".join(message for _, message in missed)
