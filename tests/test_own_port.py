"""Whole programs that learners may write in lab 02: right ones in five habits, and what wrong ones lack.

All of them take minutes. Two right ones and the commonest slips are tried with the answers of lab 02.
"""

import re
from pathlib import Path

import pytest

from lab_utils.check.labs import own_port, own_port_child
from lab_utils.check.labs.own_port import check_port
from lab_utils.check.outcome import Wrong

PROGRAMS = {path.stem: path for path in (Path(__file__).parent / "own_ports").glob("*.py")}
# Flags by absl, argparse and sys.argv; loops of train and evaluate; sizes that fit, and padding of weight 0,
# in NumPy and without an end. In each, the number of examples that count.
COUNTED = {
    "convolution_padded": 297,
    "embedding": 200,
    "endless_padding": 101,
    "keras_layers": 40,
    "wine": 48,
}


@pytest.mark.slow
@pytest.mark.parametrize("name", COUNTED)
def test_a_right_program_of_any_habit_is_accepted(name):
    assert COUNTED.keys() == PROGRAMS.keys()
    said = check_port(PROGRAMS[name].read_text(encoding="utf-8"))
    assert f"Evaluated {COUNTED[name]} examples, each once." in said and "Ready for v2:2x2" in said


ONCE = """
import builtins
assert not hasattr(builtins, "second")
builtins.second = True
"""


@pytest.mark.parametrize(
    ("before", "processes"), [("", 1), pytest.param(ONCE, 3, marks=pytest.mark.slow)]
)
def test_a_program_that_cannot_run_twice_in_a_process_gets_one_for_each_run(
    before, processes, monkeypatch
):
    """Any other right program is run, judged and looked at in one process."""
    started, start = [], own_port.subprocess.run

    def run(command, **options):
        started.append(command)
        return start(command, **options)

    monkeypatch.setattr(own_port.subprocess, "run", run)
    text = PROGRAMS["wine"].read_text(encoding="utf-8")
    said = check_port(text.replace("import tempfile\n", f"import tempfile\n{before}", 1))
    assert "Ready for v2:2x2" in said and len(started) == processes


WINE = "np.float32((table - table.mean(axis=0)) / table.std(axis=0))"
RANDOM = "tf.data.Dataset.random(seed=1).map(lambda i: i % 1000)"
WRONG = (
    (
        "wine",
        "(metric_fn, [labels, logits])",
        "(lambda y: metric_fn(y, logits), [labels])",
        "TPU118",
    ),
    ("wine", '        cluster=find("local") if USE_TPU.value else None,\n', "", "has no cluster"),
    ("wine", "    print(estimator.evaluate(eval_input, steps=1))\n", "", "does not evaluate"),
    ("wine", "    estimator.train(train_input, max_steps=STEPS)\n", "", "does not train"),
    ("wine", 'DEFINE_bool("use_tpu"', 'DEFINE_bool("tpu"', "does it know --use_tpu"),
    ("wine", "STEPS = 64,", "STEPS = 60,", "TPU106"),
    ("wine", WINE, "table - table.mean(axis=0)", "TPU120"),
    ("wine", "data.shuffle(1000)", "date.shuffle(1000)", "name 'date' is not defined.*line 22"),
    ("convolution_padded", ", weights=weights)", ")", "counts 320 examples, but at least 23"),
    ("convolution_padded", "import lab_utils.estimator ", "# ", "this TensorFlow has no Estimator"),
    ("endless_padding", "tf.float32), w)", "tf.float32))", "give padding the weight 0"),
    ("keras_layers", "(eval_input, steps=1)", "(eval_input, steps=2)", "more than once|counts 80"),
    ("embedding", "steps=5))", "steps=4))", "40 of 200 held-out examples are never evaluated"),
    ("embedding", "tf.data.Dataset.range(first, last)", RANDOM, "no end"),
)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "old", "new", "says"), WRONG)
def test_a_wrong_program_is_told_what_it_lacks(name, old, new, says):
    text = PROGRAMS[name].read_text(encoding="utf-8")
    assert text.count(old) == 1
    with pytest.raises(Wrong) as raised:
        check_port(text.replace(old, new))
    assert re.search(says, str(raised.value), re.S), raised.value


@pytest.mark.parametrize(
    "text", ["", "# nothing yet\n", 'raise NotImplementedError("TODO 2f: x")\n']
)
def test_a_file_without_a_program_is_not_judged(text):
    with pytest.raises(NotImplementedError):
        check_port(text)


@pytest.mark.parametrize(
    ("parsing", "exits"),
    [
        ("import argparse; argparse.ArgumentParser().parse_args()", True),
        ("from absl import app; app.run(lambda argv: None)", True),
        ("import sys; sys.exit('usage: port.py')", True),
        ("raise ValueError('not of the flags')", False),
    ],
)
def test_whether_a_program_ends_itself_is_noted(parsing, exits, tmp_path):
    (tmp_path / "port.py").write_text(parsing)
    judged = own_port_child.judge(tmp_path / "port.py", ["--use_tpu"])
    assert judged.failed and judged.exits == exits
