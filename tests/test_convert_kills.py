"""The converter struck in the midst of its work: nothing half-made looks finished, nothing is left."""

import os
import signal
import subprocess
import sys
import threading
from collections import Counter

import psutil
import pytest
from convert_data import COMMAND, Data, features, records, start_and_wait_for_the_first_shard

from lab_utils.common import leases
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
    assert [name.split("-")[0] for name in left(large)] == [".in", "lab_utils"]
    with pytest.raises(ManifestError, match="did not finish"):
        read_manifest(str(large.out))
    result = large.command("--train_shards=3")
    assert result.returncode == 0, result.stderr
    assert result.stderr.count("which a killed run had left") == 2
    assert left(large)[-1].startswith("train-")  # nothing hidden, nothing temporary
    assert not any(name.startswith(".") for name in left(large))
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


def test_a_worker_whose_launcher_is_gone_ends_at_once():
    command = [sys.executable, "-m", "lab_utils.convert.worker", "1"]  # not its parent
    assert subprocess.run(command, capture_output=True, timeout=60).returncode == 1


def test_what_lives_or_is_of_unknown_origin_is_not_dead(tmp_path):
    with leases.owned(str(tmp_path)):
        assert not leases.is_dead(str(tmp_path))
    assert leases.is_dead(str(tmp_path))
    (tmp_path / leases.OWNER).write_text("another machine")
    assert not leases.is_dead(str(tmp_path))
    os.remove(tmp_path / leases.OWNER)
    assert not leases.is_dead(str(tmp_path))


def test_where_a_file_system_has_no_locks_nothing_counts_as_dead(tmp_path, monkeypatch):
    def refuse(*_):
        raise OSError(95, "Operation not supported")

    with leases.owned(str(tmp_path)):
        pass
    monkeypatch.setattr(leases.fcntl, "flock", refuse)
    with leases.locked(str(tmp_path)) as there:
        assert not there
    assert not leases.is_dead(str(tmp_path))


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


@pytest.mark.slow
@pytest.mark.parametrize("overwrite", [False, True])
def test_of_two_conversions_as_processes_at_once_no_file_is_lost(large, overwrite):
    """Both may publish only where they are to overwrite; what stands there at the end is one's alone."""
    large.write("train", [f"{n % 100}.jpg,roses".encode() for n in range(1_000)])
    more = ["--overwrite"] if overwrite else []
    command = [*COMMAND, *large.flags, *more]
    both = [
        subprocess.Popen([*command, f"--train_shards={n}"], stderr=subprocess.PIPE, text=True)
        for n in (2, 3)
    ]
    said = [each.communicate()[1] for each in both]
    ended = sorted(each.returncode for each in both)
    assert ended == [0, 1] or (overwrite and ended == [0, 0]), said
    assert "Traceback" not in "".join(said)
    manifest = read_manifest(str(large.out))
    listed = [path for split in manifest.splits for path in manifest.paths(split)]
    assert sorted(map(str, large.out.glob("*.tfrecord"))) == sorted(listed)
    assert sum(len(records(path)) for path in manifest.paths("train")) == 1_000
