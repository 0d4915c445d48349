"""The patients of the clinic: charts agree with programs, and each fault alone is seen at its line."""

import dataclasses
import io
import re
from pathlib import Path

import pytest
from PIL import Image

from lab_utils import datasets
from lab_utils.check import programs, sources
from lab_utils.check.clinic import NAMES, ward
from lab_utils.check.clinic.clients import TINY, requests
from lab_utils.check.clinic.examine import dry_run_of, examine
from lab_utils.dry_run import rules
from lab_utils.flowers import rest
from lab_utils.teach import marks

CLINIC = Path(__file__).parents[1] / "datasets" / "clinic"
NO_PORTS = {"plateau", "rows", "crops"}  # a plain Estimator, two pipelines: without a dry run
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


def test_a_treatment_replaces_lines_and_keeps_their_indentation():
    patient = ward("digits")
    before = patient.sick.splitlines()
    number = next(n for n, line in enumerate(before, 1) if "tf.summary.scalar" in line)
    after = patient.treated({number: "x = 1\ny = 2"}).splitlines()
    assert after[number - 1 : number + 1] == ["    x = 1", "    y = 2"]
    assert len(patient.treated({number: ""}).splitlines()) == len(before) - 1
    for start in ("\n", "  \n\n"):
        assert patient.treated({number: f"{start}x = 1\ny = 2\n"}) == "\n".join(after) + "\n"
    with pytest.raises(ValueError, match="lines 1 to"):
        patient.treated({1000: ""})


@pytest.mark.slow
@pytest.mark.parametrize("name", ALL)
def test_each_fault_alone_is_found_at_its_line(name):
    patient = ward(name)
    assert examine(patient, patient.healthy) == ([], "")
    report = dry_run_of(patient, patient.healthy)
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


def test_a_server_can_read_three_of_five_clients():
    paths = list(datasets.classes(datasets.bundled().eval_csv))[:6]
    sent = {name: rest.read_request(body)[0] for name, body in requests(paths).items()}
    files = [path.read_bytes() for path in paths]
    assert sorted(sent["Dora"]) == sorted(files) and sent["Dora"] != files
    assert sent["Eve"][:-1] == files[:-1] and files[-1].startswith(sent["Eve"][-1])
    assert not sent["Ann"][0].startswith(b"\xff\xd8")  # base64, read as it stands
    pictures = (sent["Ben"], sent["Cem"], files)
    ben, cem, honest = (Image.open(io.BytesIO(each[0])).convert("RGB") for each in pictures)
    assert ben.size == (TINY, TINY)
    assert abs(cem.getpixel((40, 40))[0] - honest.getpixel((40, 40))[2]) < 40


@pytest.mark.parametrize("name", (*ALL, *sorted(NO_PORTS)))
def test_a_cell_becomes_the_sick_program_and_the_healthy_one(name):
    patient = ward(name)
    head = f"%%writefile {name}.py\n# TODO 1b: fix it\n"
    cell = programs.expand(f"{head}# PROGRAM: {name}")
    assert f"{marks.starter(cell)}\n" == head + patient.sick
    assert f"{sources.without_marks(cell)}\n" == head + patient.healthy
    texts = {}
    exec(programs.as_python(sources.without_marks(cell)), texts)
    assert texts[f"{name}.py"].endswith(patient.healthy.rstrip())


def test_a_learners_changes_are_found_whatever_comments_stand_beside_them():
    patient = ward("plateau")
    remark = patient.sick.replace("def inference", "# the model\n\ndef inference")
    assert patient.changes(patient.sick) == patient.changes(remark) == []
    fixed = remark.replace("10, tf.nn.softmax", "10")
    (change,) = patient.changes(fixed)
    assert change.sick == [27] and fixed.splitlines()[change.edited[0] - 1].startswith("    return")
    (change,) = patient.changes(patient.sick.replace("    scores = inference(features)\n", ""))
    assert (change.sick, change.edited, change.at) == ([31], [], 31)


@pytest.mark.parametrize(
    "old, new, told",
    [
        (".shuffle(512)", "", "no longer shuffles: its examples come in the same order"),
        (".shuffle(512)", ".shuffle(16)", "shuffles less than before"),
        (
            ".shuffle(512).repeat()",
            ".shuffle(512, reshuffle_each_iteration=False).repeat()",
            "no longer shuffles again in each epoch",
        ),
        (', name="scores"', "", "scores/bias, scores/kernel became dense/bias, dense/kernel"),
    ],
)
def test_a_cure_that_takes_a_feature_away_is_no_cure(old, new, told):
    patient = ward("plateau")
    assert patient.healthy.count(old) == 1
    assert told in examine(patient, patient.healthy.replace(old, new))[1]
