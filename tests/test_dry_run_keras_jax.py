"""Keras 3 on JAX as a subject: its faults at their lines, and right programs that are Ready."""

import json
import os
import pathlib
import subprocess
import sys

import pytest
from rules import keras_jax_frames, wrong_keras_jax
from rules.snippets import snippets

from lab_utils.dry_run import rules
from lab_utils.dry_run.records import Stage

HERE = pathlib.Path(__file__).parent
PORTS = wrong_keras_jax.PORTS
PAGES = [each for each in snippets() if each.rule in keras_jax_frames.FRAMES]


@pytest.fixture(scope="module")
def judge():
    """Asks a process of Keras on JAX for the report on a port, or on the code of a page."""
    pytest.importorskip("libtpu")
    process = subprocess.Popen(
        [sys.executable, "-m", "rules.keras_jax_worker"],
        cwd=HERE,
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(HERE), str(HERE.parent)])},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )

    def ask(stages=("trace", "read"), **request):
        print(json.dumps({"stages": list(stages)} | request), file=process.stdin, flush=True)
        return json.loads(process.stdout.readline())

    yield ask
    process.stdin.close()
    process.wait()


def stages_for(rule):
    """Those that show a rule."""
    stage = rules.rule(rule).stage
    return ("trace", "read") if stage in (Stage.TRACE, Stage.READ) else ("read", str(stage))


@pytest.mark.parametrize("wrong", [True, False], ids=["wrong", "fixed"])
@pytest.mark.parametrize("name", PORTS)
def test_a_fault_is_found_at_its_line(name, wrong, judge):
    port = PORTS[name]
    told = judge(stages_for(port.rule), port=name, wrong=wrong)
    own = [where for rule, _, where, _, _ in told["findings"] if rule == port.rule]
    if wrong:
        assert any(place in where for where in own for place in port.places()), told["text"]
    else:
        assert not own, told["text"]
        assert all(severity == "note" for _, severity, *_ in told["findings"]), told["text"]


@pytest.mark.parametrize("page", PAGES, ids=lambda each: f"{each.rule}-{each.side}-{each.number}")
def test_code_of_a_page(page, judge):
    stages = stages_for(page.rule)
    told = judge(stages, page=page.rule, side=page.side, number=page.number)
    found = {rule for rule, *_ in told["findings"]}
    assert (page.rule in found) == (page.side == "Wrong"), told["text"]
