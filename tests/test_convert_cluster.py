"""The converter on a real dask.distributed cluster: a scheduler and two worker processes."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from convert_data import Data, contents, start_and_wait_for_the_first_shard

from lab_utils.convert import ConversionError

distributed = pytest.importorskip("distributed", reason="the extra [cluster] is not installed")

# A bucket that is there and cannot be read.
BROKEN_BUCKET = """
from apache_beam.io.filesystem import FileSystem
from apache_beam.io.localfilesystem import LocalFileSystem

class Broken(LocalFileSystem):
    scheme = classmethod(lambda cls: "broken")
    exists = lambda self, path: True

    def open(self, path, **_):
        raise OSError("503 Service Unavailable")
"""


class Cluster:
    """A scheduler, and workers that are started in a folder of their own, as on other machines."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.workers: list[subprocess.Popen] = []
        self.file = folder / "scheduler.json"
        self.scheduler = self._start("scheduler", "--port=0", "--host=127.0.0.1", "--no-show")
        while not self.file.exists():
            assert self.scheduler.poll() is None
            time.sleep(0.05)

    def _start(self, what: str, *flags: str) -> subprocess.Popen:
        command = [sys.executable, "-m", f"distributed.cli.dask_{what}"]
        flags = (f"--scheduler-file={self.file}", "--no-dashboard", *flags)
        with open(self.folder / f"{what}.log", "ab") as log:
            return subprocess.Popen([*command, *flags], stdout=log, stderr=log, cwd=self.folder)

    def have(self, count: int) -> None:
        """Have so many workers."""
        script = self.folder / "preload.py"
        script.write_text(BROKEN_BUCKET)
        self.workers = [worker for worker in self.workers if worker.poll() is None]
        while len(self.workers) < count:
            own = ("--nthreads=1", "--no-nanny", f"--preload={script}")
            place = ("--host=127.0.0.1", f"--local-directory={self.folder}")
            self.workers.append(self._start("worker", *own, *place))
        with distributed.Client(scheduler_file=str(self.file)) as client:
            client.wait_for_workers(count, timeout=60)

    def tasks_done(self) -> dict[str, int]:
        with distributed.Client(scheduler_file=str(self.file)) as client:
            return client.run(lambda dask_worker: dask_worker.state.executed_count)

    @property
    def flags(self) -> list[str]:
        return ["--runner=DaskRunner", f"--dask_scheduler_file={self.file}"]

    def stop_workers(self) -> None:
        for worker in self.workers:
            worker.kill()
            worker.wait()
        self.workers = []


@pytest.fixture(scope="module")
def running(tmp_path_factory) -> Iterator[Cluster]:
    cluster = Cluster(tmp_path_factory.mktemp("cluster"))
    try:
        yield cluster
    finally:
        cluster.stop_workers()
        cluster.scheduler.kill()
        cluster.scheduler.wait()


@pytest.fixture
def cluster(running) -> Cluster:
    running.have(2)
    return running


@pytest.fixture
def data(tmp_path) -> Data:
    return Data(tmp_path)


@pytest.fixture
def large(data) -> Data:
    data.write("train", [f"{n % 100}.jpg,roses".encode() for n in range(4_000)])
    return data


def test_the_same_bytes_by_both_workers_and_with_relative_paths(data, cluster, monkeypatch):
    data.convert(train_shards=8, eval_shards=4)
    here = contents(data.out)
    monkeypatch.chdir(data.folder)
    data.folder = Path()
    data.out = Path("by dask")
    before = cluster.tasks_done()
    data.convert(train_shards=8, eval_shards=4, beam_flags=cluster.flags)
    assert contents(data.out) == here
    assert len(here) == 12
    after = cluster.tasks_done()
    assert len(after) == 2
    assert all(count > before[worker] for worker, count in after.items())


@pytest.mark.slow
def test_a_worker_that_is_killed_loses_nothing(large, cluster):
    flags = ["--train_shards=8", "--eval_shards=2"]
    process = start_and_wait_for_the_first_shard(large, *flags, *cluster.flags)
    cluster.workers[0].kill()
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors
    by_dask = contents(large.out)
    assert not [path for path in large.out.iterdir() if path.name.startswith(".")]
    large.out = large.folder / "here"
    large.convert(train_shards=8, eval_shards=2)
    assert by_dask == contents(large.out)


def test_a_shard_that_fails_is_named_with_its_host_and_reason(data, cluster):
    rows = [f"{n}.jpg,roses".encode() for n in range(90)]
    data.write("train", [*rows, b"broken://bucket/a.jpg,roses"])
    with pytest.raises(
        ConversionError,
        match=rf"shard train-0000[01]-of-00002 failed 3 times on {os.uname().nodename}, the last time "
        r"for this: \S+train.csv, row 91 \(broken://bucket/a.jpg,roses\): OSError: 503 Service Unavailable",
    ):
        data.convert(train_shards=2, beam_flags=cluster.flags)
    assert list(data.out.iterdir()) == []
