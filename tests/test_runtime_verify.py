"""The self-check of a real run, on the CPU and small; and the verdicts on reports from machines not here."""

import json
import os
import subprocess
import sys

import pytest

from lab_utils.runtime import verify
from lab_utils.runtime.verify import least_time
from lab_utils.runtime.verify import report as report_

SMALL = ["--batch", "4", "--image_size", "32"]
TWO_CORES = {"XLA_FLAGS": "--xla_force_host_platform_device_count=2"}


def run(*arguments, cwd=None, **variables):
    """The command in a process of its own: Keras takes one backend a process."""
    return subprocess.run(
        [sys.executable, *arguments],
        capture_output=True,
        text=True,
        cwd=cwd,
        env=os.environ | variables,
    )


@pytest.fixture(scope="module")
def written(once):
    """The command's output, and its report, on two virtual cores."""
    folder, user, host = PLANTED
    names = {"USER": user, "LOGNAME": user, "HOSTNAME": host}

    def verify_there(place):
        arguments = ["-m", "lab_utils.runtime", "--verify", *SMALL]
        arguments += ["--output", str(place / "report.json")]
        ran = run(*arguments, cwd=place, **TWO_CORES, **names)
        assert ran.returncode == 0, ran.stderr
        assert not ran.stderr
        (place / "stdout").write_text(ran.stdout)

    place = once(folder, verify_there)
    return (place / "stdout").read_text(), json.loads((place / "report.json").read_text())


def test_a_cpu_is_no_chip_and_the_step_learns(written):
    _, report = written
    assert report["checks"] == {
        "a TPU was used": False,
        "the loss is finite": True,
        "the loss falls": True,
    }
    assert report["platform"] == "cpu" and report["cores"] == 2
    assert len(report["losses"]) == 11
    assert report["verdict"].startswith("No TPU: this ran on CPU, and the step learns.")
    assert "nothing against either" in report["verdict"]


def test_each_figure_says_its_kind(written):
    _, report = written
    kinds = {each["name"]: each["kind"] for each in report["figures"]}
    assert kinds.pop("least time of the step, v5e").startswith("computed by the TPU compiler")
    assert len(kinds) == 5 and set(kinds.values()) == {"measured here"}
    assert all(each["value"] > 0 for each in report["figures"])


PLANTED = "quxfolderzz", "quxuserzz", "quxhostzz"  # no word of a report


def test_it_holds_no_names_and_no_paths(written):
    """The command ran in a folder, and as a user, of names that occur nowhere else."""
    stdout, report = written
    text = json.dumps(report)
    assert "/" not in text.replace("1/s", "").replace("TFLOP/s", "")
    for name in PLANTED:
        assert name not in text and name not in stdout.rpartition("Written: ")[0]


@pytest.mark.slow
def test_in_bfloat16_and_for_every_kind_of_chip():
    """A TPU's own settings; and each topology's core bears the name under which it is looked up."""
    code = """
import os
from lab_utils import runtime
from lab_utils.runtime import chips
runtime.prepare_tpu("jax")
os.environ["KERAS_BACKEND"] = "jax"
import jax
from lab_utils.dry_run.private import jax as _jax
from lab_utils.runtime.verify import least_time, training
figures, losses = training.train(jax.devices()[:1], 4, 32, "mixed_bfloat16")
assert losses[-1] < losses[0], losses
for chip in chips.CHIPS.values():
    assert _jax.tpu_devices(chip.example)[0].device_kind in chip.jax_kinds, chip
assert least_time.compute("TPU v4", 4, 32, "mixed_bfloat16") > 0
"""
    ran = run("-c", code)
    assert ran.returncode == 0, ran.stderr[-2000:]


def test_a_compiler_that_ends_its_process_costs_the_bound_alone(monkeypatch):
    monkeypatch.setattr(least_time.sys, "executable", "/bin/false")
    assert least_time.least_time("TPU v5 lite", 4, 32, "float32") is None


def test_an_error_is_told_without_names_and_paths(monkeypatch):
    monkeypatch.setattr(report_.getpass, "getuser", lambda: "quxuserzz")
    message = f"XlaRuntimeError: /home/quxuserzz/models/libtpu.so of quxuserzz: {'x' * 900}"
    told = report_.anonymous(message)
    assert told.startswith("XlaRuntimeError: libtpu.so of ...: xxx") and len(told) == 600


def figure(name, value, unit="ms"):
    return {"name": name, "value": value, "unit": unit, "kind": "measured here"}


def a_report(step=3.0, least=1.5, platform="tpu", losses=(1.8, 0.5), **more):
    figures = [figure("first step", 9.0), figure("step", step)]
    figures += [figure("least time of the step, v5e", least)] if least else []
    report = {"platform": platform, "tpu_chips": 0, "losses": list(losses), "figures": figures}
    return report | more


@pytest.mark.parametrize(
    ("report", "says"),
    [
        (a_report(), "The chip is reached: a step takes 2.0 times the least time."),
        (a_report(least=None), "The chip is reached. No bound"),
        (a_report(step=1.0), "the clock"),
        (a_report(losses=[1.8, float("nan")]), "does not learn"),
        (a_report(losses=[1.8, 1.9]), "does not learn"),
        (a_report(platform="gpu"), "No TPU: this ran on GPU"),
        (a_report(platform="cpu", tpu_chips=4), "JAX did not use them"),
        (a_report(platform="cpu", least=None), "and the step learns."),
        (a_report(losses=[], error="XlaRuntimeError: busy"), "could not be run to its end (Xla"),
    ],
)
def test_verdicts(report, says):
    assert says in verify.verdict(report)


@pytest.mark.parametrize(
    ("batch", "size", "words"),
    [(-1, 128, "1 or more"), (0, 50, "multiple of 32")],
)
def test_what_would_not_end_is_refused_before_anything_starts(batch, size, words):
    with pytest.raises(ValueError, match=words):
        verify.verify(batch, size, say=pytest.fail)
