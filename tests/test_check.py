"""What a check, a hint and a prediction say, and what of it the progress file holds."""

import json
import math
import re
import subprocess
import sys
import types
from pathlib import Path

import nbformat
import numpy as np
import pytest
from nbclient import NotebookClient

from lab_utils.check import (
    check,
    compare,
    hint,
    predict,
    progress,
    ready,
    runner,
    setup,
    solution,
    sources,
    todos,
    working,
)
from lab_utils.check.outcome import CallError, CannotCheck, Status, Wrong
from lab_utils.check.same import difference

# A check's function, in a file of the package as those of the labs are.
CHECK = """
def double(twice) -> str:
    if twice is None:
        raise CannotCheck("this machine has no such thing")
    if twice(3) != 6:
        raise Wrong(f"Twice 3 is 6; yours is {twice(3)}.")
    return "Doubled."
"""
NAMES = {"CannotCheck": CannotCheck, "Wrong": Wrong}
exec(compile(CHECK, str(Path(runner.__file__).with_name("lab_99.py")), "exec"), NAMES)


@pytest.fixture(autouse=True)
def lab(tmp_path, monkeypatch):
    """A lab 99 of two TODOs, and a learner without any progress."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.delenv("NBGRADER_EXECUTION", raising=False)
    monkeypatch.setattr(progress, "_memory", None)
    monkeypatch.setattr(progress, "_opened", None)
    monkeypatch.setattr(runner, "right_objects", {})
    monkeypatch.setattr(runner, "hint_counts", {})
    hints, names = ("First.", "Second."), ["twice"]
    entries = [todos.Todo(id, NAMES["double"], hints, names) for id in ("99a", "99b")]
    monkeypatch.setattr(todos, "of_lab", lambda number: entries)
    return entries


def raising(error):
    """A learner's function that raises `error`."""

    def twice(x):
        raise error

    return twice


@pytest.mark.parametrize(
    "attempt, status, words",
    [
        (lambda x: 2 * x, "correct", "Doubled."),
        (lambda x: x, "incorrect", "Twice 3 is 6; yours is 3."),
        (None, "cannot be checked here", "no such thing"),
        (..., "not attempted", "dots"),
        (raising(NotImplementedError("TODO 99a: double it")), "not attempted", "Replace"),
        (raising(NotImplementedError()), "not attempted", "Replace"),  # nbgrader's own starter
        (
            raising(NotImplementedError("TODO 99b: else")),
            "not attempted",
            "This TODO uses TODO 99b",
        ),
        (raising(NotImplementedError("of this kind of x")), "incorrect", "of this kind of x"),
        ("not a function", "incorrect", "could not use your answer"),
        (lambda x: x["no such key"], "incorrect", 'x["no such key"]'),
        (raising(SystemExit()), "incorrect", "ends the process"),
    ],
)
def test_each_outcome(attempt, status, words):
    outcome = check("99a", attempt)
    assert outcome.status == status and words in outcome.why
    assert "lab_utils" not in outcome.why


STACK = "".join(f'\n  File "/a/long/path/module_{n}.py", line {n}, in run' for n in range(40))
OF_A_SESSION = (
    f"Graph execution error:\n\nDetected at node 'add' defined at (most recent call last):{STACK}\n"
    "Node: 'add'\nIncompatible shapes: [2] vs. [3]\n\t [[{{node add}}]]\n\n"
    f"Original stack trace for 'add':{STACK}\n"
)


@pytest.mark.parametrize(
    "message, reason",
    [
        ("in user code:\n\n  File a.py, line 1\n\n  ValueError: two of a kind\n", "two of a kind"),
        ("{{function_node __wrapped__Mul_device_/CPU:0}} Bad shapes [Op:Mul]", "Bad shapes"),
        (OF_A_SESSION, re.escape("Incompatible shapes: [2] vs. [3]")),
        ("It began" + " and went on" * 100 + " until 2 was 3", "It began.{20,200} ... .*2 was 3"),
    ],
)
def test_the_reason_is_told_without_the_stacks_of_tensorflow(message, reason):
    why = check("99a", raising(ValueError(message))).why
    assert re.search(f"raised ValueError: {reason}\n", why) and len(why) < 700


