"""The small REST server of lab 07: requests and answers in TensorFlow Serving's forms."""

import base64
import json
import socket
import sys
import types
import urllib.error
import urllib.parse
import urllib.request

import numpy as np
import pytest

from lab_utils.flowers import rest

IMAGE = {"serving_default": {"image_bytes": True}}
PNG = b"\x89PNG\r\n\x1a\n\x00\xff"
B64 = {"b64": base64.b64encode(PNG).decode()}


@pytest.mark.parametrize(
    ("request_body", "by_rows"),
    [
        ({"instances": [B64]}, True),
        ({"instances": [{"image_bytes": B64}]}, True),
        ({"inputs": [B64]}, False),
        ({"inputs": {"image_bytes": [B64]}, "signature_name": "serving_default"}, False),
        ({"instances": [{"b64": base64.encodebytes(PNG).decode()}]}, True),
    ],
)
def test_bytes_arrive_in_each_of_the_forms(request_body, by_rows):
    found = rest.read_request(json.dumps(request_body), IMAGE)
    assert found == rest.PredictRequest("serving_default", {"image_bytes": [PNG]}, by_rows)


def test_a_string_is_its_own_bytes_and_not_base64():
    found = rest.read_request(json.dumps({"instances": [B64["b64"]]}), IMAGE)
    assert found.inputs["image_bytes"] == [B64["b64"].encode()]


def test_rows_of_several_inputs():
    body = {"instances": [{"text": "a", "size": 1}, {"text": "b", "size": 2}]}
    found = rest.read_request(json.dumps(body), {"serving_default": {"text": True, "size": False}})
    assert found.inputs == {"text": [b"a", b"b"], "size": [1, 2]}


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ("{", "JSON parse error"),
        ("[1]", "not a JSON object"),
        ("{}", "either 'instances' or 'inputs'"),
        ('{"instances": [], "inputs": []}', "either 'instances' or 'inputs'"),
        ('{"instances": []}', "an entry for each example"),
        ('{"instances": [{"picture": "a"}]}', "['image_bytes']; the request has ['picture']"),
        ('{"instances": [{"b64": "-_!"}]}', "Unable to base64 decode"),
        ('{"instances": [3]}', "neither a string nor an object"),
        (
            '{"instances": ["a"], "signature_name": 1}',
            "no signature 1; the model has serving_default",
        ),
    ],
)
def test_a_request_that_is_rejected(body, says):
    with pytest.raises(rest.RequestError) as error:
        rest.read_request(body, IMAGE)
    assert says in str(error.value)


def test_answers_are_rows_or_columns_and_names_in_bytes_are_base64():
    outputs = {"class": np.array([b"rose", b"tulip"]), "raw_bytes": np.array([b"\xff", b"\x00"])}
    rows = rest.answer(rest.PredictRequest("", {}, True), outputs)
    assert rows["predictions"][0] == {"class": "rose", "raw_bytes": {"b64": "/w=="}}
    columns = rest.answer(rest.PredictRequest("", {}, False), outputs)
    assert columns["outputs"]["class"] == ["rose", "tulip"]
    one = rest.answer(rest.PredictRequest("", {}, True), {"class": outputs["class"]})
    assert one == {"predictions": ["rose", "tulip"]}


def test_the_reason_of_a_tensorflow_error_is_one_sentence():
    long = "Graph execution error:\n\nDetected at node a\nUnknown image format.\n\t [[{{node a}}]]\n[Op:b]"
    assert rest._reason(long) == "Unknown image format."
    assert rest._reason("Bad shape.\nmore") == "Bad shape."


@pytest.fixture
def server(monkeypatch):
    """Behind a proxy, where the person's shell names one for every address."""
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")

    def predict(body):
        found = rest.read_request(body, IMAGE)
        1 / len(found.inputs["image_bytes"][0])  # a model's own error
        return rest.answer(found, {"size": np.array([len(x) for x in found.inputs["image_bytes"]])})

    running = rest.Server(predict, "flowers")
    yield running
    running.close()


def asked(url, body=None):
    """Status and JSON of an answer."""
    try:
        with urllib.request.urlopen(url, body, timeout=10) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


