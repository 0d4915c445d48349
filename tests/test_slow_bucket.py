"""The bucket with a set latency waits once a request, and several streams wait at the same time."""

from lab_utils.datasets.slow_bucket import SlowBucket


def test_each_request_waits_and_streams_wait_together(tmp_path):
    for name in "abcd":
        (tmp_path / name).write_bytes(bytes(range(200)))
    bucket = SlowBucket(tmp_path, latency=0.02)
    assert bucket.read("a", 195, 50) == bytes(range(195, 200))
    assert bucket.read_all("abcd", 100) >= 8 * 0.02
    assert bucket.read_all("abcd", 200, streams=4) < bucket.read_all("abcd", 200)
