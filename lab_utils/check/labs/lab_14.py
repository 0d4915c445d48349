"""The checks of lab 14, serving: a request, five clients, one bad picture among many, and a batch."""

from collections.abc import Callable
from typing import Any

from lab_utils.check.labs.decisions import expect_decisions
from lab_utils.check.outcome import Wrong
from lab_utils.check.todos import Cases, Slip, todo
from lab_utils.check.tools import as_wrong, expect, returns
from lab_utils.flowers import rest

# Bytes that are not UTF-8, and whose base64 has + and /, which the alphabet for URLs lacks.
_PICTURES = [b"\xff\xd8\xff\xfb\xef\xbe\x00", b"\x89PNG\r\n\x1a\n\xfe\xff", b"\xff\xd8"]


@todo(
    "14a",
    hints=(
        "What does base64.b64encode return, and can json.dumps write a value of this type?",
        "How does the server know that a string is base64 and has to be decoded?",
    ),
    why='JSON cannot hold bytes, so they are sent as base64 within {"b64": ...}. The server uses a plain string as it is.',
    slips=(
        Slip(
            '{"b64": base64.b64encode(picture).decode()}',
            "base64.b64encode(picture).decode()",
            "The server reads base64 "
            'where it expects the picture\'s bytes. Either the object {"b64": ...} around a string is missing, or the '
            "bytes were encoded twice.",
        ),
        Slip(
            "in pictures]",
            "in reversed(pictures)]",
            "The pictures arrive in a different order, so each answer belongs to the wrong picture.",
        ),
    ),
)
def body(predict_body: Callable) -> Cases:
    """Read as the server reads it: the same bytes in the same order."""
    for pictures, words in ((_PICTURES, "three pictures"), (_PICTURES[:1], "one picture")):
        text = predict_body(list(pictures))
        expect(
            not isinstance(text, dict),
            "predict_body returns a Python dict, but the body of a request is a JSON string: use json.dumps.",
        )
        returns(text, (str, bytes, bytearray), "predict_body", "the text, as str or bytes")
        try:
            pictures_read = rest.read_request(text)[0]
        except rest.RequestError as error:
            raise Wrong(_refusal(str(error))) from None
        hint = "str() of bytes writes b'...' around them; .decode() returns base64 as a str"
        label = f"What the server reads for {words}: the bytes of each, unchanged, one instance per picture ({hint})"
        yield label, pictures_read
    return "The server reads the bytes that you sent, with one instance for each picture."


def _refusal(message: str) -> str:
    """What the server says, with a word on what it may come from."""
    for part, reason in (
        ("base64 decode", "The server expects base64 with + and /, as base64.b64encode writes it"),
        ("the request has", 'Each instance is {"b64": ...}, or has the input\'s name as its key'),
        ("'instances' or 'inputs'", 'The pictures belong under the key "instances"'),
    ):
        if part in message:
            message = f"{message.rstrip('.')}. {reason}"
    return f"The server answers 400: {message.rstrip('.')}."


# For each client: what is wrong, and where to look.
_CLIENTS = {
    "Ann": ("B", "Print the beginning of her request and of a correct one."),
    "Ben": ("F", "Look at his pictures: what have they lost, and what is still right?"),
    "Cem": ("C", "Look at his pictures: the shapes are right, but what is wrong?"),
    "Dora": ("D", "Her pictures look right, and as many of her answers are roses as those of a correct request. With which "
             "pictures does she compare the answers?"),
    "Eve": ("A", "Read what the server says, and compare the lengths of her pictures in bytes."),
}  # fmt: skip


@todo(
    "14b",
    hints=(
        "Which two requests did the server reject, and with which message? It rejects only what it cannot read.",
        "Compare the pictures of the other three clients with the row of correct ones, column by column.",
    ),
    why="The server rejects only what it cannot read. It gives an answer for every other picture, even if the picture is blurred, has the wrong colours, or is in the wrong place.",
)
def causes(causes: Any) -> str:
    """The cause of each client's trouble."""
    expect_decisions(causes, _CLIENTS, "ABCDEFG")
    return "All five causes are right. The server itself noticed only two of them."