def test_an_outcome_shows_itself_as_text_and_html():
    outcome = check("99a", lambda x: "<b>")
    assert str(outcome) == "TODO 99a: incorrect. Twice 3 is 6; yours is <b>."
    assert "&lt;b&gt;" in outcome._repr_html_() and "0 of 2" in outcome._repr_html_()
    assert "yours is <code>[1]</code>." in check("99a", lambda x: "`[1]`")._repr_html_()


def test_working_takes_the_learners_object_only_where_all_that_it_needs_is_right(
    monkeypatch, capsys
):
    monkeypatch.setattr(sources, "solved", lambda lab: types.SimpleNamespace(twice="ours"))

    def mine(x):
        return 2 * x

    assert working(mine, "99a") == "ours"
    assert capsys.readouterr().out == "Not solved yet: TODO 99a. This cell uses our twice.\n"
    check("99a", mine)
    assert working(mine, "99a") is mine and not capsys.readouterr().out
    assert working(mine, "99b", "99a") == "ours"
    assert capsys.readouterr().out == "Not solved yet: TODO 99b. This cell uses our twice.\n"


def test_working_keeps_to_the_object_that_was_right_and_says_where_it_is_another(capsys):
    def mine(x):
        return 2 * x

    check("99a", mine)
    check("99a", lambda x: x)  # a wrong experiment changes nothing
    assert working(mine, "99a") is mine and not capsys.readouterr().out
    assert working(lambda x: x + 1, "99a") is mine, "written again and not checked"
    assert 'run check("99a", twice) again' in capsys.readouterr().out


def test_working_sees_that_a_function_of_an_earlier_todo_is_another_one(lab, monkeypatch, capsys):
    monkeypatch.setattr(sources, "solved", lambda lab: types.SimpleNamespace(four_times="ours"))
    lab[1] = todos.Todo("99b", lambda four_times: "Right.", (), ["four_times"])
    notebook = {}
    exec("def twice(x): return 2 * x\ndef four_times(x): return twice(twice(x))", notebook)
    check("99a", notebook["twice"])
    check("99b", notebook["four_times"])
    assert working(notebook["four_times"], "99a", "99b") is notebook["four_times"]
    assert not capsys.readouterr().out
    exec("def twice(x): return x", notebook)
    assert working(notebook["four_times"], "99a", "99b") == "ours"
    said = capsys.readouterr().out
    assert 'twice has changed since it was right: run check("99a", twice) again.' in said
    assert "This cell uses our four_times." in said
    check("99a", lambda x: x)  # that it is wrong changes nothing
    assert working(notebook["four_times"], "99a", "99b") == "ours"


def test_working_knows_a_dict_that_was_changed_in_its_place(lab, capsys):
    lab[0] = todos.Todo("99a", lambda answers: "Right.", (), ["answers"])
    answers = {"a": 1}
    check("99a", answers)
    assert working({"a": 1}, "99a") == answers and not capsys.readouterr().out
    answers["a"] = 2
    assert working(answers, "99a") == {"a": 1}
    assert "answers has changed since it was right" in capsys.readouterr().out


def test_a_todo_of_an_earlier_session_is_not_called_unsolved(monkeypatch, capsys):
    monkeypatch.setattr(sources, "solved", lambda lab: types.SimpleNamespace(twice="ours"))
    check("99a", lambda x: 2 * x)
    runner.right_objects.clear()  # as in a new kernel
    assert working(None, "99a") == "ours"
    assert "Not checked since this notebook was started: TODO 99a." in capsys.readouterr().out


def test_hints_come_one_by_one():
    assert str(hint("99a")) == "Hint 1 of 2: First."
    both = str(hint("99a"))
    assert "First." in both and "Second." in both and 'solution("99a")' in both
    assert str(hint("99a")) == both
    assert str(hint("99b")) == "Hint 1 of 2: First."


def test_the_solution_of_a_todo_is_its_region_and_progress_notes_it(monkeypatch):
    code = {"99a": ["    if x:", "        return 1"], "99b": ["    return 2"]}
    monkeypatch.setattr(sources, "regions", lambda lab: code)
    assert "TODO 99a:\n\nif x:\n    return 1\n" in str(solution("99a"))
    assert "TODO 99b:\n\nreturn 2\n" in str(solution("99b"))
    assert progress.todos("shown") == {"99a", "99b"}
    outcome = check("99a", lambda x: 2 * x)
    assert "1 of 2 in this lab, 2 with the solution shown" in outcome._repr_html_()


