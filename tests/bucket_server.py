"""A bucket in a box: gs:// by its real protocol (the JSON API), slow and unreliable if that is wanted.

gcp-storage-emulator keeps the objects. Added here: several requests at once, latency and
failures.
"""

import json
import random
import socket
import struct
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http import server
from io import BytesIO

from gcp_storage_emulator.handlers import buckets
from gcp_storage_emulator.server import RequestHandler
from gcp_storage_emulator.storage import Storage

NAME = "bucket"
FAILURES = ("429", "503", "reset", "torn")


class Box:
    """What the server does to requests.

    Attributes:
        latency: seconds before each answer.
        failing: share of the requests that fail, by one of FAILURES in turn.
        count: of requests answered, and of failures of each kind.
    """

    def __init__(self):
        self.latency = 0.0
        self.failing = 0.0
        self.count: Counter[str] = Counter()
        self.lock = threading.Lock()
        self.storage = Storage(use_memory_fs=True)
        buckets.create_bucket(NAME, self.storage)
        self._random = random.Random(0)
        self._owed = False  # an upload to be torn: none was there when it was its turn

    def failure(self, size: int) -> str | None:
        """Return the failure of a request with so many bytes, or None; it is counted."""
        with self.lock:
            if self._owed and self.failing and size > 1:
                self._owed, kind = False, "torn"
            elif self._random.random() >= self.failing:
                return None
            else:
                kind = FAILURES[sum(self.count[each] for each in FAILURES) % len(FAILURES)]
                if kind == "torn" and size < 2:
                    self._owed, kind = True, "reset"
            self.count[kind] += 1
            return kind


class _Handler(RequestHandler):
    def __init__(self, box: Box, *args):
        self.box = box
        super().__init__(box.storage, *args)

    def _answer(self, handle) -> None:
        time.sleep(self.box.latency)
        size = int(self.headers.get("content-length") or 0)
        failure = self.box.failure(size)
        if failure == "torn":
            self.rfile.read(size // 2)
        if failure in ("reset", "torn"):
            # With no time to linger the kernel sends a reset.
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.close_connection = True
            return
        body = self.rfile.read(size) if size else b""
        if failure is not None:
            self._refuse(int(failure))
            return
        with self.box.lock:
            self.box.count["answered"] += 1
            self.rfile = BytesIO(body)
            handle()

    def _refuse(self, status: int) -> None:
        body = json.dumps({"error": {"code": status, "message": "by the box"}}).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        self._answer(super().do_GET)

    def do_POST(self):
        self._answer(super().do_POST)

    def do_PUT(self):
        self._answer(super().do_PUT)

    def do_DELETE(self):
        self._answer(super().do_DELETE)


@contextmanager
def bucket_server() -> Iterator[tuple[Box, str]]:
    """Serve gs://bucket on this machine; yields the box and the server's address (STORAGE_EMULATOR_HOST)."""
    box = Box()
    httpd = server.ThreadingHTTPServer(("127.0.0.1", 0), partial(_Handler, box))
    httpd.handle_error = lambda *_: None  # a client that was cut off
    thread = threading.Thread(target=httpd.serve_forever, daemon=True)
    thread.start()
    try:
        yield box, f"http://127.0.0.1:{httpd.server_port}"
    finally:
        httpd.shutdown()
        httpd.server_close()


@contextmanager
def use_bucket(monkeypatch) -> Iterator[Box]:
    """Have the client of gs:// reach a bucket of this kind."""
    with bucket_server() as (box, address):
        monkeypatch.setenv("STORAGE_EMULATOR_HOST", address)
        monkeypatch.setenv("NO_GCE_CHECK", "true")
        monkeypatch.setenv("GOOGLE_CLOUD_PROJECT", "none")
        yield box
