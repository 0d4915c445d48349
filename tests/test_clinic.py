"""The patients of the clinic: charts agree with programs, and each fault alone is seen at its line."""

import dataclasses
import re
from pathlib import Path

import nbformat
import pytest

from lab_utils.check import check, programs, runner, sources, working
from lab_utils.check.clinic import NAMES, ward
from lab_utils.check.clinic.examine import examine, report_and_port
from lab_utils.check.outcome import Status
from lab_utils.dry_run import rules
from lab_utils.teach import marks

ROOT = Path(__file__).parents[1]
CLINIC = ROOT / "datasets" / "clinic"
NO_PORTS = {"plateau"}  # a plain Estimator: without a dry run
ALL = sorted({path.stem for path in CLINIC.glob("*.py")} - NO_PORTS)


@pytest.mark.parametrize("name", (*ALL, *sorted(NO_PORTS)))
def test_a_chart_agrees_with_its_program(name):
    patient = ward(name)
    compile(patient.healthy, name, "exec")
    compile(patient.sick, name, "exec")
    places = [patient.lines(fault) for fault in patient.faults]
    assert all(places)
    assert all(part in patient.sick for part in patient.fine)
    sick = set().union(*places)
    lines = enumerate(patient.sick.splitlines(), 1)
    fine = {number for number, line in lines if any(part in line for part in patient.fine)}
    assert not sick & fine, "a line that is called healthy has a fault"
    reasons = [fault.why for fault in patient.faults]
    assert len({*reasons, *patient.others}) == len(reasons) + len(patient.others)
    assert all(rules.rule(fault.rule) for fault in patient.faults if fault.rule)


def test_the_clinic_has_thirty_kinds_of_fault():
    kinds = {fault.rule for name in NAMES for fault in ward(name).faults}
    assert len(kinds) >= 30
    assert sum(fault.silent for name in NAMES for fault in ward(name).faults) >= 10
    assert [len(ward(name).faults) for name in NAMES] == [6] * 6


def test_a_plain_estimator_is_examined_by_what_it_computes():
    patient = ward("plateau")
    (fault,) = patient.faults
    assert patient.lines(fault) == {27}
    assert examine(patient, patient.healthy) == ([], "")
    assert "In training the loss is" in examine(patient, patient.sick)[1]


def test_a_missing_line_may_be_named_by_the_lines_beside_it():
    patient = ward("portraits")  # whose second optimizer lacks its wrapper
    fault = next(each for each in patient.faults if "g_optimizer = tf.tpu" in each.right)
    lines = patient.sick.splitlines()
    above = next(n for n, line in enumerate(lines, 1) if "d_optimizer = tf.tpu" in line)
    assert {above, above + 1} <= patient.lines(fault) and above + 2 not in patient.lines(fault)


@pytest.mark.slow
@pytest.mark.parametrize("name", ALL)
def test_each_fault_alone_is_found_at_its_line(name):
    patient = ward(name)
    assert examine(patient, patient.healthy) == ([], "")
    report, _ = report_and_port(patient, patient.healthy)
    assert not [stage.detail for stage in report.stages if stage.status == "failed"]
    for fault in patient.faults:
        alone = dataclasses.replace(patient, faults=(fault,))
        findings, changed = examine(alone, alone.sick)
        if not fault.rule:
            assert re.search("the metric .* is", changed), changed
            continue
        assert {finding.rule for finding in findings} == {fault.rule}
        lines = {finding.place.line for finding in findings}
        assert lines & alone.lines(fault), (fault.rule, lines, alone.lines(fault))


@pytest.mark.parametrize("name", (*ALL, *sorted(NO_PORTS)))
def test_a_cell_becomes_the_sick_program_and_the_healthy_one(name):
    patient = ward(name)
    head = f"%%writefile {name}.py\n# TODO 1a: fix it\n"
    cell = programs.expand(f"{head}# PROGRAM: {name}")
    assert f"{marks.starter(cell)}\n" == head + patient.sick
    assert f"{sources.without_marks(cell)}\n" == head + patient.healthy
    texts = {}
    exec(programs.as_python(sources.without_marks(cell)), texts)
    assert texts[f"{name}.py"].endswith(patient.healthy)


def test_a_learners_changes_are_found_whatever_comments_stand_beside_them():
    patient = ward("plateau")
    remark = patient.sick.replace("def inference", "# the model\n\ndef inference")
    assert patient.changes(patient.sick) == patient.changes(remark) == []
    fixed = remark.replace("10, tf.nn.softmax", "10")
    (change,) = patient.changes(fixed)
    assert change.sick == [27] and fixed.splitlines()[change.edited[0] - 1].startswith("    return")
    (change,) = patient.changes(patient.sick.replace("    scores = inference(features)\n", ""))
    assert (change.sick, change.edited, change.at) == ([31], [], 31)


