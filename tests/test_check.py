"""What a check, a hint and a prediction say, and what they keep."""

import functools
import json
import math
import re
import subprocess
import sys
import time
import types
from pathlib import Path

import nbformat
import numpy as np
import pytest
from nbclient import NotebookClient
from wrong_answers import heard

from lab_utils.check import (
    assist,
    check,
    compare,
    hint,
    life,
    predict,
    progress,
    runner,
    solution,
    sources,
    todos,
    tools,
    working,
)
from lab_utils.check.outcome import CannotCheck, Status, Wrong
from lab_utils.check.same import difference

CHECK = """
def double(twice) -> str:
    if twice is None:
        raise CannotCheck("this machine has no such thing")
    if twice(3) != 6:
        raise Wrong(f"Twice 3 is 6; yours is {twice(3)}.")
    return "Doubled."
"""


def _check_function():
    """A check's function, in a file of the package as those of the labs are."""
    names = {"CannotCheck": CannotCheck, "Wrong": Wrong}
    exec(compile(CHECK, str(Path(runner.__file__).with_name("lab_99.py")), "exec"), names)
    return names["double"]


@pytest.fixture(autouse=True)
def lab(tmp_path, monkeypatch):
    """A lab 99 of two TODOs, and a learner without any progress."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.delenv("NBGRADER_EXECUTION", raising=False)
    monkeypatch.setattr(progress, "_memory", None)
    monkeypatch.setattr(runner, "said", {})
    monkeypatch.setattr(assist, "_asked", {})
    entries = [todos.Todo(id, _check_function(), ("First.", "Second.")) for id in ("99a", "99b")]
    monkeypatch.setattr(todos, "of_lab", lambda number: entries)
    return entries


def test_each_outcome():
    def starter(x):
        raise NotImplementedError("TODO 99a: double it")

    def of_another(x):
        raise NotImplementedError("TODO 99b: something else")

    assert check("99a", lambda x: 2 * x).status is Status.CORRECT
    wrong = check("99a", lambda x: x)
    assert wrong.status is Status.INCORRECT and wrong.why == "Twice 3 is 6; yours is 3."
    assert check("99a", ...).status is Status.NOT_ATTEMPTED
    assert check("99a", starter).status is Status.NOT_ATTEMPTED
    waiting = check("99a", of_another)
    assert waiting.status is Status.NOT_ATTEMPTED and "TODO 99b" in waiting.why
    assert check("99a", None).status is Status.CANNOT_CHECK


def test_an_exception_of_the_learner_becomes_an_outcome_with_its_line():
    def broken(x):
        return x["no such key"]

    outcome = check("99a", broken)
    assert outcome.status is Status.INCORRECT
    assert "TypeError" in outcome.why and 'return x["no such key"]' in outcome.why
    unusable = check("99a", "not a function")
    assert unusable.status is Status.INCORRECT and "could not run on what you gave" in unusable.why
    assert "lab_utils" not in unusable.why


def test_a_message_bears_no_kind_twice_and_no_function_nodes():
    def traced(x):
        raise ValueError("in user code:\n\n  File a.py, line 1\n\n  ValueError: two of a kind\n")

    def eager(x):
        raise ValueError(
            "{{function_node __wrapped__Mul_device_/device:CPU:0}} Incompatible shapes"
        )

    assert "raised ValueError: two of a kind" in check("99a", traced).why
    assert "raised ValueError: Incompatible shapes" in check("99a", eager).why


def test_a_bug_of_the_learner_that_looks_like_a_starter_is_told():
    def unfinished(x):
        raise NotImplementedError("of this kind of x")

    assert check("99a", unfinished).status is Status.INCORRECT


def test_an_outcome_shows_itself_as_text_and_html():
    outcome = check("99a", lambda x: "<b>")
    assert str(outcome) == "TODO 99a: incorrect. Twice 3 is 6; yours is <b>."
    assert "&lt;b&gt;" in outcome._repr_html_() and "0 of 2" in outcome._repr_html_()


def test_progress_is_kept_in_one_file_and_survives_a_broken_one():
    check("99a", lambda x: 2 * x)
    assert json.loads(progress.file().read_text())["done"] == ["99a"]
    kept = sorted(path.name for path in progress.file().parent.iterdir())
    assert kept == [".lock", "progress.json"]
    later_wrong = check("99a", lambda x: x)
    assert later_wrong.done == 1, "what was right once stays done"
    progress.file().write_text('{"done": ')
    assert check("99b", lambda x: 2 * x).done == 1


@pytest.mark.parametrize(
    "damage",
    [
        "[" * 100_000,
        '{"done": [{}], "predictions": {}}',
        '{"done": [1, null], "predictions": {"loss": "2"}}',
        '{"done": [], "predictions": {"loss": 1%s}}' % ("0" * 400),
        '{"done": [], "predictions": {"loss": NaN}}',
        '{"done": 5, "predictions": []}',
        "null",
    ],
)
def test_a_damaged_file_counts_as_no_progress(damage):
    check("99a", lambda x: 2 * x)
    progress.file().write_text(damage)
    assert check("99b", lambda x: 2 * x).done == 1
    assert "no prediction" in str(compare("loss", 2.3, "nats"))
    predict("loss", 2.0, "nats")
    assert progress.prediction("loss") == 2.0


def test_two_processes_lose_nothing(tmp_path):
    code = (
        "import sys; from lab_utils.check import progress\n"
        "for i in range(40): progress.record(f'{sys.argv[1]}{i}')"
    )
    both = [subprocess.Popen([sys.executable, "-c", code, name]) for name in "ab"]
    assert [each.wait() for each in both] == [0, 0]
    assert len(progress.done()) == 80


def test_a_user_without_a_home_has_progress_for_the_session(monkeypatch):
    def nobody():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_STATE_HOME")
    monkeypatch.setattr(Path, "home", nobody)
    assert check("99a", lambda x: 2 * x).done == 1
    predict("loss", 2.0, "nats")
    assert progress.prediction("loss") == 2.0 and check("99b", lambda x: 2 * x).done == 2


def test_progress_lasts_for_the_session_where_nothing_can_be_written(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    assert check("99a", lambda x: 2 * x).done == 1
    assert check("99b", lambda x: 2 * x).done == 2


def test_working_takes_the_learners_object_only_where_all_that_it_needs_is_right(
    monkeypatch, capsys
):
    monkeypatch.setattr(sources, "solved", lambda lab: types.SimpleNamespace(twice="ours"))
    check("99a", lambda x: 2 * x)
    assert working("mine", "99a") == "mine"
    assert working("mine", "99b", "99a") == "ours"
    assert capsys.readouterr().out == "Not solved yet: TODO 99b. This cell uses our twice.\n"
    check("99a", lambda x: x)
    assert working("mine", "99a") == "ours"


def test_hints_come_one_by_one():
    assert str(hint("99a")) == "Hint 1 of 2: First."
    both = str(hint("99a"))
    assert "First." in both and "Second." in both and 'solution("99a")' in both
    assert str(hint("99a")) == both
    assert str(hint("99b")) == "Hint 1 of 2: First."


def test_predictions_are_kept_for_the_comparison():
    assert "No prediction" in str(predict("loss", ..., "nats"))
    assert "no prediction" in str(compare("loss", 2.3, "nats"))
    predict("loss", 2, "nats")
    compared = compare("loss", 2.3026, "nats")
    assert str(compared) == "loss: you said 2 nats; measured here: 2.303 nats."
    assert "you said" in compared._repr_html_()
    with pytest.raises(TypeError, match="a prediction is a number"):
        predict("loss", "two")


def test_names_that_do_not_exist_and_wrong_calls_say_what_to_write():
    with pytest.raises(ValueError, match="there is no TODO 99z: this lab has 99a, 99b"):
        check("99z", 1)
    with pytest.raises(ValueError, match="a TODO is named like '1a'"):
        hint("first")
    with pytest.raises(TypeError, match=r"write: check\('99a', twice\)"):
        check("99a", 1, 2)


def test_nbgrader_sees_an_exception_for_all_but_correct(monkeypatch, capsys):
    monkeypatch.setenv("NBGRADER_EXECUTION", "autograde")
    assert check("99a", lambda x: 2 * x) is None, "a value would be taken for points"
    assert capsys.readouterr().out == "TODO 99a: correct. Doubled.\n"
    with pytest.raises(AssertionError, match="TODO 99a: incorrect") as raised:
        check("99a", lambda x: x)
    assert raised.value._render_traceback_() == [str(raised.value)]
    assert not progress.file().exists(), "that of the person who grades"


def test_the_starter_that_nbgrader_writes_counts_as_not_attempted():
    def starter(x):
        raise NotImplementedError()

    assert check("99a", starter).status is Status.NOT_ATTEMPTED


SOLUTION = """
def twice(x):
    if x < 0:
        return abs(2 * x)
    def inner(y):
        return 2 * y
    return inner(x)
