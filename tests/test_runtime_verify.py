"""The self-check of a real run, on the CPU and small; and the verdicts on reports from machines not here."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

from lab_utils.runtime import verify
from lab_utils.runtime.__main__ import main
from lab_utils.runtime.verify import training

# The command in a process of its own, as Keras takes one backend a process; on two virtual cores.
COMMAND = "-m lab_utils.runtime --verify --batch 4 --image_size 32 --output report.json"
TWO_CORES = {"XLA_FLAGS": "--xla_force_host_platform_device_count=2"}
PLANTED = {"USER": "quxuserzz", "LOGNAME": "quxuserzz", "HOSTNAME": "quxhostzz"}


@pytest.mark.rotating(3)  # lab 12 runs it where its code has changed
def test_on_a_cpu_the_step_learns_and_each_figure_says_its_kind(tmp_path):
    folder = tmp_path / "quxfolderzz"
    folder.mkdir()
    command = [sys.executable, *COMMAND.split()]
    environ = os.environ | TWO_CORES | PLANTED
    ran = subprocess.run(command, capture_output=True, text=True, cwd=folder, env=environ)
    assert ran.returncode == 0 and not ran.stderr, ran.stderr
    report = json.loads((folder / "report.json").read_text())
    assert list(report["checks"].values()) == [False, True, True]
    assert (report["platform"], report["cores"], len(report["losses"])) == ("cpu", 2, 11)
    assert report["verdict"].startswith("No TPU: this ran on CPU, and the step learns.")
    assert all(each["value"] > 0 for each in report["figures"])
    kinds = {each["name"]: each["kind"] for each in report["figures"]}
    assert kinds.pop("least time of the step, v5e").startswith("computed by the TPU compiler")
    assert len(kinds) == 5 and set(kinds.values()) == {"measured here"}
    text = json.dumps(report)
    assert "/" not in text.replace("1/s", "").replace("TFLOP/s", "") and "qux" not in text
    assert "qux" not in ran.stdout.rpartition("Written: ")[0]


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
from lab_utils.runtime.verify import training
figures, losses = training.train(jax.devices()[:1], 4, 32, "mixed_bfloat16")
assert losses[-1] < losses[0], losses
for chip in chips.CHIPS.values():
    devices = _jax.tpu_devices(chip.example)
    assert devices[0].device_kind in chip.jax_kinds, chip
    assert len(devices) == chips.cores(chip.example), chip
assert training.compute("TPU v4", 4, 32, "mixed_bfloat16") > 0
"""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr[-2000:]


def test_a_compiler_that_ends_its_process_costs_the_bound_alone(monkeypatch):
    monkeypatch.setattr(training.sys, "executable", "/bin/false")
    assert training.least_time("TPU v5 lite", 4, 32, "float32") is None


def a_report(step=3.0, least=1.5, platform="tpu", losses=(1.8, 0.5), **more):
    values = {"first step": 9.0, "step": step} | (
        {"least time of the step": least} if least else {}
    )
    figures = [training.figure(name, value, "ms", "measured") for name, value in values.items()]
    report = {"platform": platform, "tpu_chips": 0, "losses": list(losses), "figures": figures}
    return report | more


def test_a_batch_that_memory_is_too_small_for_is_a_sentence(monkeypatch, capsys):
    def verified(batch, image_size):
        return np.zeros((batch, image_size, image_size, 3))

    monkeypatch.setattr(verify, "verify", verified)
    monkeypatch.setattr(sys, "argv", ["runtime", "--verify", f"--batch={10**12}"])
    with pytest.raises(SystemExit) as end:
        main()
    said = capsys.readouterr().err.splitlines()[-1]
    assert end.value.code == 2 and "could not be run: Unable to allocate" in said


@pytest.mark.parametrize(
    ("report", "says"),
    [
        (a_report(), "The chip can be used: a step takes 2.0 times the least time."),
        (a_report(least=None), "The chip can be used. There is no bound"),
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


def test_what_would_not_end_is_refused_before_anything_starts(capsys):
    with pytest.raises(ValueError, match="multiple of 32, and batch must be at least 0"):
        verify.verify(-1)
    assert not capsys.readouterr().out
