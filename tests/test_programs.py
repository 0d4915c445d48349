"""Whole programs in other people's style: those that are right are ready, each planted fault is named.

conftest.py prints how many, with the seconds and the peak memory of the stages trace, read and lower.
"""

import functools
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import lanes
import pytest
from frozen import row, same
from programs import PROGRAMS, Fault, Whole, load
from programs.judge import judged

from lab_utils.dry_run import dry_run
from lab_utils.dry_run.feed import stage as feed_stage

HERE = Path(__file__).parent
FAULTS = [
    pytest.param(program, fault, marks=pytest.mark.rotating(20))
    for program in PROGRAMS
    for fault in program.faults()
]
READY = [
    pytest.param(program, marks=pytest.mark.rotating(4), id=program.name) for program in PROGRAMS
]
WHOLE_WAY = [  # all stages, with the compiler
    "ncf_recommender",
    pytest.param("multi_task_accumulator", marks=pytest.mark.slow),
    pytest.param("keras_trainer", marks=pytest.mark.slow),
]


@functools.cache
def folder() -> Path:
    """A folder for the programs and their data, for all tests of a process."""
    return Path(tempfile.mkdtemp(prefix="programs_"))


def verdict(program: Whole, fault: Fault | None = None) -> dict:
    """What the cheap stages say; with the name of the program's file."""
    if program.apart:
        faults = tuple(program.faults()) if lanes.rotation() == "all" else (fault,)
        return verdicts_apart(program, faults if fault else (None,))[fault]
    path = program.written(folder(), fault)
    lower = fault is None or fault.rule.startswith("TPU3")
    return {"file": path.name} | judged(path, folder(), lower)


@functools.cache
def verdicts_apart(program: Whole, wanted: tuple[Fault | None, ...]) -> dict:
    """The same of a program that needs a process of its own: with each of these faults, or as it is."""
    files = [program.written(folder(), fault) for fault in wanted]
    result = subprocess.run(
        [sys.executable, "-m", "programs.judge", folder(), *files],
        cwd=HERE,
        env=os.environ | {"PYTHONPATH": f"{HERE.parent}{os.pathsep}{HERE}"},
        capture_output=True,
        text=True,
    )
    lines = [json.loads(line) for line in result.stdout.splitlines() if line.startswith("{")]
    assert len(lines) == len(wanted), result.stderr[-3000:]
    found = [line | {"file": Path(line["file"]).name} for line in lines]
    return dict(zip(wanted, found, strict=True))


def answer(program: Whole, said: dict) -> dict:
    """What is frozen of a verdict: places in the program itself, and the names of failed stages."""
    return {
        "findings": sorted(
            row(rule, severity, where.replace(said["file"], f"{program.name}.py"))
            for rule, severity, where, *_ in said["findings"]
        ),
        "failed": [stage.partition(":")[0] for stage in said["failed"]],
    }


def in_lines(said: dict) -> str:
    return "\n".join(" ".join(part) for part in said["findings"]) or "no finding"


@pytest.mark.parametrize("program", READY)
def test_program_is_ready(program, record_property):
    said = verdict(program)
    record_property(
        "score", f"program {program.name}: {said['seconds']:.1f} s, {said['peak'] / 2**20:,.0f} MiB"
    )
    same("programs", program.name, answer(program, said))
    serious = [found for found in said["findings"] if found[1] != "note"]
    assert not serious, in_lines(said)
    assert not said["failed"], said["failed"]


@pytest.mark.parametrize(
    ("program", "fault"), FAULTS, ids=lambda each: getattr(each, "name", getattr(each, "rule", ""))
)
def test_planted_fault_is_named_at_its_line(program, fault):
    said = verdict(program, fault)
    planted = f"{program.name} {fault.rule} line {min(program.lines(fault))}"
    same("programs", planted, answer(program, said))
    own = [where for rule, _, where, *_ in said["findings"] if rule == fault.rule]
    assert own, in_lines(said)
    wanted = program.lines(fault)
    found = [re.search(rf"{re.escape(said['file'])}:(\d+)", where) for where in own]
    assert wanted & {int(line[1]) for line in found if line}, f"{wanted}: {in_lines(said)}"
    others = [each for each in said["findings"] if each[0] != fault.rule and each[1] != "note"]
    assert not others, in_lines(said)


@pytest.mark.parametrize("name", WHOLE_WAY)
def test_program_goes_through_all_stages(name, own_cache, monkeypatch):
    monkeypatch.setattr(feed_stage, "MOST_SECONDS", 0.3)
    pytest.importorskip("libtpu")
    program = next(each for each in PROGRAMS if each.name == name)
    path = program.written(folder())
    subject, data, *options = load(path).main(str(folder()))
    report = dry_run(subject, data, progress=False, **(options or [{}])[0])
    found = [[each.rule, each.severity, each.where] for each in report.findings]
    failed = [stage.stage for stage in report.stages if stage.status == "failed"]
    whole = answer(program, {"file": path.name, "findings": found, "failed": failed})
    same("programs", f"{name} all stages", whole | {"verdict": report.verdict})
    assert report.verdict == "ready", str(report)
    assert [stage.status for stage in report.stages[2:]] == ["done"] * 3, str(report)
