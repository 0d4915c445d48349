"""A small server for an exported flowers model: TensorFlow Serving's predict requests over HTTP.

    python -m lab_utils.flowers.rest --saved_model run/export/NUMBER --port 8501

TensorFlow Serving's own server comes as a container or a Debian package, and not from PyPI. This one takes
the same requests at the same address (api_rest.md of github.com/tensorflow/serving, read 2026-11-22), from
this machine only. It prepares each picture as training did.
"""

import argparse
import base64
import contextlib
import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np

from lab_utils.common import command, proxies
from lab_utils.convert.errors import RejectError
from lab_utils.convert.images import to_rgb_jpeg
from lab_utils.flowers.predict import Model

_PATIENCE = 60  # seconds for which a caller may send nothing
_LARGEST = 2**30  # bytes of a request
INPUT, SIGNATURE = "image_bytes", "serving_default"
_ASK = """echo '{{"instances": [{{"b64": "'$(base64 -w0 {picture})'"}}]}}' | curl -d @- {url}:predict"""


class RequestError(ValueError):
    """A request that the server rejects: its text goes back to the caller, with the status."""

    def __init__(self, text: str, status: int = 400) -> None:
        super().__init__(text)
        self.status = status


def read_request(body: str | bytes) -> tuple[list[bytes], str]:
    """The pictures of a predict request, and the key of their answers: "predictions" or "outputs".

    A picture is bytes, which the request writes as {"b64": ...}; a plain string stands for its own letters.

    Raises:
        RequestError: it is not a predict request.
    """
    try:
        request = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise RequestError(
            f'JSON parse error: {error}. A picture is sent as {{"instances": [{{"b64": ...}}]}}.'
        ) from None
    if not isinstance(request, dict) or ("instances" in request) == ("inputs" in request):
        raise RequestError("The request is a JSON object with either 'instances' or 'inputs'.")
    if (signature := request.get("signature_name", SIGNATURE)) != SIGNATURE:
        raise RequestError(f"There is no signature {signature!r}; the model has {SIGNATURE}.")
    by_rows = "instances" in request
    values = request["instances"] if by_rows else _unnamed(request["inputs"])
    if not isinstance(values, list) or not values:
        raise RequestError("The request needs a list with an entry for each picture.")
    return [_picture(value) for value in values], "predictions" if by_rows else "outputs"


def _unnamed(value: Any) -> Any:
    """The value of the one input, whose name may be left out."""
    if not isinstance(value, dict) or "b64" in value:
        return value
    if value.keys() != {INPUT}:
        names = sorted(value)
        raise RequestError(f"The signature's inputs are ['{INPUT}']; the request has {names}.")
    return value[INPUT]


def _picture(value: Any) -> bytes:
    value = _unnamed(value)
    if isinstance(value, str):
        return value.encode(errors="replace")
    try:
        text = "".join(value["b64"].split())  # some encoders end lines
        return base64.b64decode(text + "=" * (-len(text) % 4), validate=True)
    except ValueError:  # binascii.Error is one
        raise RequestError("Unable to base64 decode") from None
    except (TypeError, KeyError, AttributeError):
        text = json.dumps(value)[:80]
        raise RequestError(f"{text} is neither a scalar string nor {{'b64': ...}}.") from None


def answer(body: str | bytes, model: Model) -> dict[str, Any]:
    """The answer to a predict request.

    Raises:
        RequestError: it is not a predict request, or a picture cannot be used.
    """
    pictures, key = read_request(body)
    try:
        jpegs = [to_rgb_jpeg(picture).data for picture in pictures]
    except RejectError as error:
        raise RequestError(f"A picture cannot be used: {error}") from None
    columns = {name: np.asarray(values).tolist() for name, values in model.answers(jpegs).items()}
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    return {key: rows if key == "predictions" else columns}


class Server(ThreadingHTTPServer):
    """A running server; `url` is the model's address."""

    request_queue_size = (
        128  # connections that wait: with socketserver's 5, fifty clients at once see resets
    )

    def __init__(self, saved_model: str | Path, name: str, port: int) -> None:
        """Raises what `serve` does."""
        super().__init__(("127.0.0.1", port), _Handler)
        self.path = f"/v1/models/{name}"
        self.url = f"http://127.0.0.1:{self.server_port}{self.path}"
        self.model = Model(saved_model)

    def command(self, picture: str) -> str:
        """What asks this server for a picture's class, in a shell."""
        return _ASK.format(picture=picture, url=self.url)

    def handle_error(self, *request: Any) -> None:
        """Prints a traceback, but for a caller that has gone."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(*request)

    def close(self) -> None:
        """Ends the server and frees its port."""
        self.shutdown()
        self.server_close()


class _Handler(BaseHTTPRequestHandler):
    wbufsize = -1  # an answer leaves in one piece
    timeout = _PATIENCE

    def do_POST(self) -> None:
        status, content = 404, {"error": f"There is no model at {self.path}."}
        try:
            body = self.rfile.read(self._length())
            if self.path == f"{self.server.path}:predict":
                status, content = 200, answer(body, self.server.model)
        except RequestError as error:
            status, content = error.status, {"error": str(error)}
            self._take_rest()
        except (
            OSError
        ):  # the caller has gone, or sends nothing: the thread ends with the connection
            raise
        except Exception as error:  # of the model: the server goes on
            status, content = 500, {"error": str(error)}
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(json.dumps(content).encode())

    def _take_rest(self) -> None:
        """Reads what is left of a body: the connection would else be reset, and the answer lost with it."""
        self.connection.settimeout(1)
        with contextlib.suppress(OSError):
            self.rfile.read1(2**16)

    def _length(self) -> int:
        """Bytes of the body. Raises RequestError where the request does not say them."""
        text = self.headers.get("Content-Length")
        if text is None:
            raise RequestError(
                "The request has no Content-Length: send the whole body at once, as `curl -d "
                "@file` does.",
                411,
            )
        if not text.isdecimal() or len(text) > len(str(_LARGEST)) or int(text) > _LARGEST:
            raise RequestError(
                f"Content-Length is a number of bytes up to {_LARGEST:,}, not {text[:40]}."
            )
        return int(text)

    def log_message(self, *_: Any) -> None:
        """Says nothing of single requests."""


def serve(saved_model: str | Path, name: str, port: int = 0) -> Server:
    """Serves a SavedModel until it is closed or the process ends; port 0 is a free one.

    Raises:
        OSError: the port is taken.
        OverflowError: it is none.
        RuntimeError: as `Model` has it.
    """
    proxies.spare_local()
    server = Server(saved_model, name, port)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


def main() -> int:
    """Runs the command line; returns its exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m lab_utils.flowers.rest",
        description="Serves an exported flowers model over HTTP.",
    )
    parser.add_argument("--saved_model", required=True, help="the folder export/NUMBER")
    parser.add_argument("--port", type=int, default=8501)
    flags = parser.parse_args()
    try:
        server = serve(flags.saved_model, "flowers", flags.port)
    except (OSError, OverflowError, RuntimeError) as error:
        print(f"rest: {flags.saved_model} on port {flags.port}: {error}", file=sys.stderr)
        return 1
    print(f"serving {server.url}:predict; Ctrl-C ends it. To ask it, in another terminal:")
    print(server.command("photograph.jpg"), flush=True)
    threading.Event().wait()
    return 0


if __name__ == "__main__":
    command.run(main)
