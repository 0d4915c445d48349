"""A SavedModel behind HTTP: the predict API of TensorFlow Serving, as far as labs need it.

    python -m lab_utils.flowers.rest --saved_model run/export/NUMBER --name flowers --port 8501

TensorFlow Serving's own server comes as a container or a Debian package, and not from PyPI. This one takes
the same requests to the same address, and gives answers and errors of the same form. It follows api_rest.md
and util/json_tensor.cc of github.com/tensorflow/serving (read 2026-11-22). It has no gRPC, does not join
requests that arrive together, serves one version of one model, and listens on this machine alone.
"""

import argparse
import base64
import json
import re
import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote

from lab_utils.common import command, proxies

SIGNATURE = "serving_default"
_LARGEST = 2**28  # bytes of a request


class RequestError(ValueError):
    """A request that the server rejects: its text goes back to the caller."""


@dataclass(frozen=True)
class PredictRequest:
    """What a caller asks: a value or nested list for each input, by its name."""

    signature: str
    inputs: dict[str, Any]
    by_rows: bool  # "instances" and "predictions"; else "inputs" and "outputs"


def read_request(body: str | bytes, signatures: Mapping[str, Mapping[str, bool]]) -> PredictRequest:
    """Reads the body of a predict request.

    Args:
        body: JSON.
        signatures: by name, and for each of its inputs whether that takes strings.

    Raises:
        RequestError: it is not a predict request, or does not fit the signature.
    """
    try:
        request = json.loads(body)
    except ValueError as error:
        raise RequestError(f"JSON parse error: {error}") from None
    if not isinstance(request, dict):
        raise RequestError("The request is not a JSON object.")
    if ("instances" in request) == ("inputs" in request):
        raise RequestError("The request needs either 'instances' or 'inputs', and not both.")
    signature = request.get("signature_name", SIGNATURE)
    if not isinstance(signature, str) or signature not in signatures:
        raise RequestError(
            f"There is no signature {signature!r}; the model has {', '.join(signatures)}."
        )
    strings = signatures[signature]
    by_rows = "instances" in request
    given = (_columns if by_rows else _named)(
        request["instances" if by_rows else "inputs"], list(strings)
    )
    inputs = {name: _decoded(given[name]) if strings[name] else given[name] for name in strings}
    return PredictRequest(signature, inputs, by_rows)


def _columns(instances: Any, names: list[str]) -> dict[str, list]:
    """Rows -> a list for each input."""
    if not isinstance(instances, list) or not instances:
        raise RequestError("'instances' must be a list with an entry for each example.")
    rows = [_named(row, names) for row in instances]
    return {name: [row[name] for row in rows] for name in names}


def _named(value: Any, names: list[str]) -> dict[str, Any]:
    """A value for each input; where there is one input, its name may be left out."""
    if len(names) == 1 and (not isinstance(value, dict) or _is_base64(value)):
        return {names[0]: value}
    if not isinstance(value, dict) or value.keys() != set(names):
        has = f"has {sorted(value)}" if isinstance(value, dict) else "names none"
        raise RequestError(f"The signature's inputs are {sorted(names)}; the request {has}.")
    return value


def _is_base64(value: Any) -> bool:
    return isinstance(value, dict) and value.keys() == {"b64"} and isinstance(value["b64"], str)


def _decoded(value: Any) -> Any:
    """Strings and {"b64": ...}, nested in lists -> bytes."""
    if isinstance(value, list):
        return [_decoded(each) for each in value]
    if isinstance(value, str):
        return value.encode(errors="replace")  # half a pair of surrogates is not text
    if not _is_base64(value):
        raise RequestError(
            f"{json.dumps(value)[:80]} is neither a string nor an object of the one key 'b64'."
        )
    text = re.sub(r"\s", "", value["b64"])
    try:
        return base64.b64decode(text + "=" * (-len(text) % 4), validate=True)
    except ValueError:  # binascii.Error is one, and letters beyond ASCII give another
        raise RequestError("Unable to base64 decode") from None


def answer(request: PredictRequest, outputs: Mapping[str, Any]) -> dict[str, Any]:
    """The answer's JSON object, from the outputs as numpy arrays whose first axis is the batch."""
    lists = {name: _plain(value.tolist(), name) for name, value in outputs.items()}
    if not request.by_rows:
        return {"outputs": next(iter(lists.values())) if len(lists) == 1 else lists}
    if len(lists) == 1:
        return {"predictions": next(iter(lists.values()))}
    rows = zip(*lists.values(), strict=True)
    return {"predictions": [dict(zip(lists, row, strict=True)) for row in rows]}


def _plain(value: Any, name: str) -> Any:
    """Bytes as text, or as base64 where the output's name ends in _bytes."""
    if isinstance(value, list):
        return [_plain(each, name) for each in value]
    if not isinstance(value, bytes):
        return value
    if name.endswith("_bytes"):
        return {"b64": base64.b64encode(value).decode()}
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise RequestError(
            f"The output {name!r} is not text: only one whose name ends in _bytes may hold other bytes."
        ) from None


