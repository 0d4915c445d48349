"""A folder behind HTTP with the latency and bandwidth of a bucket: a server on this machine, and its client.

Cloud storage answers a request after some tens of milliseconds and sends a limited number of bytes a second
in one stream. Both are settings here, so that a laptop without an account shows what they do to a reader.
"""

import http.client
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

BLOCK = 256 * 1024  # bytes sent at a time


class SlowBucket:
    """Context manager: serves the files of `folder`, and reads them as a client, over HTTP on 127.0.0.1.

    Args:
        folder: what the bucket holds; names are paths below it.
        latency: seconds from a request to its first byte.
        bandwidth: bytes a second of one stream.

    Attributes:
        requests: how many reads were answered.
    """

    def __init__(self, folder: Path, latency: float = 0.03, bandwidth: float = 50e6):
        self.folder, self.latency, self.bandwidth = Path(folder).resolve(), latency, bandwidth
        self.requests = 0
        self._lock = threading.Lock()

    def __enter__(self) -> "SlowBucket":
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Handler, self))
        self._server.daemon_threads = True
        self._port = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *error: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def size(self, name: str) -> int:
        """The bytes of a file; asks the file system, not the bucket: a listing gives sizes beforehand."""
        return (self.folder / name).stat().st_size

    def read(self, name: str, start: int = 0, size: int | None = None) -> bytes:
        """At most `size` bytes of a file from `start` on, in one request; to its end where size is None.

        Raises:
            OSError: there is no such file.
        """
        until = self.size(name) if size is None else min(start + size, self.size(name))
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=60)
        try:
            connection.request("GET", f"/{name}", headers={"Range": f"bytes={start}-{until - 1}"})
            answer = connection.getresponse()
            body = answer.read()
        finally:
            connection.close()
        if answer.status != 206:
            raise OSError(f"{name}: the bucket answers {answer.status}")
        return body

    def read_all(self, names: Sequence[str], buffer_size: int, streams: int = 1) -> float:
        """Seconds to read whole files, in pieces of `buffer_size` bytes, `streams` files at a time."""

        def fetch(name: str) -> None:
            for start in range(0, self.size(name), buffer_size):
                self.read(name, start, buffer_size)

        start = time.perf_counter()
        with ThreadPoolExecutor(streams) as pool:
            list(pool.map(fetch, names))
        return time.perf_counter() - start

    def counted(self) -> None:
        """Notes a request."""
        with self._lock:
            self.requests += 1


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def __init__(self, bucket: SlowBucket, *arguments: Any):
        self.bucket = bucket
        super().__init__(*arguments)

    def do_GET(self) -> None:
        self.bucket.counted()
        time.sleep(self.bucket.latency)
        path = (self.bucket.folder / self.path.lstrip("/")).resolve()
        if not path.is_relative_to(self.bucket.folder) or not path.is_file():
            self.send_error(404)
            return
        first, last = map(int, self.headers["Range"].removeprefix("bytes=").split("-"))
        with path.open("rb") as file:
            file.seek(first)
            body = file.read(last + 1 - first)
        self.send_response(206)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        for place in range(0, len(body), BLOCK):
            block = body[place : place + BLOCK]
            time.sleep(len(block) / self.bucket.bandwidth)
            self.wfile.write(block)

    def log_message(self, *_: Any) -> None:
        """Says nothing: a server's log does not belong into a notebook."""
