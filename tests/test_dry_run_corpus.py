"""The corpus of ports: every rule finds its wrong port, and leaves the fixed one alone.

conftest.py prints the score.
"""

import os
import pathlib
import subprocess
import sys

import pytest
from frozen import rows, same
from rules import (  # noqa: F401
    RIGHT,
    WRONG,
    rights,
    wrong_calls,
    wrong_compile,
    wrong_feed,
    wrong_jax,
    wrong_read,
    wrong_run,
    wrong_trace,
)
from rules.judging import findings, in_lines, jobs, small_tensors_count_as_large  # noqa: F401

from lab_utils.dry_run.records import Stage

GRAPHS = (Stage.TRACE, Stage.READ)
OF_GRAPHS = [port for port in WRONG if port.stage in GRAPHS]
OF_STEPS = [port for port in WRONG if port.stage not in GRAPHS]


@pytest.mark.parametrize("port", OF_GRAPHS, ids=lambda port: f"{port.rule}-{port.name}")
def test_wrong_port_is_found_at_its_place(port):
    found = findings(lambda: port.make(True), port.rule)
    same("ports", f"{port.rule} {port.name} wrong", rows(found))
    own = [f for f in found if f.rule == port.rule]
    assert own, f"{port.rule} is missing; found: {in_lines(found)}"
    wanted = port.places()
    assert wanted, f"no line of {port.name} is marked # <- {port.rule}"
    assert any(place in f.where for f in own for place in wanted), f"{wanted}; {in_lines(own)}"
    others = [f for f in found if f.rule != port.rule and f.severity != "note"]
    assert not others, in_lines(others)


@pytest.mark.rotating(4)
@pytest.mark.parametrize("port", OF_GRAPHS, ids=lambda port: f"{port.rule}-{port.name}")
def test_the_fix_clears_the_finding(port):
    found = findings(lambda: port.make(False), port.rule)
    same("ports", f"{port.rule} {port.name} fixed", rows(found))
    assert not [each for each in found if each.severity != "note"], in_lines(found)


@pytest.mark.parametrize("make", RIGHT, ids=lambda make: make.__name__)
def test_right_port_yields_at_most_a_note(make):
    found = findings(make, "TPU101")
    same("ports", f"right {make.__name__}", rows(found))
    assert not [each for each in found if each.severity != "note"], in_lines(found)


@pytest.mark.parametrize(
    "wrong",
    [True, pytest.param(False, marks=pytest.mark.rotating(4))],
    ids=["wrong", "fixed"],
)
@pytest.mark.parametrize("port", OF_STEPS, ids=lambda port: f"{port.rule}-{port.name}")
def test_wrong_port_when_compiled_run_or_fed(port, wrong, jobs):  # noqa: F811
    found = findings(lambda: port.make(wrong), port.rule)
    same("ports", f"{port.rule} {port.name} {'wrong' if wrong else 'fixed'}", rows(found))
    own = [f for f in found if f.rule == port.rule]
    assert bool(own) == wrong, in_lines(found)
    marked = port.places() if wrong else []
    assert not marked or any(place in f.where for f in own for place in marked), in_lines(own)
    assert wrong or not [f for f in found if f.severity != "note"], in_lines(found)


VERSION_ONE = """
import tensorflow as tf
from lab_utils import estimator
tf.compat.v1.disable_v2_behavior()
tf.get_logger().setLevel("ERROR")
import test_dry_run_corpus as corpus
for port in corpus.WRONG:
    if port.rule in ("TPU201", "TPU215", "TPU219", "TPU220", "TPU224"):
        for wrong in (True, False):
            rules = {f.rule for f in corpus.findings(lambda: port.make(wrong), port.rule)}
            assert rules == ({port.rule} if wrong else set()), (port.name, wrong, rules)
print("as with version 2")
"""


@pytest.mark.slow
def test_training_is_judged_alike_with_version_1_behaviour():
    here = pathlib.Path(__file__).parent
    result = subprocess.run(
        [sys.executable, "-c", VERSION_ONE],
        cwd=here,
        env=os.environ | {"PYTHONPATH": str(here.parent)},
        capture_output=True,
        text=True,
    )
    assert result.stdout.strip().endswith("as with version 2"), result.stderr[-2000:]
