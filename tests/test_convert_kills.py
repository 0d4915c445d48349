"""The converter struck in the midst of its work: nothing half-made looks finished, nothing is left."""

import signal
import threading
from collections import Counter

import psutil
import pytest
from convert_data import Data, features, records, start_and_wait_for_the_first_shard

from lab_utils.convert import ManifestError, read_manifest, running


@pytest.fixture
def large(tmp_path, monkeypatch) -> Data:
    """So many rows that a run can be struck in the midst of them, and temporary files apart."""
    (tmp_path / "tmp").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    data = Data(tmp_path)
    data.write("train", [f"{n % 100}.jpg,roses".encode() for n in range(5_000)])
    return data


@pytest.fixture
def endless(large) -> Data:
    """So many rows that a run which is struck late, on a busy machine, has not ended yet."""
    large.write("train", [f"{n % 100}.jpg,roses".encode() for n in range(40_000)])
    return large


def left(data: Data) -> list[str]:
    """What lies in the output folder and among the temporary files."""
    return sorted(path.name for path in [*data.out.iterdir(), *(data.folder / "tmp").iterdir()])


@pytest.mark.parametrize("flags", [(), ("--workers=2", "--train_shards=8")])
def test_a_killed_run_leaves_nothing_that_looks_finished_and_the_next_clears_up(large, flags):
    process = start_and_wait_for_the_first_shard(large, *flags)
    workers = psutil.Process(process.pid).children()
    process.kill()
    process.communicate()
    _, alive = psutil.wait_procs(workers, timeout=60)
    assert not alive
    assert any(name.startswith(".in-progress-") for name in left(large))
    with pytest.raises(ManifestError, match="did not finish"):
        read_manifest(str(large.out))
    result = large.command("--train_shards=3")
    assert result.returncode == 0, result.stderr
    assert not [path for path in large.out.iterdir() if path.name.startswith(".")]
    numbers = Counter(
        features(record)["image/filename"]
        for path in read_manifest(str(large.out)).paths("train")
        for record in records(path)
    )
    assert numbers == {f"{n}.jpg".encode(): 50 for n in range(100)}


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupt_leaves_nothing(endless, number, status):
    process = start_and_wait_for_the_first_shard(endless)
    process.send_signal(number)
    _, errors = process.communicate(timeout=120)
    assert process.returncode == status
    assert errors.splitlines()[-1] == "interrupted; no new result was published"
    assert "Traceback" not in errors
    assert left(endless) == []


def test_a_worker_that_dies_ends_the_run_with_a_reason(endless):
    process = start_and_wait_for_the_first_shard(endless, "--workers=2", "--train_shards=8")
    workers = psutil.Process(process.pid).children()
    assert len(workers) == 2
    workers[0].kill()
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 1
    assert errors.splitlines()[-1].startswith("error: a worker process died")
    assert "Traceback" not in errors, errors
    assert left(endless) == []
    assert not any(worker.is_running() for worker in workers)


def test_a_worker_of_an_earlier_run_that_ends_late_does_not_end_this_one():
    """Beam's threads raise when a run's workers are ended with it: on a busy machine, during the next run."""
    go = threading.Event()

    def keep():
        go.wait()
        raise RuntimeError("Worker subprocess exited with return code -9")

    earlier, own = (threading.Thread(target=keep, name="run_worker") for _ in range(2))
    earlier.start()
    with running._dead_workers() as dead:
        own.start()
        go.set()
        earlier.join()
        own.join()
    assert len(dead) == 1


def test_of_two_conversions_as_processes_the_second_is_refused_at_its_start(endless):
    process = start_and_wait_for_the_first_shard(endless)
    process.send_signal(signal.SIGSTOP)  # so that it has not ended before the second one begins
    second = endless.command("--overwrite")
    assert second.returncode == 1
    assert "another conversion is writing into" in second.stderr
    assert process.poll() is None
    process.kill()
    process.communicate()
