"""The flowers port, judged by the dry run for the TPU of the lectures and for one that learners can get."""

import pytest

from lab_utils.dry_run import dry_run
from lab_utils.flowers import port
from lab_utils.flowers.port import make_port
from lab_utils.runtime import chips

pytest.importorskip("libtpu", reason="the TPU compiler has wheels for Linux on x86-64 alone")


@pytest.mark.slow  # for v2:2x2 the whole job is judged in test_flowers_job.py
@pytest.mark.parametrize("topology", ["v2:2x2", "v5e:2x2"])
def test_ready_for(topology, tiny_records):
    # Of 64 pixels: the same layers as with the 128 of the training, and less work for the compiler.
    estimator, train, evaluate = make_port(
        tiny_records.folder, chips.cores(topology), image_size=64
    )
    stages = ("trace", "read", "compile")
    report = dry_run(
        estimator,
        train,
        topology,
        eval_input_fn=evaluate,
        stages=stages,
        cache=False,
        progress=False,
    )
    assert report.verdict == "ready", str(report)
    assert {step.name for step in report.compiled} == {"train step", "eval step"}


@pytest.mark.parametrize(
    ("flag", "message"),
    [
        ("--image_size=50", "image_size must be a multiple of 16"),
        ("--html=none/report.html", "none/report.html cannot be written"),
        ("--topology=v2-8", "'v2-8' is not a TPU topology"),
    ],
)
def test_a_mistaken_flag_is_refused(monkeypatch, capsys, tiny_records, flag, message):
    monkeypatch.setattr("sys.argv", ["port", f"--records={tiny_records.folder}", flag])
    with pytest.raises(SystemExit) as stopped:
        port.main()
    assert stopped.value.code == 2
    assert message in capsys.readouterr().err