"""


def test_a_forgotten_return_is_told_by_the_engine(monkeypatch):
    monkeypatch.setattr(sources, "text", lambda lab: SOLUTION)

    def none(x):
        2 * x

    def of_inner(x):
        def inner(y):
            2 * y

        return inner(x) or 0

    def dropped(x):
        if x > 0:
            abs(2 * x)
        return -1

    def at_the_end(x):
        if x == 0:
            return 0

    def other_mistake(x):
        return 3 * x

    assert "none returns None: is a return missing?" in check("99a", none).why
    assert "inner returns None: is a return missing?" in check("99a", of_inner).why
    assert "dropped makes a abs and drops it" in check("99a", dropped).why
    assert "at_the_end can come to its end" in check("99a", at_the_end).why
    assert "return missing" not in check("99a", other_mistake).why
    assert "return missing" not in check("99a", lambda x: 3 * x).why


def test_words_to_be_heard_are_literal_unless_they_are_a_pattern():
    """As a pattern "[B, 10]" stands for one character, and is found in any sentence with a space."""
    assert not heard("[B, 10]", "xyz abc")
    assert heard("[B, 10]", "Logits should be float32 [B, 10]; yours are int64.")
    assert heard(re.compile("float(16|32)"), "Logits should be float32.")


def test_a_long_message_keeps_its_end_and_loses_the_stacks_of_tensorflow():
    stack = "".join(f'\n  File "/a/long/path/module_{n}.py", line {n}, in run' for n in range(40))

    def of_a_session(x):
        raise ValueError(
            f"Graph execution error:\n\nDetected at node 'add' defined at (most recent call last):{stack}\n"
            "Node: 'add'\nIncompatible shapes: [2] vs. [3]\n\t [[{{node add}}]]\n\n"
            f"Original stack trace for 'add':{stack}\n"
        )

    def with_the_reason_last(x):
        raise ValueError("It began here" + " and went on" * 100 + " until 2 was 3")

    assert "raised ValueError: Incompatible shapes: [2] vs. [3]\n" in check("99a", of_a_session).why
    why = check("99a", with_the_reason_last).why
    assert "It began here" in why and "until 2 was 3" in why and len(why) < 700


def helper(x):
    return other(x)


def other(x):
    return x


def test_other_names_reach_the_helpers_of_a_function_and_are_put_back():
    class Callable:
        def __call__(self, x):
            return helper(x)

    ways = (lambda x: other(x), lambda x: helper(x), functools.partial(helper), Callable())
    for way in ways:
        assert tools.with_names(way, other=lambda x: 7 * x)(2) == 14
        assert way(2) == 2
    with tools.other_names(ways[0], new_name=3):
        assert globals()["new_name"] == 3
    assert "new_name" not in globals()


def test_the_solution_of_a_todo_is_its_region_and_progress_notes_it(monkeypatch):
    code = {"99a": ["    if x:", "        return 1"], "99b": ["    return 2"]}
    monkeypatch.setattr(sources, "regions", lambda lab: code)
    assert "TODO 99a:\n\nif x:\n    return 1\n" in str(solution("99a"))
    assert "TODO 99b:\n\nreturn 2\n" in str(solution("99b"))
    assert json.loads(progress.file().read_text())["shown"] == ["99a", "99b"]
    outcome = check("99a", lambda x: 2 * x)
    assert "1 of 2 in this lab, 2 with the solution shown" in outcome._repr_html_()


SLIPS = """
def twice(x):
    return 2 * x
