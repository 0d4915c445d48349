"""The converter struck in the midst of its work: nothing half-made looks finished, nothing is left."""

import signal
from collections import Counter

import pytest
from convert_data import Data, features, records, start_and_wait_for_the_first_shard

from lab_utils.convert import ConversionError, read_manifest


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


def test_a_killed_run_leaves_nothing_that_looks_finished_and_the_next_clears_up(large):
    process = start_and_wait_for_the_first_shard(large)
    process.kill()
    process.communicate()
    assert any(name.startswith(".in-progress-") for name in left(large))
    with pytest.raises(ConversionError, match="did not finish"):
        read_manifest(str(large.out))
    large.convert(train_shards=3)
    assert not [path for path in large.out.iterdir() if path.name.startswith(".")]
    numbers = Counter(
        features(record)["image/filename"]
        for path in read_manifest(str(large.out)).paths("train")
        for record in records(path)
    )
    assert numbers == {f"{n}.jpg".encode(): 50 for n in range(100)}


def test_an_interrupt_leaves_nothing(endless):
    process = start_and_wait_for_the_first_shard(endless)
    process.send_signal(signal.SIGTERM)
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 130
    assert errors.splitlines()[-1] == "interrupted; no new result was published"
    assert "Traceback" not in errors
    assert left(endless) == []


def test_of_two_conversions_as_processes_the_second_is_refused_at_its_start(endless):
    process = start_and_wait_for_the_first_shard(endless)
    process.send_signal(signal.SIGSTOP)  # so that it has not ended before the second one begins
    with pytest.raises(ConversionError, match="another conversion is writing into"):
        endless.convert(overwrite=True)
    assert process.poll() is None
    process.kill()
    process.communicate()