def test_predictions_wait_for_the_comparison():
    assert "No prediction" in str(predict("loss", ..., "nats"))
    assert "no prediction" in str(compare("loss", 2.3, "nats"))
    predict("loss", 2, "nats")
    compared = compare("loss", 2.3026, "nats")
    assert str(compared) == "loss: you said 2 nats; measured here: 2.303 nats."
    assert "you said" in compared._repr_html_()
    assert "is a number, not '40%'" in str(predict("loss", "40%"))
    assert progress.prediction("loss") == 2


def test_names_that_do_not_exist_and_wrong_calls_say_what_to_write():
    for call, words in (
        (lambda: check("99z", 1), "There is no TODO 99z: this lab has 99a, 99b."),
        (
            lambda: check(0, 1),
            'Name a TODO by its number and letter in quotes, such as "1a", not 0.',
        ),
        (
            lambda: hint("first"),
            """Name a TODO by its number and letter in quotes, such as "1a", not 'first'.""",
        ),
        (lambda: check("99a", 1, 2), 'Write: check("99a", twice)'),
    ):
        with pytest.raises(CallError, match=re.escape(words)) as raised:
            call()
        assert raised.value._render_traceback_() == [words], "one sentence, without a stack"


def test_a_value_in_the_place_of_a_function_is_told_as_such(monkeypatch):
    monkeypatch.setattr(sources, "text", lambda number: "def twice(x):\n    return 2 * x\n")
    told = check("99a", 6)
    assert told.status is Status.INCORRECT
    assert told.why.startswith("twice should be a function; this is an int. Hand over")


def test_an_iterator_of_the_learner_that_ends_early_is_the_learners_error(lab):
    def once(twice):
        return twice(3)

    def in_cases(twice):
        yield "3 doubled", twice(3)
        return "Doubled."

    for function in (once, in_cases):
        lab[0] = todos.Todo("99a", function, (), ["twice"])
        told = check("99a", lambda x: next(iter(())))
        assert told.status is Status.INCORRECT and "StopIteration" in told.why, function


def test_nbgrader_sees_an_exception_for_all_but_correct(monkeypatch, capsys):
    monkeypatch.setenv("NBGRADER_EXECUTION", "autograde")
    assert check("99a", lambda x: 2 * x) is None, "a value would be taken for points"
    assert capsys.readouterr().out == "TODO 99a: correct. Doubled.\n"
    with pytest.raises(AssertionError, match="TODO 99a: incorrect") as raised:
        check("99a", lambda x: x)
    assert raised.value._render_traceback_() == [str(raised.value)]
    assert not progress.file().exists(), "that of the person who grades"


def test_cases_are_compared_with_the_solution_and_slips_are_told(lab, monkeypatch):
    def double(twice):
        yield "3 doubled", twice(3)
        yield "0.5 doubled", twice(0.5)
        return "Doubled."

    square = todos.Slip("2 * x", "x ** 2", "That is the square.")
    lab[0] = todos.Todo("99a", double, (), ["twice"], "", [square])
    ours = types.SimpleNamespace(twice=lambda x: 2 * x)
    monkeypatch.setattr(sources, "solved", lambda number: ours)
    monkeypatch.setattr(sources, "text", lambda number: "def twice(x):\n    return 2 * x\n")
    monkeypatch.setattr(sources, "regions", lambda number: {"99a": ["    return 2 * x"]})
    assert check("99a", lambda x: x + x).why == "Doubled."
    assert check("99a", lambda x: 3 * x).why == "3 doubled: expected 6, yours gives 9."
    squared = "That is the square.\n3 doubled: expected 6, yours gives 9."
    assert check("99a", lambda x: x * x).why == squared
    late = check("99a", lambda x: 6 if x == 3 else 1 / 0)
    assert late.status is Status.INCORRECT and "raised ZeroDivisionError" in late.why
    starter = raising(NotImplementedError("TODO 99a: double it"))
    assert check("99a", starter).status is Status.NOT_ATTEMPTED


