"""A folder that is read as slowly as a bucket: each request waits, and a stream has a limited bandwidth.

Cloud storage answers a request after some tens of milliseconds and sends a limited number of bytes a second
in one stream. Both are settings here, so that a laptop without an account shows what they do to a reader.
"""

import os
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path


class SlowBucket:
    """The files of a folder, behind waiting times.

    Args:
        folder: what the bucket holds; names are paths below it.
        latency: seconds from a request to its first byte.
        bandwidth: bytes a second of one stream.
    """

    def __init__(self, folder: Path, latency: float = 0.03, bandwidth: float = 50e6) -> None:
        self.folder, self.latency, self.bandwidth = folder, latency, bandwidth

    def read(self, name: str, start: int, size: int) -> bytes:
        """At most `size` bytes of a file from `start` on, in one request."""
        with open(self.folder / name, "rb") as file:
            file.seek(start)
            data = file.read(size)
        time.sleep(self.latency + len(data) / self.bandwidth)
        return data

    def read_all(self, names: Sequence[str], buffer_size: int, streams: int = 1) -> float:
        """Seconds to read whole files, in pieces of `buffer_size` bytes, `streams` files at a time."""

        def read_file(name: str) -> None:
            # A listing gives sizes beforehand: this asks the file system, not the bucket.
            for start in range(0, os.path.getsize(self.folder / name), buffer_size):
                self.read(name, start, buffer_size)

        start = time.perf_counter()
        with ThreadPoolExecutor(streams) as pool:
            list(pool.map(read_file, names))
        return time.perf_counter() - start
