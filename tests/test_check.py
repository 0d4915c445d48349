"""What a check, a hint and a prediction say, and what they keep."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from lab_utils.check import check, compare, hint, hints, predict, progress, runner, todos, working
from lab_utils.check.outcome import CannotCheck, Status, Wrong

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
    monkeypatch.setattr(hints, "_shown", {})
    entries = [
        todos.Todo(id, _check_function(), ("First.", "Second."), ()) for id in ("99a", "99b")
    ]
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
    assert unusable.status is Status.INCORRECT and "could not be used" in unusable.why
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
    class Reference:
        twice = "ours"

    monkeypatch.setattr(todos, "reference", lambda number: Reference)
    check("99a", lambda x: 2 * x)
    assert working("mine", "99a") == "mine"
    assert working("mine", "99b", "99a") == "ours"
    assert capsys.readouterr().out == "TODO 99b open: this cell uses our twice.\n"
    check("99a", lambda x: x)
    assert working("mine", "99a") == "ours"


def test_hints_come_one_by_one():
    assert str(hint("99a")) == "Hint 1 of 2: First."
    both = str(hint("99a"))
    assert "First." in both and "Second." in both and "solutions/" in both
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


def test_nbgrader_sees_an_exception_for_all_but_correct(monkeypatch):
    monkeypatch.setenv("NBGRADER_EXECUTION", "autograde")
    assert check("99a", lambda x: 2 * x).status is Status.CORRECT
    with pytest.raises(AssertionError, match="TODO 99a: incorrect"):
        check("99a", lambda x: x)


def test_the_starter_that_nbgrader_writes_counts_as_not_attempted():
    def starter(x):
        raise NotImplementedError()

    assert check("99a", starter).status is Status.NOT_ATTEMPTED