"""


@pytest.fixture
def compared(lab, monkeypatch):
    """TODO 99a as a check of cases, with a slip."""

    def double(twice):
        yield "3 doubled", twice(3)
        yield "0.5 doubled", twice(0.5)
        return "Doubled."

    slips = {"2 * x -> x ** 2": "That is the square."}
    lab[0] = todos.Todo("99a", double, ("First.",), "", slips)
    monkeypatch.setattr(
        sources, "solved", lambda number: types.SimpleNamespace(twice=lambda x: 2 * x)
    )
    monkeypatch.setattr(sources, "text", lambda number: SLIPS)
    monkeypatch.setattr(sources, "regions", lambda number: {"99a": ["    return 2 * x"]})


def test_cases_are_compared_with_the_solution_and_slips_are_told(compared):
    assert check("99a", lambda x: x + x).why == "Doubled."
    assert check("99a", lambda x: 3 * x).why == "3 doubled: expected 6, yours gives 9."
    squared = "That is the square.\n3 doubled: expected 6, yours gives 9."
    assert check("99a", lambda x: x * x).why == squared
    late = check("99a", lambda x: 6 if x == 3 else 1 / 0)
    assert late.status is Status.INCORRECT and "raised ZeroDivisionError" in late.why
    assert check("99a", lambda x: None).why == "3 doubled: expected a number, 6, yours gives None."

    def starter(x):
        raise NotImplementedError("TODO 99a: double it")

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
check("0b", lambda m, k, n: m * k * n)
hint("0b")
hint("0b")
"""


