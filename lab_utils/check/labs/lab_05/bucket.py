"""What reading from a bucket takes: TODO 5h."""

import math
from collections.abc import Callable
from numbers import Real

from lab_utils.check.todos import todo
from lab_utils.check.tools import a, expect


@todo(
    "5h",
    hints=(
        "What does one file take? How many requests, and how many bytes?",
        "How many files has the stream with the most of them? It is a whole number.",
    ),
    why="Every request waits once; its bytes flow afterwards; streams wait side by side.",
)
def bucket(bucket_seconds: Callable) -> str:
    """Requests times latency plus bytes, times the files of the busiest stream."""
    one = bucket_seconds(1, 1000, 1000, 1, 2.0, 100.0)
    expect(isinstance(one, Real), f"bucket_seconds should return a number; yours returns {a(one)}.")
    expect(
        not math.isclose(one, 10), "The latency is missing: each request waits before its first byte."
    )
    expect(not math.isclose(one, 2), "The bytes are missing: 1,000 bytes at 100 bytes/s take 10 s.")
    expect(
        math.isclose(one, 12),
        f"A request of 2 s and 1,000 bytes at 100 bytes/s take 12 s; yours gives {one:g}.",
    )
    pieces = bucket_seconds(1, 1000, 400, 1, 2.0, 100.0)
    expect(
        not math.isclose(pieces, 15) and not math.isclose(pieces, 14),
        "1,000 bytes in pieces of 400 are three requests, the last one smaller: round up.",
    )
    expect(
        not math.isclose(pieces, 18),
        "The last piece has 200 bytes, not 400: the bytes of the file do not change with the buffer.",
    )
    expect(
        math.isclose(pieces, 16),
        "1,000 bytes in pieces of 400 are three requests of 2 s, and 10 s of bytes: 16 s; yours gives "
        f"{pieces:g}.",
    )
    shared = bucket_seconds(5, 1000, 1000, 2, 2.0, 100.0)
    expect(not math.isclose(shared, 60), "Two streams read at the same time; yours reads one after another.")
    expect(
        not math.isclose(shared, 30),
        "Five files in two streams: a file is not divided, so one stream reads three of them.",
    )
    expect(
        math.isclose(shared, 36),
        f"Of five files in two streams, one stream reads three: 36 s; yours gives {shared:g}.",
    )
    many = bucket_seconds(2, 1000, 1000, 8, 2.0, 100.0)
    expect(
        math.isclose(many, 12),
        f"With more streams than files each file still takes its 12 s; yours gives {many:g}.",
    )
    apart = bucket_seconds(5, 1000, 400, 2, 2.0, 100.0)
    expect(
        math.isclose(apart, 48),
        "Five files of 1,000 bytes in pieces of 400, in two streams: three requests for each file, since no request "
        f"reads from two files, and three files one after another, 48 s; yours gives {apart:g}.",
    )
    return "Latency by the request, bytes by the bandwidth, and the busiest stream decides."
