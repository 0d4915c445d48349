"""Engines other than this machine's: their flags, their jobs watched and cancelled, Beam's job service."""

import importlib.metadata
import os
import re
import shlex
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
import standin_runner
from convert_data import COMMAND, Data, contents

import lab_utils.convert
from lab_utils.convert import ConversionError
from lab_utils.convert.__main__ import _parser, main
from lab_utils.convert.engines import find_engine

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
    assert errors[-1] == "error: the job could not be started: no job server at localhost:1"
    assert "Traceback" not in "".join(errors)
    assert list(data.out.iterdir()) == []


def test_a_job_that_does_not_move_is_cancelled(data):
    with pytest.raises(
        ConversionError, match="nothing was converted for 0.01 minutes, after 0 of 100"
    ):
        data.convert(beam_flags=[STANDIN], stall_minutes=0.01)
    assert standin_runner.started[0].cancelled.is_set()
    assert list(data.out.iterdir()) == []


def test_a_job_that_ends_well_without_its_shards_is_no_success(data):
    with pytest.raises(ConversionError, match="shard train-00000-of-00001 was not written where"):
        data.convert(beam_flags=[STANDIN, "--standin_ends_as=DONE"])
    assert list(data.out.iterdir()) == []


DATAFLOW = ["--runner=DataflowRunner", "--project=p", "--region=r", "--temp_location=gs://b/tmp"]


@pytest.fixture
def no_dataflow(monkeypatch):
    """Stands in for the runner, whose libraries need not be here; everything before it is real."""
    fake = type("DataflowRunner", (standin_runner.StandIn,), {})
    monkeypatch.setattr("lab_utils.convert.engines.create_runner", lambda name: fake())


@pytest.mark.parametrize(
    ("flags", "problems"),
    [
        (DATAFLOW, ["--train_csv ", "--output_dir ", "is not in a bucket"]),
        (DATAFLOW, ["the workers lack this package: make its wheel"]),
    ],
)
def test_what_a_dataflow_job_lacks_is_told_before_it_starts(
    data, capsys, no_dataflow, flags, problems
):
    assert main([*data.flags, *flags]) == 1
    line = capsys.readouterr().err
    assert line.startswith("error: --runner DataflowRunner: ") and line.count("\n") == 1
    for problem in problems:
        assert problem in line
    assert not data.out.exists()


def test_the_dataflow_command_of_the_page_passes_and_stages_the_package(
    tmp_path, monkeypatch, no_dataflow
):
    from apache_beam.options.pipeline_options import PipelineOptions
    from apache_beam.portability.api import beam_runner_api_pb2
    from apache_beam.runners.portability.stager import Stager

    page = Path(lab_utils.convert.__file__).with_name("engines.md").read_text()
    command = re.search(r"lab_utils\.convert --runner Dataflow(?:.*\\\n)*.*", page)[0]
    words = shlex.split(command.replace("\\\n", " "))[1:]
    flags, beam_flags = _parser().parse_known_args(words)
    wheel = f"tpu_porting_labs-{importlib.metadata.version('tpu-porting-labs')}-py3-none-any.whl"
    monkeypatch.chdir(tmp_path)
    Path("dist").mkdir()
    Path("dist", wheel).write_bytes(b"")
    paths = {name: getattr(flags, name) for name in ("train_csv", "eval_csv", "output_dir")}
    engine = find_engine(beam_flags, None, paths)
    assert engine.remote and not engine.local
    resources = Stager.create_job_resources(PipelineOptions(engine.flags), str(tmp_path))
    staged = {
        beam_runner_api_pb2.ArtifactStagingToRolePayload.FromString(each.role_payload).staged_name
        for each in resources
    }
    assert {wheel, "extra_packages.txt"} <= staged
    assert wheel in (Path(lab_utils.__file__).parent / "convert/engines.md").read_text()


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


def test_through_beams_job_service_the_bytes_are_the_same(data, job_service):
    data.convert(train_shards=4)
    here = contents(data.out)
    data.out = data.folder / "by the service"
    flags = [
        "--runner=PortableRunner",
        f"--job_endpoint={job_service}",
        "--environment_type=LOOPBACK",
    ]
    result = subprocess.run(
        [*COMMAND, *data.flags, "--train_shards=4", *flags],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert result.returncode == 0, result.stderr
    assert contents(data.out) == here
