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
FAILURES = ("429", "503", "reset")


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

    def failure(self) -> str | None:
        """Return the failure of a request, or None; it is counted."""
        with self.lock:
            if self._random.random() >= self.failing:
                return None
            kind = FAILURES[sum(self.count[kind] for kind in FAILURES) % len(FAILURES)]
            self.count[kind] += 1
            return kind


class _Handler(RequestHandler):
    def __init__(self, box: Box, *args):
        self.box = box
        super().__init__(box.storage, *args)

    def _answer(self, handle) -> None:
        time.sleep(self.box.latency)
        size = int(self.headers.get("content-length") or 0)
        failure = self.box.failure()
        if failure == "reset":
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
def use_bucket(monkeypatch) -> Iterator[Box]:
    """Serve gs://bucket on this machine, and have the client of gs:// reach it."""
    box = Box()
    httpd = server.ThreadingHTTPServer(("127.0.0.1", 0), partial(_Handler, box))
    httpd.handle_error = lambda *_: None  # a client that was cut off
    threading.Thread(target=httpd.serve_forever, daemon=True).start()
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", f"http://127.0.0.1:{httpd.server_port}")
    monkeypatch.setenv("NO_GCE_CHECK", "true")
    monkeypatch.setenv("GOOGLE_CLOUD_PROJECT", "none")
    try:
        yield box
    finally:
        httpd.shutdown()
        httpd.server_close()
