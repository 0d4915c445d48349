"""The dry run as a tool of one's own: findings set aside, the JSON report's schema, pytest."""

import json
import subprocess
import sys
from dataclasses import replace
from importlib import resources
from pathlib import Path

import dry_run_reports
import jsonschema
import pytest
from test_dry_run_main import MODEL, PORT, RIGHT, command

from lab_utils.common.source import Place
from lab_utils.dry_run.records import Severity, Stage, StageResult, Status
from lab_utils.dry_run.report import html
from lab_utils.dry_run.report.report import Report


def finding(rule, code="", file="my folder/port.py", line=12):
    found = dry_run_reports.finding(rule, Stage.READ, Severity.ERROR)
    return replace(found, place=Place(file=file, line=line, column=5 if line else None, code=code))


def report(*findings):
    stage = StageResult(Stage.READ, Status.DONE, findings=list(findings))
    return Report("a port", "v2:2x2", 8, [stage])


@pytest.mark.parametrize(
    ("ignore", "left"),
    [
        ((), ["TPU201", "TPU305"]),
        (("TPU3",), ["TPU201"]),
        (("TPU201", "TPU305"), []),
    ],
)
def test_findings_are_set_aside(ignore, left):
    outcome = report(finding("TPU201"), finding("TPU305"))
    outcome.set_aside(ignore)
    assert [found.rule for found in outcome.findings] == left
    assert len(outcome.ignored) == 2 - len(left)
    assert outcome.ready is (not left) and outcome.exit_status == (1 if left else 0)
    for found in outcome.ignored:
        assert f"{found.rule} at" in html.fragment(outcome)
        assert f"{len(outcome.ignored)} ignored" in outcome.verdict_sentence
    written = json.loads(outcome.to_json())["ignored"]
    assert [found["rule"] for found in written] == [found.rule for found in outcome.ignored]


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
