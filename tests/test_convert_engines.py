"""Engines other than this machine's: their flags, their jobs watched and cancelled, Beam's job service."""

import os
import signal
import subprocess
import sys
import threading
import time

import pytest
import standin_runner
from convert_data import Data, contents

from lab_utils.convert import ConversionError
from lab_utils.convert.__main__ import main

STANDIN = "--runner=standin_runner.StandIn"


@pytest.fixture
def data(tmp_path, monkeypatch) -> Data:
    monkeypatch.setattr(standin_runner, "started", [])
    return Data(tmp_path)


def test_a_job_elsewhere_is_named_and_cancelled_by_ctrl_c(data, capfd):
    def interrupt():
        while not standin_runner.started:
            time.sleep(0.01)
        time.sleep(0.5)
        os.kill(os.getpid(), signal.SIGINT)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    threading.Thread(target=interrupt).start()
    try:
        assert main([*data.flags, STANDIN]) == 130
    finally:
        signal.signal(signal.SIGINT, before)
    errors = capfd.readouterr().err
    assert "cancelling the job ..." in errors
    assert standin_runner.started[0].cancelled.is_set()
    assert list(data.out.iterdir()) == []


def test_a_job_that_cannot_be_started_is_told_in_one_line(data, capfd):
    assert main([*data.flags, STANDIN, "--standin_ends_as=REFUSED"]) == 1
    errors = capfd.readouterr().err.splitlines()
    assert errors[-1] == "error: the pipeline failed: no job server at localhost:1"
    assert "Traceback" not in "".join(errors)
    assert list(data.out.iterdir()) == []


def test_a_job_that_ends_well_without_its_shards_is_no_success(data):
    with pytest.raises(ConversionError, match="shard train-00000-of-00001 was not written where"):
        data.convert(beam_flags=[STANDIN, "--standin_ends_as=DONE"])
    assert list(data.out.iterdir()) == []


@pytest.fixture
def job_service(tmp_path):
    """Beam's own job service, which stands before engines such as Flink."""
    port = tmp_path / "port"
    module = "apache_beam.runners.portability.local_job_service_main"
    with open(tmp_path / "service.log", "wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", module, "--port=0", f"--port_file={port}"],
            stdout=log,
            stderr=log,
            cwd=tmp_path,
        )
    try:
        while not (port.exists() and port.read_text()):
            assert process.poll() is None
            time.sleep(0.05)
        yield f"localhost:{port.read_text()}"
    finally:
        process.kill()
        process.wait()


@pytest.mark.slow  # Beam's own service: what engines such as Flink get
def test_through_beams_job_service_the_bytes_are_the_same(data, job_service):
    data.convert(train_shards=4)
    here = contents(data.out)
    data.out = data.folder / "by the service"
    flags = [
        "--runner=PortableRunner",
        f"--job_endpoint={job_service}",
        "--environment_type=LOOPBACK",
    ]
    data.convert(train_shards=4, beam_flags=flags)
    assert contents(data.out) == here