@pytest.mark.parametrize(
    "expected, found, words",
    [
        (6.5, 6.5000001, ""),
        (4, 4.0, ""),
        (math.nan, math.nan, ""),
        (math.inf, 3.0, "expected inf, yours gives 3"),
        ((1, 2), [1, 2], ""),
        (True, 1, "expected True, yours gives 1"),
        (1, True, "expected a number, 1, yours gives a bool"),
        (1, None, "expected a number, 1, yours gives None"),
        ((1, 0.5), (1, 0.25), "expected (1, 0.5), yours gives (1, 0.25)"),
        ([1, 2], (1,), "expected [1, 2], yours gives (1)"),
        ({"a": 1}, {"b": 1}, "expected {'a': 1}, yours gives {'b': 1}"),
        ({"a": 1, "b": "x" * 99}, {"b": ""}, "at ['a'] expected 1, yours gives nothing"),
        ({"a": "x" * 99}, {"a": "y"}, f"at ['a'] expected '{'x' * 99}', yours gives 'y'"),
        (np.zeros([2, 3]), np.zeros([3, 2]), "expected float64 [2, 3], yours gives float64 [3, 2]"),
        (np.zeros(2, np.int32), np.zeros(2), "expected int32 [2], yours gives float64 [2]"),
        (np.zeros(12), np.eye(12)[3], "at [3] expected 0, yours gives 1"),
        (np.float32(2), 2.0, ""),
        ("a", "b", "expected 'a', yours gives 'b'"),
        (None, "nothing", "expected None, yours gives 'nothing'"),
        (np.dtype("float32"), np.dtype("int8"), "expected float32, yours gives int8"),
    ],
)
def test_results_are_the_same_or_differ_in_words(expected, found, words):
    assert difference(expected, found) == words


CELL = """
from lab_utils.check import check, hint
check("0b", {"TPU101": "D", "TPU201": "B"})
print("below")
hint("0b")
for _ in range(2):
    hint("0b")
"""


def test_results_of_one_cell_are_all_shown_in_their_order():
    """A notebook shows only the last value by itself; the verdict above a print would be lost."""
    cells = [nbformat.v4.new_code_cell(source) for source in (CELL, 'hint("0c")')]
    NotebookClient(nbformat.v4.new_notebook(cells=cells), timeout=60).execute()
    assert len(cells[1].outputs) == 1, "the last expression of a cell is shown once"
    shown = [each.get("text") or each.data["text/plain"] for each in cells[0].outputs]
    begins = ("TODO 0b: incorrect", "below", *["Hint 1 of 2"] * 3)
    assert all(text.startswith(begin) for text, begin in zip(shown, begins, strict=True))


def test_progress_lasts_whatever_becomes_of_its_file(capsys):
    check("99a", lambda x: 2 * x)
    assert json.loads(progress.file().read_text())["done"] == ["99a"]
    names = sorted(path.name for path in progress.file().parent.iterdir())
    assert names == [".lock", "progress.json"]
    assert check("99a", lambda x: x).correct == 1, "what was right once stays done"
    for encoding in ("utf-8-sig", "utf-16"):  # as an editor saves it
        progress.file().write_text(progress.file().read_text(), encoding=encoding)
        assert "99a" in progress.todos("done")
        progress.record("done", encoding)
    assert len(progress.todos("done")) == 3 and not capsys.readouterr().out


@pytest.mark.parametrize(
    "text",
    ["", '{"done": ["1a"', '{"done": 3}', "[]", "\0\0", "null", "[" * 9000, "[" * 100_000]
    + ['{"done": [], "predictions": {"loss": 1%s}}' % ("0" * 400)],
)
def test_a_progress_that_cannot_be_read_is_set_aside(text, capsys):
    progress.file().parent.mkdir(parents=True)
    progress.file().write_text(text)
    assert progress.todos("done") == set() and progress.file().read_text() == text
    predict("loss", 2.0, "nats")
    (aside,) = progress.file().parent.glob("*.unreadable.json")
    assert aside.read_text() == text and str(aside) in capsys.readouterr().out
    assert check("99b", lambda x: 2 * x).correct == 1 and progress.prediction("loss") == 2.0


def test_two_processes_lose_nothing():
    code = (
        "import sys; from lab_utils.check import progress\n"
        "for i in range(40): progress.record('done', f'{sys.argv[1]}{i}')"
    )
    both = [subprocess.Popen([sys.executable, "-c", code, name]) for name in "ab"]
    assert [each.wait() for each in both] == [0, 0]
    assert len(progress.todos("done")) == 80