RATE = "tf.train.exponential_decay(0.01, tf.train.get_global_step(), 1000, 0.5)"
SHUFFLED, SIZE = "dataset.shuffle(512).repeat()\n", 'params["batch_size"]'
FLIP = "        if self.is_training:\n            image = tf.image.random_flip_left_right(image)\n"
MIXED = "dataset.shuffle(NUM_TRAIN)"


@pytest.mark.parametrize(
    "name, old, new, told",
    [
        ("plateau", ".shuffle(512)", "", "no longer shuffles: its examples come in the same order"),
        ("plateau", ".shuffle(512)", ".shuffle(16)", "shuffles less than before"),
        (
            "plateau",
            ".shuffle(512)",
            ".shuffle(512, reshuffle_each_iteration=False)",
            "no longer shuffles again in each epoch",
        ),
        ("plateau", ".repeat()", "", "ends after 8 batches of 64, and was without end"),
        ("plateau", ', name="scores"', "", "scores/bias, scores/kernel became dense/bias"),
        ("digits", RATE, "0.01", "global step 4900 moves the weights 30 times"),
        ("digits", RATE, "0.1", "global step 10 moves the weights 10 times"),
        (
            "digits",
            f"{SHUFFLED}    return dataset.batch({SIZE}",
            f"{SHUFFLED}    return dataset.batch(64",
            "training makes batches of 64 whatever params",
        ),
        ("digits", "1000, 0.5)", "1000, 0.5, staircase=True)", "moves the weights 1.9 times"),
        ("digits", SHUFFLED, "dataset.repeat()\n", "no longer shuffles"),
        (
            "questions",
            "port(dropout=0.1",
            "port(dropout=0.5",
            "rate of dropout is 0.5, and was 0.1",
        ),
        (
            "questions",
            '"words", [VOCAB_SIZE, HIDDEN])',
            '"words", [VOCAB_SIZE, HIDDEN], initializer=tf.random_normal_initializer(stddev=0.02))',
            "training of words starts from other values",
        ),
        ("photographs", MIXED, "dataset", "no longer shuffles"),
        ("photographs", MIXED, "dataset.shuffle(16)", "shuffles less than before"),
        ("photographs", FLIP, "", "was augmentation taken out"),
        ("photographs", ", num_parallel_calls=4", "", "no longer has a map that works on several"),
        (
            "photographs",
            "inputs, momentum=0.9, ",
            "inputs, ",
            "the new value of block_1_bn/moving_mean",
        ),
        (
            "photographs",
            '"classes": tf.argmax(logits, axis=1), ',
            "",
            "prediction classes is missing",
        ),
        (
            "films",
            "width], regularizer=regularise)\n        user",
            "width])\n        user",
            "In training the loss is",
        ),
    ],
)
def test_a_cure_that_takes_a_feature_away_is_no_cure(name, old, new, told):
    patient = ward(name)
    assert patient.healthy.count(old) == 1
    findings, change = examine(patient, patient.healthy.replace(old, new))
    assert not findings and re.search(told, change)


def test_a_program_as_it_was_is_not_attempted_and_a_file_that_is_missing_is_told(
    tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    for todo, name, letters in (("1a", "plateau", "D"), ("16a", "digits", "AIHJEC")):
        program = f"{name}.py"
        assert f"{program} cannot be read in" in check(todo, program, letters).why
        (tmp_path / program).write_text(f"# TODO {todo}: fix it\n{ward(name).sick}# a remark\n")
        assert check(todo, program, letters).status is Status.NOT_ATTEMPTED
        (tmp_path / program).write_text(f"# TODO {todo}: fix it\n{ward(name).healthy}")
        assert check(todo, program, letters).status is Status.CORRECT
        assert "Hand over the file" in check(todo, 3, letters).why


def test_the_table_of_all_faults_agrees_with_the_programs():
    (source,) = (ROOT / "solutions/source").glob("16_*.ipynb")
    cells = nbformat.read(source, as_version=4).cells
    (text,) = (cell.source for cell in cells if cell.source.startswith("## All faults at once"))
    rows = [line.split("|")[2:-1] for line in text.splitlines() if line.startswith("| ")][2:]
    for column, name in enumerate(NAMES):
        counts = re.findall(r"(\d+) (error|silent)", " ".join(cells[column] for cells in rows))
        faults = ward(name).faults
        assert sum(int(count) for count, _ in counts) == len(faults), name
        silent = sum(int(count) for count, kind in counts if kind == "silent")
        assert silent == sum(fault.silent for fault in faults), name


def test_cells_go_on_with_a_program_that_was_right(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setattr(runner, "right_objects", {})
    file = Path("digits.py")
    file.write_text(ward("digits").sick)
    assert ward("digits").healthy in Path(working("digits.py", "16a")).read_text()
    assert "This cell uses our digits.py" in capsys.readouterr().out
    file.write_text(ward("digits").healthy)
    check("16a", "digits.py", "AIHJEC")
    assert working("digits.py", "16a") == "digits.py"
    file.write_text("no longer a program")
    assert Path(working("digits.py", "16a")).read_text() == ward("digits").healthy
    assert "digits.py has changed since it was right" in capsys.readouterr().out
