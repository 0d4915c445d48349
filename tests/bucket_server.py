"""A bucket in a box: gs:// by its real protocol (the JSON API), several requests at once.

gcp-storage-emulator keeps the objects.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http import server
from io import BytesIO

from gcp_storage_emulator.handlers import buckets
from gcp_storage_emulator.server import RequestHandler
from gcp_storage_emulator.storage import Storage


class _Handler(RequestHandler):
    def __init__(self, lock: threading.Lock, *arguments):
        self.lock = lock
        super().__init__(*arguments)

    def _answer(self, handle) -> None:
        """Read the request's body outside of the lock: the emulator is made for one request at a time."""
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        with self.lock:
            self.rfile = BytesIO(body)
            handle()

    def do_GET(self):
        self._answer(super().do_GET)

    def do_POST(self):
        self._answer(super().do_POST)

    def do_PUT(self):
        self._answer(super().do_PUT)

    def do_DELETE(self):
        self._answer(super().do_DELETE)


@contextmanager
def use_bucket(monkeypatch) -> Iterator[None]:
    """Serve gs://bucket on this machine, and have the client of gs:// reach it."""
    storage = Storage(use_memory_fs=True)
    buckets.create_bucket("bucket", storage)
    httpd = server.ThreadingHTTPServer(
        ("127.0.0.1", 0), partial(_Handler, threading.Lock(), storage)
    )
    httpd.handle_error = lambda *_: None  # a client that was cut off
    threading.Thread(target=httpd.serve_forever, daemon=True).start()
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", f"http://127.0.0.1:{httpd.server_port}")
    monkeypatch.setenv("NO_GCE_CHECK", "true")
    monkeypatch.setenv("GOOGLE_CLOUD_PROJECT", "none")
    try:
        yield
    finally:
        httpd.shutdown()
        httpd.server_close()
