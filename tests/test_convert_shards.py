"""A shard that is tried again, tried twice at once, or does not arrive whole."""

import threading

import pytest
from convert_data import Data, contents

from lab_utils.convert import ConversionError, records
from lab_utils.convert.pipeline import _WriteShard


@pytest.fixture
def data(tmp_path) -> Data:
    return Data(tmp_path)


@pytest.fixture
def expected(data) -> dict[str, bytes]:
    data.convert(train_shards=4)
    found = contents(data.out)
    data.out = data.folder / "again"
    return found


def test_two_attempts_on_each_shard_at_once_give_each_once(data, expected, monkeypatch):
    process = _WriteShard.process

    def twice(self, shard):
        attempts = [threading.Thread(target=process, args=(self, shard)) for _ in range(2)]
        for attempt in attempts:
            attempt.start()
        for attempt in attempts:
            attempt.join()

    monkeypatch.setattr(_WriteShard, "process", twice)
    manifest = data.convert(train_shards=4)
    assert manifest.splits["train"].examples == 90
    assert contents(data.out) == expected


def test_a_shard_that_fails_once_is_tried_again(data, expected, monkeypatch):
    encode = records.encode_example
    failures = ["once"]

    def flaky(*arguments):
        if failures:
            failures.pop()
            raise OSError("stale file handle")
        return encode(*arguments)

    monkeypatch.setattr(records, "encode_example", flaky)
    data.convert(train_shards=4)
    assert contents(data.out) == expected
    assert not [path for path in data.out.iterdir() if path.name.startswith(".")]


def test_a_shard_that_did_not_arrive_whole_is_told(data, monkeypatch):
    monkeypatch.setattr("lab_utils.convert.accounting.storage.size", lambda path: 17)
    with pytest.raises(ConversionError, match="has 17 bytes, not the .* that its worker wrote"):
        data.convert(train_shards=4)
    assert list(data.out.iterdir()) == []