class Model:
    """A SavedModel, called with what a request holds."""

    def __init__(self, path: str):
        """Raises OSError or ValueError where `path` holds no SavedModel that can be loaded here."""
        from lab_utils.estimator import tf

        self._tf, self._loaded = tf, tf.saved_model.load(path)
        self._kinds = {
            name: {key: spec.dtype for key, spec in serve.structured_input_signature[1].items()}
            for name, serve in self._loaded.signatures.items()
        }
        self._strings = {
            name: {key: kind == tf.string for key, kind in kinds.items()}
            for name, kinds in self._kinds.items()
        }

    def predict(self, body: bytes) -> dict[str, Any]:
        """A request's body -> the answer's JSON object.

        Raises:
            RequestError: the request, or what it brings, does not fit the signature.
        """
        request = read_request(body, self._strings)
        serve, kinds = self._loaded.signatures[request.signature], self._kinds[request.signature]
        try:
            inputs = {key: self._tf.constant(request.inputs[key], kinds[key]) for key in kinds}
            outputs = serve(**inputs)
        except (ValueError, TypeError, self._tf.errors.InvalidArgumentError) as error:
            raise RequestError(_reason(str(error))) from None
        return answer(request, {key: value.numpy() for key, value in outputs.items()})


def _reason(message: str) -> str:
    """The sentence of a TensorFlow error: it stands before the node that failed."""
    found = re.search(r"([^\n]+?)\s*\[\[\{\{node", message)
    return found[1].strip() if found else message.strip().partition("\n")[0]


class Server:
    """A running server; `url` is the model's address. `close` ends it."""

    def __init__(self, predict: Callable[[bytes], dict[str, Any]], name: str, port: int = 0):
        """Raises OSError where the port is taken, OverflowError where there is none of that number.

        Port 0 takes a free one.
        """
        proxies.spare_local()
        self._http = _Http(("127.0.0.1", port), _handler(predict, name))
        self.url = f"http://127.0.0.1:{self._http.server_port}/v1/models/{name}"
        threading.Thread(target=self._http.serve_forever, daemon=True).start()

    def close(self) -> None:
        """Ends the server and frees its port."""
        self._http.shutdown()
        self._http.server_close()


class _Http(ThreadingHTTPServer):
    def handle_error(self, request: Any, client_address: Any) -> None:
        """Says nothing where a caller has gone away."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


def _handler(predict: Callable[[bytes], dict[str, Any]], name: str) -> type:
    address = f"/v1/models/{name}"

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = -1  # an answer leaves in one piece

        def do_GET(self):
            if self._asked() != address:
                return self._missing()
            status = {"error_code": "OK", "error_message": ""}
            state = {"version": "1", "state": "AVAILABLE", "status": status}
            self._send(200, {"model_version_status": [state]})

        def do_POST(self):
            length = self.headers.get("Content-Length", "")
            if not re.fullmatch("[0-9]{1,18}", length):
                return self.send_error(
                    411, "The request needs a Content-Length: its bytes, as a number"
                )
            if int(length) > _LARGEST:
                return self.send_error(413, f"The request is larger than {_LARGEST >> 20} MiB")
            body = self.rfile.read(int(length))
            if self._asked() != f"{address}:predict":
                return self._missing()
            try:
                status, content = 200, predict(body)
            except RequestError as error:
                status, content = 400, {"error": str(error)}
            except RecursionError:
                status, content = 400, {"error": "The request is nested too deeply."}
            except Exception as error:  # of the model: the server goes on
                status, content = 500, {"error": f"{type(error).__name__}: {_reason(str(error))}"}
            self._send(status, content)

        def _asked(self):
            return unquote(self.path.partition("?")[0])

        def _missing(self):
            asked = self._asked().removeprefix("/v1/models/").partition(":")[0]
            self._send(404, {"error": f"Servable not found for request: Latest({asked})"})

        def send_error(self, code: int, message: str | None = None, explain: str | None = None):
            """Answers what cannot be read as a request; what follows on the connection cannot be, either."""
            self.close_connection = True
            self._send(code, {"error": message or HTTPStatus(code).phrase})

        def _send(self, status: int, content: dict[str, Any]):
            body = json.dumps(content).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            if self.close_connection:
                self.send_header("Connection", "close")
            self.end_headers()
            self.wfile.write(body * (self.command != "HEAD"))

        def log_message(self, *_):
            """Says nothing of single requests."""

    return Handler


def serve(saved_model: str, name: str, port: int = 0) -> Server:
    """Serves a SavedModel until it is closed or the process ends.

    Raises:
        OSError: there is no SavedModel, or the port is taken.
    """
    return Server(Model(str(saved_model)).predict, name, port)


def main() -> int:
    """The command; returns its exit status."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--saved_model", required=True, help="the folder export/NUMBER")
    parser.add_argument("--name", default="flowers", help="the model's name in the address")
    parser.add_argument("--port", type=int, default=8501)
    flags = parser.parse_args()
    try:
        server = serve(flags.saved_model, flags.name, flags.port)
    except (OSError, OverflowError) as error:
        raise SystemExit(
            f"cannot serve {flags.saved_model} on port {flags.port}: {error}"
        ) from None
    print(f"serving {server.url}:predict; Ctrl-C ends it", flush=True)
    try:
        threading.Event().wait()
    except KeyboardInterrupt:
        server.close()
    return 0


if __name__ == "__main__":
    command.run(main)
