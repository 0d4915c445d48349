"""The flowers port, judged by the dry run for the TPU of the lectures and for one that learners can get."""

import pytest

from lab_utils.flowers import port

pytest.importorskip("libtpu", reason="the TPU compiler has wheels for Linux on x86-64 alone")


@pytest.mark.slow  # for v2:2x2 the whole job is judged in test_flowers_job.py
@pytest.mark.parametrize("topology", ["v2:2x2", "v5e:2x2"])
def test_ready_for(topology, tiny_records):
    # Of 64 pixels: the same layers as with the 128 of the training, and less work for the compiler.
    options = {"stages": ("trace", "read", "compile"), "cache": False, "progress": False}
    report = port.report(tiny_records.folder, 64, topology, **options)
    assert report.verdict == "ready", str(report)
    assert {step.name for step in report.compiled} == {"train step", "eval step"}