def test_the_server_answers_and_names_what_is_wrong(server):
    body = json.dumps({"instances": [B64, B64]}).encode()
    assert asked(server.url + ":predict", body) == (200, {"predictions": [len(PNG), len(PNG)]})
    assert asked(server.url)[1]["model_version_status"][0]["state"] == "AVAILABLE"
    status, said = asked(server.url + ":predict", b"{")
    assert status == 400 and "JSON parse error" in said["error"]
    status, said = asked(server.url.replace("flowers", "roses") + ":predict", body)
    assert (status, said["error"]) == (404, "Servable not found for request: Latest(roses)")


def raw(server, request: bytes) -> tuple[bytes, dict]:
    """Status line and JSON of the answer to what no client of Python's would send."""
    place = urllib.parse.urlsplit(server.url)
    with socket.create_connection((place.hostname, place.port), timeout=60) as connection:
        connection.sendall(request)
        with connection.makefile("rb") as answer:
            line, length = answer.readline(), 0
            while (header := answer.readline()) != b"\r\n":
                if header.startswith(b"Content-Length: "):
                    length = int(header.split()[1])
            return line, json.loads(answer.read(length))


@pytest.mark.parametrize(
    ("headers", "body", "status", "says"),
    [
        ("Content-Length: abc", b"", 411, "needs a Content-Length"),
        ("Content-Length: -1", b"", 411, "needs a Content-Length"),
        ("Transfer-Encoding: chunked", b"2\r\n{}\r\n0\r\n\r\n", 411, "needs a Content-Length"),
        ("Content-Length: 99999999999999", b"", 413, "larger than 256 MiB"),
        ("", b"[" * 200_000, 400, "nested too deeply"),
        ("", b'{"instances": [' + b"[" * 3_000 + b"]" * 3_000 + b"]}", 400, "nested too deeply"),
        ("", json.dumps({"instances": [{"b64": "ä"}]}, ensure_ascii=False).encode(), 400, "base64"),
        ("", b'{"instances": [{"b64": ""}]}', 500, "ZeroDivisionError: "),
    ],
)
def test_what_cannot_be_read_or_ends_the_model_is_answered(
    server, headers, body, status, says, capfd
):
    headers = headers or f"Content-Length: {len(body)}"
    request = f"POST /v1/models/flowers:predict HTTP/1.1\r\nHost: x\r\n{headers}\r\n\r\n".encode()
    line, said = raw(server, request + body)
    assert f" {status} ".encode() in line and says in said["error"]
    assert asked(server.url)[0] == 200 and not capfd.readouterr().err  # it goes on


def test_a_method_or_an_address_in_other_words(server):
    line, said = raw(server, b"PUT / HTTP/1.1\r\n\r\n")
    assert b" 501 " in line and said == {"error": "Unsupported method ('PUT')"}
    assert asked(server.url.replace("flowers", "fl%6Fwers") + "?of=me")[0] == 200


def test_an_output_that_is_not_text_is_told():
    with pytest.raises(rest.RequestError, match="'class' is not text"):
        rest.answer(rest.PredictRequest("", {}, True), {"class": np.array([b"\xff"], object)})


def test_a_port_that_there_is_none_of_is_told(monkeypatch):
    monkeypatch.setattr(rest, "Model", lambda path: types.SimpleNamespace(predict=None))
    monkeypatch.setattr(sys, "argv", ["rest", "--saved_model", "x", "--port", "99999"])
    with pytest.raises(SystemExit, match="cannot serve x on port 99999: .*0-65535"):
        rest.main()


def test_an_exported_flowers_model_is_served(finished_run, tiny_photos):
    picture = sorted(tiny_photos.glob("*/* 1.jpg"))[0].read_bytes()
    running = rest.serve(finished_run[1]["saved_model"], "flowers")
    try:
        sent = {"instances": [{"b64": base64.b64encode(picture).decode()}] * 2}
        status, said = asked(running.url + ":predict", json.dumps(sent).encode())
        assert status == 200 and len(said["predictions"]) == 2
        first = said["predictions"][0]
        assert first.keys() == {"class", "class_id", "probabilities"}
        assert first["class"] == finished_run[1]["labels"][first["class_id"]]
        text = json.dumps({"instances": [sent["instances"][0]["b64"]]}).encode()
        status, said = asked(running.url + ":predict", text)
        assert status == 400 and said["error"]
    finally:
        running.close()
