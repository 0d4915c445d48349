"""Programs after public bug reports: the fault is named at its line, the mended program is clean.

Each program of reports/sources was written after a report: with FAULTY in the environment it has
the report's fault, without it is mended. reports/README.md says which report, and what is said of it.
"""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

SOURCES = Path(__file__).parent / "reports" / "sources"
NAMES = sorted(path.stem for path in SOURCES.glob("[A-Z]*.py"))
# What stands under NOT CHECKED of a fault that no rule finds.
TOLD = {
    "S06": "metrics and sums of the cores' results",
    "J01": "the matrix unit rounds float32 operands to bfloat16",
    "T10": "tf.contrib.image.rotate",
    "U14": "not whether an evaluation leaves out examples",
}
# What the program itself ends with, at its line.
ENDED = {
    "R13": "different trace level",
    "R15": "at path model.activation",
    "S02": "unbound axis name: batch",
    "S07": "is given an object of class SGD among its arguments",
    "U10": "share batches out with strategy.experimental_distribute_dataset",
    "U12": "cannot reshape array of size 308",
}
# Right in the TensorFlow of today, and faulty in that of the report.
HEALED = ("K09",)
_LATER = {"3": "compile", "4": "compile,run"}


def run(name: str, faulty: bool, stages: str, *more: str) -> subprocess.CompletedProcess:
    """The command on a program."""
    path = SOURCES / f"{name}.py"
    text = path.read_text()
    target = [f"{path}:port"] if re.search(r"^def port\(", text, re.M) else ["--main", str(path)]
    target += ["--contrib"] if "tf.contrib" in text else []
    command = [sys.executable, "-m", "lab_utils.dry_run", *target, "--stages", stages]
    environment = {key: value for key, value in os.environ.items() if key != "FAULTY"}
    environment |= {"FAULTY": "1"} if faulty else {}
    return subprocess.run(
        [*command, "--no_cache", *more],
        capture_output=True, text=True, env=environment, cwd=Path(__file__).parents[1],
    )  # fmt: skip


def judged(name: str, faulty: bool, stages: str, folder: Path) -> dict:
    """The report of the command on a program, as JSON."""
    written = folder / "report.json"
    result = run(name, faulty, stages, "--json", str(written))
    assert written.exists(), result.stdout + result.stderr
    return json.loads(written.read_text())


def findings(report: dict) -> list[dict]:
    return [item for stage in report["stages"] for item in stage["findings"]]


def marks(name: str) -> list[tuple[str, int]]:
    """The rules that a program's faulty lines name, with the lines."""
    lines = (SOURCES / f"{name}.py").read_text().splitlines()
    found = ((re.search(r"# <- (TPU\d+)", line), number) for number, line in enumerate(lines, 1))
    return [(mark[1], number) for mark, number in found if mark]


def stages_of(name: str) -> str:
    later = {_LATER[rule[3]] for rule, _ in marks(name) if rule[3] in _LATER}
    return ",".join(["trace", "read", *sorted(later)])


@pytest.mark.rotating(20)
@pytest.mark.parametrize("name", NAMES)
def test_the_fault_of_a_report_is_named_at_its_line(name, tmp_path):
    id = name.partition("_")[0]
    if id in ENDED:
        result = run(name, faulty=True, stages=stages_of(name))
        said = result.stdout + result.stderr
        assert result.returncode == 2 and ENDED[id] in said and f"{name}.py:" in said, said
        return
    report = judged(name, faulty=True, stages=stages_of(name), folder=tmp_path)
    if id in TOLD:
        assert any(TOLD[id] in sentence for sentence in report["not_checked"]), report[
            "not_checked"
        ]
    elif id not in HEALED:
        found = {(item["rule"], item["place"].get("line")) for item in findings(report)}
        assert found & set(marks(name)), (found, marks(name))


@pytest.mark.rotating(20)
@pytest.mark.parametrize("name", NAMES)
def test_the_mended_program_of_a_report_is_clean(name, tmp_path):
    report = judged(name, faulty=False, stages=stages_of(name), folder=tmp_path)
    wrong = [item for item in findings(report) if item["severity"] != "note"]
    assert not wrong and report["verdict"] == "ready", (report["verdict"], wrong)


def test_every_program_has_its_row_in_the_table():
    table = (SOURCES.parent / "README.md").read_text()
    assert set(re.findall(r"^\| ([A-Z]\d+b?) \|", table, re.M)) == {
        n.partition("_")[0] for n in NAMES
    }