class _Server:
    """Answers requests about numbers; those in `bad` make it reject a request."""

    def __init__(self, bad: set[int]) -> None:
        self.bad, self.requests = bad, 0

    def __call__(self, pictures: Any) -> list[str]:
        self.requests += 1
        pictures = list(pictures)
        expect(
            bool(pictures),
            "Your function sends a request without pictures, so the server has nothing to answer.",
        )
        if self.bad & set(pictures):
            raise ValueError("A picture cannot be used")
        return [f"answer to {picture}" for picture in pictures]


@todo(
    "14c",
    hints=(
        "The server rejected a request of 60 pictures. What do two requests of 30 tell you?",
        "How small must a rejected request be before you know which picture is bad?",
        "A function may call itself, on a part of its list.",
    ),
    why="Halving finds one bad picture among n in about 2 log2(n) requests, whereas a request for each picture takes n requests.",
    slips=(
        Slip(
            "pictures[:half]) + ask_all(ask, pictures[half:])",
            "pictures[half:]) + ask_all(ask, pictures[:half])",
            "The answers come in a different order from the pictures.",
        ),
        Slip(
            "return [None]",
            "return []",
            "A bad picture needs an entry too, None: without it, later answers move up.",
        ),
    ),
)
def one_bad(ask_all: Callable) -> Cases:
    """All answers, with None for each bad picture, and how many requests that takes."""
    for count, bad, most in (
        (60, set(), 1), (60, {17}, 13), (60, {0}, 13), (60, {59}, 13), (32, {3, 4}, 17), (1, {0}, 1), (5, {0, 1, 2, 3, 4}, 9),
    ):  # fmt: skip
        server = _Server(bad)
        words = f"{count} pictures, {f'bad ones at {sorted(bad)}' if bad else 'none of them bad'}"
        try:
            with as_wrong(
                "NoneType", "For some of the pictures, ask_all returns None: is a return missing?"
            ):
                answers = ask_all(server, list(range(count)))
        except ValueError as error:
            raise Wrong(
                f"{words}: your function raises the server's ValueError ({error})."
            ) from None
        yield f"{words}; the answers", answers
        if server.requests > most:
            raise Wrong(
                f"{words}: you send {server.requests} requests, but {most} would be enough. First try all at once, then halves."
            )
    return "You get an answer for every good picture, in few requests."


@todo(
    "14d",
    hints=(
        "Which batches are within the limit? Which of these gives the most pictures per second?",
        "What should you return if no batch is within the limit?",
    ),
    why="The limit excludes some batches. The best of the others is the one with the highest rate, which need not be the largest.",
    slips=(
        Slip(
            "seconds[batch] <= limit",
            "seconds[batch] < limit",
            "A request may take exactly the limit.",
        ),
        Slip(
            "seconds[batch] <= limit",
            "seconds[batch] / batch <= limit",
            "A client waits for the whole request, not for the share of one picture.",
        ),
        Slip(
            " if seconds[batch] <= limit]", "]", "One of your batches takes longer than the limit."
        ),
        Slip(
            "lambda batch: batch / seconds[batch]",
            "lambda batch: batch",
            "The largest batch within the limit need not serve the most pictures per second.",
        ),
        Slip(
            "lambda batch: batch / seconds[batch]",
            "lambda batch: -seconds[batch]",
            "The shortest request need not serve the most pictures per second.",
        ),
    ),
)
def batch_for(best_batch: Callable) -> Cases:
    """The highest rate within the limit."""
    for words, seconds, limit in (
        ("64 is over the limit; batches of 1, 8 and 32 give 100, 200 and 246 pictures per second",
         {1: 0.010, 8: 0.040, 32: 0.130, 64: 0.250}, 0.150),
        ("All batches are within the limit, but the largest is not the best: 8 gives 160 pictures per second, and 32 gives only 80",
         {32: 0.400, 8: 0.050, 1: 0.010, 16: 0.120}, 1.0),
        ("A request of 100 ms is within a limit of 100 ms", {1: 0.02, 8: 0.1}, 0.1),
        ("No batch is within the limit, so the answer is None", {1: 0.2, 8: 0.9}, 0.1),
    ):  # fmt: skip
        label = f"{words}. The best batch for seconds={seconds} and limit={limit}"
        yield label, best_batch(dict(seconds), limit)
    return "Your batch serves the most pictures per second within the limit."
