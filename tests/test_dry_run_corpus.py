"""The corpus of ports against the stages that build and read graphs; conftest.py prints the score."""

import os
import pathlib
import subprocess
import sys

import pytest
from dry_run_ports import (  # noqa: F401
    RIGHT,
    WRONG,
    WRONG_WHEN_COMPILED,
    WRONG_WHEN_RUN,
    rights,
    wrong_compile,
    wrong_read,
    wrong_run,
    wrong_trace,
)

from lab_utils.dry_run.compile import findings as compile_findings
from lab_utils.dry_run.compile.stage import compile_program
from lab_utils.dry_run.frontends.estimator import lower_estimator
from lab_utils.dry_run.lower.errors import CannotLower
from lab_utils.dry_run.read import inputs as read_input
from lab_utils.dry_run.read.stage import read
from lab_utils.dry_run.run.stage import run_program
from lab_utils.dry_run.trace.messages import trace_findings
from lab_utils.dry_run.trace.stage import trace
from lab_utils.dry_run.workload import Inputs

CORES = 8


def findings(port):
    inputs = Inputs(
        port.input_fn, port.eval_input_fn, port.predict_input_fn, port.serving_input_receiver_fn
    )
    traces = trace(port.estimator, inputs, cores=CORES)
    return trace_findings(traces) + read(traces, port.estimator, inputs)


def in_lines(found):
    return "\n".join(f"{f.rule} {f.where}: {f.why} {f.message[:300]}" for f in found) or "none"


@pytest.fixture(autouse=True)
def small_tensors_count_as_large(monkeypatch):
    """Spares the tests constants of hundreds of megabytes, and tables of gigabytes."""
    monkeypatch.setattr(read_input, "_LARGE", 2**20)
    monkeypatch.setattr(compile_findings, "TABLE_SHARE", 0.01)


@pytest.mark.parametrize("port", WRONG, ids=lambda port: f"{port.rule}-{port.name}")
def test_wrong_port_is_found_at_its_place(port):
    found = findings(port.make(True))
    own = [f for f in found if f.rule == port.rule]
    assert own, f"{port.rule} is missing; found: {in_lines(found)}"
    wanted = port.places()
    assert wanted, f"no line of {port.name} is marked # <- {port.rule}"
    assert any(place in f.where for f in own for place in wanted), f"{wanted}; {in_lines(own)}"
    others = [f for f in found if f.rule != port.rule and f.severity != "note"]
    assert not others, in_lines(others)


@pytest.mark.parametrize("port", WRONG, ids=lambda port: f"{port.rule}-{port.name}")
def test_the_fix_clears_the_finding(port):
    found = findings(port.make(False))
    assert not found, in_lines(found)


@pytest.mark.parametrize("make", RIGHT, ids=lambda make: make.__name__)
def test_right_port_yields_nothing(make):
    found = findings(make())
    assert not found, in_lines(found)


def findings_when_run(port):
    """What lowering the train step, and three steps on two virtual cores, find."""
    try:
        program, one_core = (
            lower_estimator(port.estimator, port.input_fn, cores=cores) for cores in (2, 1)
        )
    except CannotLower as error:
        return [error.finding()]
    return run_program(program, steps=3, one_core=one_core).findings


@pytest.mark.parametrize("wrong", [True, False], ids=["wrong", "mended"])
@pytest.mark.parametrize("port", WRONG_WHEN_RUN, ids=lambda port: f"{port.rule}-{port.name}")
def test_wrong_port_when_run(port, wrong):
    pytest.importorskip("jax")
    found = findings_when_run(port.make(wrong))
    assert (port.rule in {f.rule for f in found}) == wrong, in_lines(found)
    assert wrong or not found, in_lines(found)


@pytest.mark.parametrize("wrong", [True, False], ids=["wrong", "mended"])
@pytest.mark.parametrize("port", WRONG_WHEN_COMPILED, ids=lambda port: f"{port.rule}-{port.name}")
def test_wrong_port_when_compiled(port, wrong, own_cache):
    pytest.importorskip("libtpu")
    made = port.make(wrong)
    found = compile_program(
        lower_estimator(made.estimator, made.input_fn, cores=CORES), "v2:2x2"
    ).findings
    assert (port.rule in {f.rule for f in found}) == wrong, in_lines(found)
    assert wrong or not found, in_lines(found)


VERSION_ONE = """
import tensorflow as tf
from lab_utils import estimator
tf.compat.v1.disable_v2_behavior()
tf.get_logger().setLevel("ERROR")
import test_dry_run_corpus as corpus
for port in corpus.WRONG:
    if port.rule in ("TPU201", "TPU215", "TPU219", "TPU220", "TPU224"):
        for wrong in (True, False):
            rules = {f.rule for f in corpus.findings(port.make(wrong))}
            assert rules == ({port.rule} if wrong else set()), (port.name, wrong, rules)
print("as with version 2")
"""


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
