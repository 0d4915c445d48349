"""The small REST server of lab 07: requests and answers in TensorFlow Serving's forms."""

import base64
import io
import json
import shutil
import socket
import subprocess
import threading
import urllib.error
import urllib.request

import pytest
from PIL import Image

from lab_utils import datasets
from lab_utils.datasets.clients import TINY, requests
from lab_utils.flowers import rest

PNG = b"\x89PNG\r\n\x1a\n\x00\xff"
B64 = {"b64": base64.b64encode(PNG).decode()}


@pytest.mark.parametrize(
    ("request_body", "key"),
    [
        ({"instances": [B64]}, "predictions"),
        ({"instances": [{"image_bytes": B64}]}, "predictions"),
        ({"inputs": [B64]}, "outputs"),
        ({"inputs": {"image_bytes": [B64]}, "signature_name": "serving_default"}, "outputs"),
    ],
)
def test_bytes_arrive_in_each_of_the_forms(request_body, key):
    assert rest.read_request(json.dumps(request_body)) == ([PNG], key)
    as_string = json.dumps({"instances": [B64["b64"]]})  # a string is its own bytes and not base64
    assert rest.read_request(as_string)[0] == [B64["b64"].encode()]


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ("{", "JSON parse error"),
        (b"\xff\xd8\xff\xe0", "A picture is sent as"),
        ("[1]", "either 'instances' or 'inputs'"),
        ('{"instances": []}', "an entry for each picture"),
        ('{"instances": [{"picture": "a"}]}', "['image_bytes']; the request has ['picture']"),
        ('{"instances": [{"b64": "-_!"}]}', "Unable to base64 decode"),
        ('{"instances": [3]}', "neither a scalar string nor"),
    ],
)
def test_a_request_that_is_rejected(body, says):
    with pytest.raises(rest.RequestError) as error:
        rest.read_request(body)
    assert says in str(error.value)


def asked(url: str, body: object) -> tuple[int, dict]:
    """Status and JSON of an answer."""
    sent = body if isinstance(body, bytes) else json.dumps(body).encode()
    try:
        with urllib.request.urlopen(url, sent, timeout=30) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


def picture(kind: str, **options) -> dict:
    file = io.BytesIO()
    Image.radial_gradient("L").convert("RGBA").save(file, kind, **options)
    return {"b64": base64.b64encode(file.getvalue()).decode()}


def test_an_exported_flowers_model_is_served(finished_run, tiny_photos, monkeypatch):
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")  # as a person's shell may name one
    jpeg = sorted(tiny_photos.glob("*/* 1.jpg"))[0].read_bytes()
    server = rest.serve(finished_run[1]["saved_model"], "flowers")
    try:
        sent = {"b64": base64.b64encode(jpeg).decode()}
        status, said = asked(f"{server.url}:predict", {"instances": [sent] * 2})
        assert status == 200 and len(said["predictions"]) == 2
        first = said["predictions"][0]
        assert first.keys() == {"class", "class_id", "probabilities"}
        assert first["class"] == finished_run[1]["labels"][first["class_id"]]
        if shutil.which("curl"):
            command = server.command(f"'{sorted(tiny_photos.glob('*/* 1.jpg'))[0]}'")
            by_curl = subprocess.run(["bash", "-c", command], stdout=subprocess.PIPE, check=True)
            assert json.loads(by_curl.stdout)["predictions"] == [first]
        columns = asked(f"{server.url}:predict", {"inputs": [sent]})[1]["outputs"]
        assert columns["class"] == [first["class"]]
        moving = picture("WEBP", save_all=True, append_images=[Image.new("RGBA", (256, 256))])
        for kind in (picture("WEBP"), moving, picture("PNG")):
            assert asked(f"{server.url}:predict", {"instances": [kind]})[0] == 200
        for wrong, says in (
            (sent["b64"], "not an image that can be read"),
            ({"b64": ""}, "empty file"),
            ([sent], "a scalar string"),
        ):
            status, said = asked(f"{server.url}:predict", {"instances": [wrong]})
            assert status == 400 and says in said["error"], said
        assert asked(server.url.replace("flowers", "roses") + ":predict", {})[0] == 404
        with pytest.raises(OSError):
            rest.serve("none", "flowers", server.server_port)
    finally:
        server.close()


@pytest.fixture
def server(monkeypatch):
    """A server without a model."""
    monkeypatch.setattr(rest, "Model", lambda path: None)
    server = rest.serve("none", "flowers")
    yield server
    server.close()


def answered(server, head: bytes, body: bytes = b"") -> str:
    """What the server answers to a request in its own bytes."""
    with socket.create_connection(("127.0.0.1", server.server_port), timeout=30) as connection:
        connection.sendall(b"POST /v1/models/flowers:predict HTTP/1.1\r\n" + head + b"\r\n" + body)
        return b"".join(iter(lambda: connection.recv(4096), b"")).decode()


@pytest.mark.parametrize(
    ("head", "status", "says"),
    [
        (b"", 411, "no Content-Length"),
        (b"Transfer-Encoding: chunked\r\n", 411, "`curl -d @file`"),
        (b"Content-Length: abc\r\n", 400, "a number of bytes"),
        (b"Content-Length: -1\r\n", 400, "a number of bytes"),
        (b"Content-Length: 1" + b"0" * 30 + b"\r\n", 400, "a number of bytes"),
        (b"Content-Length: 2\r\n", 400, "'instances' or 'inputs'"),
    ],
)
def test_a_request_whose_length_is_not_known_is_answered(head, status, says, server, capfd):
    answer = answered(server, head, b"{}")
    assert answer.startswith(f"HTTP/1.0 {status} ") and says in answer
    assert not capfd.readouterr().err


def test_fifty_callers_at_once_are_all_answered(server):
    """None is reset: so many connections may wait."""
    answers, barrier = [], threading.Barrier(50)

    def call() -> None:
        barrier.wait()
        answers.append(asked(f"{server.url}:predict", {})[0])

    callers = [threading.Thread(target=call) for _ in range(50)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert answers == [400] * 50


def test_a_caller_that_sends_nothing_keeps_no_thread(server, monkeypatch):
    monkeypatch.setattr(rest._Handler, "timeout", 0.1)
    assert answered(server, b"Content-Length: 9\r\n") == ""  # the server closes the connection


def test_a_server_can_read_three_of_five_clients():
    paths = list(datasets.classes(datasets.bundled().eval_csv))[:6]
    sent = {name: rest.read_request(body)[0] for name, body in requests(paths).items()}
    files = [path.read_bytes() for path in paths]
    assert sorted(sent["Dora"]) == sorted(files) and sent["Dora"] != files
    assert sent["Eve"][:-1] == files[:-1] and files[-1].startswith(sent["Eve"][-1])
    assert not sent["Ann"][0].startswith(b"\xff\xd8")  # base64, read as it stands
    pictures = (sent["Ben"], sent["Cem"], files)
    ben, cem, honest = (Image.open(io.BytesIO(each[0])).convert("RGB") for each in pictures)
    assert ben.size == (TINY, TINY)
    assert abs(cem.getpixel((40, 40))[0] - honest.getpixel((40, 40))[2]) < 40