def test_results_of_one_cell_are_all_shown_in_their_order():
    """A notebook shows the last value alone; the verdict above a hint would be lost."""
    cells = [nbformat.v4.new_code_cell(source) for source in (CELL, 'hint("0c")')]
    notebook = nbformat.v4.new_notebook(cells=cells)
    client = NotebookClient(notebook, timeout=60)
    with client.setup_kernel():
        for number, cell in enumerate(cells):
            client.execute_cell(cell, number, store_history=False)
    assert len(cells[1].outputs) == 1, "what an earlier cell showed is not shown again"
    shown = [output.data["text/plain"] for output in notebook.cells[0].outputs]
    assert [text.split(".")[0][:18] for text in shown] == [
        "TODO 0b: incorrect",
        "Hint 1 of 2: How m",
        "Hint 1 of 2: How m",
    ]


def test_a_check_that_takes_long_shows_a_line_that_is_gone_afterwards(monkeypatch):
    written = []
    monkeypatch.delenv(life.SILENCE, raising=False)
    monkeypatch.setattr(life, "in_notebook", lambda: True)
    monkeypatch.setattr(life, "_PATIENCE", 0.0)
    monkeypatch.setattr(life, "CellLine", lambda: types.SimpleNamespace(write=written.append))
    with life.shown("Checking TODO 99a"):
        for _ in range(1000):
            if written:
                break
            time.sleep(0.01)
    assert written[0].startswith("Checking TODO 99a, 0 s") and written[-1] == ""
    monkeypatch.setenv(life.SILENCE, "1")
    with life.shown("Checking TODO 99b"):
        pass
    assert "99b" not in "".join(written)
