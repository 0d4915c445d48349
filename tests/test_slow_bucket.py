"""The bucket with a set latency: what it serves, and that it waits."""

import time

import pytest

from lab_utils.datasets.slow_bucket import SlowBucket


def test_reads_ranges_counts_requests_and_waits(tmp_path):
    (tmp_path / "a").write_bytes(bytes(range(200)))
    with SlowBucket(tmp_path, latency=0.05) as bucket:
        start = time.perf_counter()
        assert bucket.read("a", 10, 5) == bytes(range(10, 15))
        assert time.perf_counter() - start >= 0.05
        assert bucket.read("a", 195, 50) == bytes(range(195, 200))
        assert bucket.read("a") == bytes(range(200))
        assert bucket.requests == 3


def test_a_file_outside_or_missing_is_refused(tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "secret").write_bytes(b"x")
    with SlowBucket(tmp_path / "in", latency=0) as bucket:
        with pytest.raises(OSError, match="404"):
            bucket.read("../secret")
        with pytest.raises(OSError, match="none"):
            bucket.read("none")
