"""The checks of lab 14, serving: a request, five clients, one bad picture among many, and a batch."""

from collections.abc import Callable
from typing import Any

from lab_utils.check.labs.decisions import expect_decisions
from lab_utils.check.outcome import Wrong
from lab_utils.check.todos import Cases, Slip, todo
from lab_utils.check.tools import as_wrong, expect, returns
from lab_utils.flowers import rest

# Bytes that are no UTF-8, and whose base64 has + and /, which the alphabet for addresses lacks.
_PICTURES = [b"\xff\xd8\xff\xfb\xef\xbe\x00", b"\x89PNG\r\n\x1a\n\xfe\xff", b"\xff\xd8"]


@todo(
    "14a",
    hints=(
        "What does base64.b64encode return, and can json.dumps write that?",
        "How does the server know that a string is base64, and not the value itself?",
    ),
    why='Bytes travel as base64 within {"b64": ...}; the server takes a plain string for the value itself.',
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
            "The pictures arrive in a different order: the answers have the order "
            "of the instances.",
        ),
    ),
)
def body(predict_body: Callable) -> Cases:
    """Read as the server reads it: the same bytes in the same order."""
    for pictures, words in ((_PICTURES, "three pictures"), (_PICTURES[:1], "one picture")):
        text = predict_body(list(pictures))
        message = "That is a Python dict, but a request's body is a JSON string: json.dumps(...)."
        expect(not isinstance(text, dict), message)
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
        ("base64 decode", "The server expects the alphabet with + and /: use base64.b64encode"),
        ("the request has", 'Each instance is {"b64": ...}, or has the input\'s name as its key'),
        ("'instances' or 'inputs'", 'The pictures belong under the key "instances"'),
    ):
        if part in message:
            message = f"{message.rstrip('.')}. {reason}"
    return f"The server answers 400: {message.rstrip('.')}."


# Of each client: the cause, and where to look.
_CLIENTS = {
    "Ann": ("B", "print the beginning of her request and of an honest one."),
    "Ben": ("F", "look at his pictures: what have they lost, and what is still right?"),
    "Cem": ("C", "look at his pictures: the shapes are right, but what is wrong?"),
    "Dora": ("D", "her pictures look right, and as many answers are roses as in an honest request. With which "
             "pictures does she compare the answers?"),
    "Eve": ("A", "read what the server says, and the length of each of her pictures in bytes."),
}  # fmt: skip


@todo(
    "14b",
    hints=(
        "Which two requests did the server refuse, and with which message? It refuses only what it cannot read.",
        "Compare the pictures of the other three clients with the honest row, column by column.",
    ),
    why="The server refuses what it cannot read. It answers any other picture: blurred, recoloured or exchanged.",
)
def causes(causes: Any) -> str:
    """The cause of each client's trouble."""
    expect_decisions(causes, _CLIENTS, "ABCDEFG")
    return "All five causes are right. The server noticed two of them."


class _Server:
    """Answers requests about numbers; those in `bad` make it refuse a request."""

    def __init__(self, bad: set[int]) -> None:
        self.bad, self.requests = bad, 0

    def __call__(self, pictures: Any) -> list[str]:
        self.requests += 1
        pictures = list(pictures)
        expect(
            bool(pictures), "A request without pictures was sent: the server has nothing to answer."
        )
        if self.bad & set(pictures):
            raise ValueError("A picture cannot be used")
        return [f"answer to {picture}" for picture in pictures]


@todo(
    "14c",
    hints=(
        "A request of 60 was refused. What do two requests of 30 tell you?",
        "How small must a refused request be so that you know the bad picture?",
        "A function may call itself, on a part of its list.",
    ),
    why="Halving finds one bad picture of n in about 2 log2(n) requests; single requests would need n.",
    slips=(
        Slip(
            "pictures[:half]) + ask_all(ask, pictures[half:])",
            "pictures[half:]) + ask_all(ask, pictures[:half])",
            "The answers come in a different order from the pictures.",
        ),
        Slip(
            "return [None]",
            "return []",
            "A refused picture has an answer too, None: without it, later answers move up.",
        ),
    ),
)
def one_bad(ask_all: Callable) -> Cases:
    """All answers, None for the refused, and how many requests that takes."""
    for count, bad, most in (
        (60, set(), 1), (60, {17}, 13), (60, {0}, 13), (60, {59}, 13), (32, {3, 4}, 17), (1, {0}, 1), (5, {0, 1, 2, 3, 4}, 9),
    ):  # fmt: skip
        server = _Server(bad)
        words = (
            f"{count} pictures, of which the server refuses those at {sorted(bad) or 'no index'}"
        )
        try:
            with as_wrong(
                "NoneType", "For a part of the pictures ask_all returns None: is a return missing?"
            ):
                answers = ask_all(server, list(range(count)))
        except ValueError as error:
            raise Wrong(
                f"{words}: your function raises the server's ValueError ({error})."
            ) from None
        yield f"{words}; the answers", answers
        if server.requests > most:
            raise Wrong(
                f"{words}: you send {server.requests} requests; {most} would be enough. Try all at once first, then halves."
            )
    return "Few requests get an answer for every picture that the server accepts."


@todo(
    "14d",
    hints=(
        "Which batches keep the limit? Which of these gives the most pictures a second?",
        "What should you return if no batch keeps the limit?",
    ),
    why="The limit excludes some batches. Among the others the highest rate decides, not the largest batch.",
    slips=(
        Slip(
            "seconds[batch] <= limit",
            "seconds[batch] < limit",
            "A request may take exactly the limit.",
        ),
        Slip(
            "seconds[batch] <= limit",
            "seconds[batch] / batch <= limit",
            "A caller waits for the whole request, not for the share of one picture.",
        ),
        Slip(
            " if seconds[batch] <= limit]", "]", "One of your batches takes longer than the limit."
        ),
        Slip(
            "lambda batch: batch / seconds[batch]",
            "lambda batch: batch",
            "The largest batch within the limit need not serve the most pictures a second.",
        ),
        Slip(
            "lambda batch: batch / seconds[batch]",
            "lambda batch: -seconds[batch]",
            "The shortest request need not serve the most pictures a second.",
        ),
    ),
)
def batch_for(best_batch: Callable) -> Cases:
    """The highest rate within the limit."""
    for words, seconds, limit in (
        ("64 is over the limit; batches of 1, 8 and 32 give 100, 200 and 246 pictures a second",
         {1: 0.010, 8: 0.040, 32: 0.130, 64: 0.250}, 0.150),
        ("All keep the limit, and the largest is not the best: 8 gives 160 pictures a second, 32 gives 80",
         {32: 0.400, 8: 0.050, 1: 0.010, 16: 0.120}, 1.0),
        ("A request of 100 ms keeps a limit of 100 ms", {1: 0.02, 8: 0.1}, 0.1),
        ("No batch keeps the limit: return None", {1: 0.2, 8: 0.9}, 0.1),
    ):  # fmt: skip
        label = f"{words}. The best key of `seconds`, for {seconds} and a limit of {limit} s"
        yield label, best_batch(dict(seconds), limit)
    return "Your batch serves the most pictures a second within the limit."