@pytest.mark.parametrize("home", ["none", "a file"])
def test_progress_lasts_for_the_session_where_nothing_can_be_written(home, tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    if home == "none":
        monkeypatch.delenv("XDG_STATE_HOME")
        monkeypatch.setattr(Path, "home", raising(RuntimeError()).__get__(Path))
    assert check("99a", lambda x: 2 * x).correct == 1
    predict("loss", 2.0, "nats")
    assert progress.prediction("loss") == 2.0 and check("99b", lambda x: 2 * x).correct == 2
    assert progress.show([]) == 0


def test_the_table_says_what_is_done_and_the_minutes_left(capsys):
    stated = sources.labs()
    total = sum(each["minutes"] for each in stated.values())
    assert f"About {total // 60} h {total % 60} min left" in progress.table()
    for id in ("2a", "2b", "2c"):
        progress.record("done", id)
    progress.record("shown", "2b")
    assert progress.show([]) == 0
    shown = capsys.readouterr().out
    count = len(sources.ids(2))
    left = round(stated[2]["minutes"] * (1 - 3 / count))
    bar = ("#" * round(12 * 3 / count)).ljust(12, ".")
    line = f"02 {bar} 3 of {count}  The four changes: {left} min left, 1 solution shown"
    assert line in shown.splitlines() and str(progress.file()) in shown
    for id in sources.ids(2):
        progress.record("done", id)
    assert "The four changes: done" in progress.table()


def test_the_command_imports_no_framework():
    code = "import sys; from lab_utils.__main__ import main; sys.argv[1:] = ['progress']; main()"
    probe = f"{code}; assert not {{'tensorflow', 'jax'}} & sys.modules.keys()"
    assert subprocess.run([sys.executable, "-c", probe], capture_output=True).returncode == 0


def test_progress_notes_when_a_todo_was_first_tried_and_when_it_was_solved(
    monkeypatch, tmp_path, capsys
):
    clock = iter([1000, 1600, 9000, 9060])
    monkeypatch.setattr(progress.time, "time", lambda: next(clock))
    check("99a", ...)  # an open one is no try
    check("99a", lambda x: x)
    check("99a", lambda x: 2 * x)
    check("99a", lambda x: 2 * x)
    check("99b", lambda x: x)
    check("99b", lambda x: 2 * x)
    noted = {"99a": {"first": 1000, "solved": 1600}, "99b": {"first": 9000, "solved": 9060}}
    assert progress.times() == noted
    assert progress.minutes(["99a", "99b"], progress.times()) == 11, (
        "the long break between them is left out"
    )
    assert progress.show(["--hand_in", str(tmp_path / "progress.json")]) == 0
    assert json.loads((tmp_path / "progress.json").read_text()) == noted
    assert "the times of 2 TODOs, and nothing else" in capsys.readouterr().out


def test_the_reading_before_the_first_check_is_in_the_minutes(monkeypatch):
    """On each day that a notebook is opened; the cell that opens it may be run again."""
    monkeypatch.setattr(setup.scratch, "use_process_folder", lambda: "")  # that of all tests stays
    monkeypatch.setattr(setup, "style_figures", lambda: None)
    clock = [0]
    monkeypatch.setattr(progress.time, "time", lambda: clock[0])

    def at(minute, act, *arguments):
        clock[0] = 60 * minute
        act(*arguments)

    at(1, ready)
    at(5, ready)
    at(11, check, "99a", lambda x: x)  # ten minutes read
    at(1001, ready)  # the next day
    at(1021, check, "99a", lambda x: x)  # the same mistake
    at(1025, check, "99a", lambda x: 2 * x)
    at(1027, check, "99b", lambda x: 2 * x)
    assert progress.times() == {
        "99a": {"opened": 60, "first": 660, "reopened": 60_060, "solved": 61_500},
        "99b": {"first": 61_620, "solved": 61_620},
    }
    assert progress.minutes(["99a", "99b"], progress.times()) == 10 + 24 + 2


def test_a_solution_that_is_shown_after_the_todo_was_right_is_not_counted(monkeypatch):
    monkeypatch.setattr(sources, "regions", lambda lab: {"99a": ["    return 2"]})
    check("99a", lambda x: 2 * x)
    solution("99a")
    assert progress.todos("shown") == set()


def test_a_progress_of_an_earlier_edition_has_no_times():
    progress.file().parent.mkdir(parents=True)
    progress.file().write_text('{"done": ["99a"], "shown": [], "predictions": {}}')
    assert progress.todos("done") == {"99a"} and progress.times() == {}
