"""TODO 7h: a request that a model server understands; 7i: how many pictures to put into one."""

import base64
from collections.abc import Callable
from numbers import Integral
from typing import Any

from lab_utils.check.outcome import Wrong
from lab_utils.check.todos import todo
from lab_utils.check.tools import a, expect
from lab_utils.flowers import rest

# Bytes that are no UTF-8, and whose base64 has + and /, which the alphabet for addresses lacks.
PICTURES = [b"\xff\xd8\xff\xfb\xef\xbe\x00", b"\x89PNG\r\n\x1a\n\xfe\xff", b"\xff\xd8"]


@todo(
    "7h",
    hints=(
        "What does base64.b64encode return, and can json.dumps write that?",
        'How does the server know that a string is base64, and not the value itself? One instance a picture: what is it?',
        'json.dumps gives the text of {"instances": [...]}.',
    ),
    why='Bytes travel as base64 within {"b64": ...}; a plain string would be taken for the value itself.',
)
def body(predict_body: Callable) -> str:
    """Read as the server reads it: the same bytes in the same order."""
    for pictures in (PICTURES, PICTURES[:1]):
        found = predict_body(list(pictures))
        read = _read(found)
        expect(
            read == pictures,
            _difference(read, pictures),
        )
    return "The server reads the bytes that you sent, a picture an instance."


def _read(found: Any) -> list:
    """What the server takes out of the learner's body."""
    if isinstance(found, dict):
        raise Wrong("That is a Python dict; a request's body is its JSON text: json.dumps(...).")
    expect(
        isinstance(found, str | bytes | bytearray),
        f"The body of a request is text, a str, or its bytes; yours is {a(found)}.",
    )
    try:
        pictures, _ = rest.read_request(found)
    except rest.RequestError as error:
        raise Wrong(_rejected(found, str(error))) from None
    return pictures


def _rejected(found: str | bytes, said: str) -> str:
    """What the server says, with a word on what it may come from."""
    if "base64 decode" in said:
        said += ". The server reads the usual alphabet, with + and /: base64.b64encode"
    elif "the request has" in said:
        said += ". Each instance is {\"b64\": ...}, or has the input's name as its key"
    elif "'instances' or 'inputs'" in said:
        said += '. The pictures go below the key "instances"'
    return f"The server answers 400: {said.rstrip('.')}."


def _difference(read: Any, pictures: list[bytes]) -> str:
    """Why the server reads other pictures than were sent."""
    coded = [base64.b64encode(each) for each in pictures]
    if not isinstance(read, list):
        return "The signature takes any number of pictures: send a list, also of one."
    if read == coded:
        return (
            "The server reads base64 where the picture's bytes should be. Either a string stands without "
            'the object {"b64": ...} that says so, or the bytes were encoded twice.'
        )
    if len(read) != len(pictures):
        return f"{len(pictures)} pictures were given, and the server reads {len(read)}: one instance a picture."
    if sorted(map(bytes, read)) == sorted(pictures):
        return "The pictures arrive in another order: answers come in the order of the instances."
    if any(each.startswith(b"b'") for each in read):
        return "str() of bytes writes b'...' around them: base64.b64encode(...).decode() gives text."
    return "The server reads other bytes than those of the pictures: encode each unchanged in base64."


@todo(
    "7i",
    hints=(
        "Which batches keep the limit? Which of these gives the most pictures a second?",
        "Pictures a second are not in `seconds`: how do they follow from a batch and its time?",
        "What is left to return where no batch keeps the limit?",
    ),
    why="The limit leaves some batches out; among the others the rate decides, and that need not be the largest batch.",
)
def batch_for(best_batch: Callable) -> str:
    """The highest rate within the limit."""
    steady = {1: 0.010, 8: 0.040, 32: 0.130, 64: 0.250}  # 100, 200, 246, 256 a second
    found = best_batch(dict(steady), 0.150)
    expect(found is not None, "Three of four batches keep the limit of 150 ms; yours returns None (is a return missing?).")
    expect(
        not isinstance(found, bool) and isinstance(found, Integral),
        f"best_batch should return a batch, a key of `seconds`; yours returns {a(found)}.",
    )
    expect(found in steady, f"best_batch should return a batch, a key of `seconds`; yours returns {found}.")
    expect(found != 64, "A batch of 64 takes 250 ms, which is over the limit of 150 ms.")
    expect(found != 1, "A batch of 1 keeps the limit, but gives 100 pictures a second; a batch of 32 gives 246.")
    expect(found == 32, f"Batches 1, 8 and 32 keep 150 ms, and 32 gives the most pictures a second; yours takes {found}.")
    slower = {32: 0.400, 8: 0.050, 1: 0.010, 16: 0.120}  # 80, 160, 100, 133 a second, not in order
    found = best_batch(dict(slower), 1.0)
    expect(
        found == 8,
        "All of 1, 8, 16 and 32 keep 1 s when they take 10, 50, 120 and 400 ms. The largest is not the best here: "
        f"8 gives 160 pictures a second, 32 gives 80. Yours takes {found}.",
    )
    found = best_batch({1: 0.02, 8: 0.1}, 0.1)
    expect(found == 8, f"100 ms keep a limit of 100 ms; yours takes {found}.")
    found = best_batch({1: 0.2, 8: 0.9}, 0.1)
    expect(
        found is None,
        f"No batch keeps 100 ms when they take 200 and 900 ms: return None; yours takes {found}.",
    )
    return "The most pictures a second within the limit."
