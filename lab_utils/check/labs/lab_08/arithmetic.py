"""What pencil and paper tell: TODO 8a, the roofline, 8b, padding, 8g, the largest batch, and 8h, a pod."""

import math
from collections.abc import Callable
from numbers import Integral, Real

from lab_utils.check.todos import todo
from lab_utils.check.tools import a, expect


@todo(
    "8a",
    hints=(
        'How long does the arithmetic take alone, and how long the traffic?',
        'They go on at the same time. When has the step ended?',
    ),
    why='The slower of two things that go on together decides.',
)
def roofline(least_seconds: Callable) -> str:
    """The larger of two times."""
    slow_memory = least_seconds(90, 65, 40, 10)  # 2.25 s and 6.5 s
    slow_arithmetic = least_seconds(90, 65, 10, 40)  # 9 s and 1.625 s
    _is_number(slow_memory, "least_seconds")
    expect(slow_memory < 100, "FLOP divided by FLOP/s are seconds: divide by the peaks.")
    expect(
        not (math.isclose(slow_memory, 9.0) and math.isclose(slow_arithmetic, 6.5)),
        "FLOP go with the peak, and bytes with the bandwidth; yours divides each by the other.",
    )
    expect(
        not math.isclose(slow_memory, 8.75),
        "That is the sum of both times. They go on side by side: the step ends when the longer one does.",
    )
    expect(
        not math.isclose(slow_memory, 2.25) or not math.isclose(slow_arithmetic, 1.625),
        "That is the shorter of the two times; the step ends when both have ended.",
    )
    expect(
        (slow_memory, slow_arithmetic) != (6, 9),
        "65 bytes at 10 bytes/s take 6.5 s: divide with /, // drops the rest.",
    )
    expect(
        math.isclose(slow_memory, 6.5),
        "90 FLOP at 40 FLOP/s and 65 bytes at 10 bytes/s: the memory needs 6.5 s, no step is faster; "
        f"yours gives {slow_memory:.4g} s.",
    )
    expect(
        math.isclose(slow_arithmetic, 9.0),
        "90 FLOP at 10 FLOP/s and 65 bytes at 40 bytes/s: the arithmetic needs 9 s; yours gives "
        f"{slow_arithmetic:.4g} s.",
    )
    small = least_seconds(1e9, 1e8, 23e12, 358e9)
    expect(
        math.isclose(small, 1e8 / 358e9),
        "1 GFLOP and 100 MB on a v2 core take 0.000279 s, a usual time; yours gives "
        f"{small:.4g} s: do not round.",
    )
    return "The longer of the two times bounds the step."


@todo(
    "8b",
    hints=(
        'order[0] is the number of an axis, not a place: which entry of shape does it name?',
        'What is the smallest multiple of 128 that is not below n? Only two axes are filled up.',
        'The elements that are stored, times the bytes of each.',
    ),
    why="Only the two innermost axes lie in tiles; the compiler's order says which those are.",
)
def padding(stored_bytes: Callable) -> str:
    """Two axes filled up, in the order given."""
    found = stored_bytes((100, 1024), (1, 0), 4)
    _is_number(found, "stored_bytes")
    expect(
        found not in (104 * 1024, 104.0 * 1024), "Those are elements: times `item` they are bytes."
    )
    expect(
        found != 100 * 1024 * 4,
        "That is the array without padding: 100 rows lie along the 8, and take 104.",
    )
    expect(
        found != 128 * 1024 * 4,
        "100 rows lie along the 8 here: they are filled up to a multiple of 8, which is 104.",
    )
    expect(
        stored_bytes((16, 256), (1, 0), 4) == 16 * 256 * 4,
        "A [16, 256] fills its tiles already and takes no padding; yours adds some.",
    )
    expect(
        stored_bytes((8, 100), (1, 0), 4) == 8 * 128 * 4,
        "[8, 100] with order (1, 0): axis 1 is the innermost, and is filled up to a multiple of 128.",
    )
    expect(
        found == 104 * 1024 * 4, f"float32 [100, 1024] takes 104 x 1024 x 4 bytes; yours {found}."
    )
    swapped = stored_bytes((100, 1024), (0, 1), 4)
    expect(
        swapped == 128 * 1024 * 4,
        "With order (0, 1) axis 0 is the innermost: 100 become 128. Yours does not go by `order`, or not by "
        "it alone.",
    )
    four = stored_bytes((32, 9, 9, 10), (0, 3, 2, 1), 2)
    expect(
        four == 128 * 9 * 9 * 16 * 2,
        "[32, 9, 9, 10] with order (0, 3, 2, 1) is stored as 128 x 9 x 9 x 16: axes further out are not "
        f"padded. In bfloat16 (item=2) that is {128 * 9 * 9 * 16 * 2} bytes; yours {four}.",
    )
    turned = stored_bytes((9, 100, 20), (1, 2, 0), 4)
    expect(
        turned == 9 * 128 * 24 * 4,
        "With order (1, 2, 0) axis 1 is the innermost and axis 2 is next to it: [9, 100, 20] is stored as "
        "9 x 128 x 24. order[0] is the number of an axis; yours takes it for that axis's place.",
    )
    square = stored_bytes((20, 20), (0, 1), 4)
    expect(
        square == 128 * 24 * 4,
        "[20, 20] with order (0, 1) is stored as 128 x 24: axis 0 is the innermost, axis 1 next to it. Go by the axis's "
        f"number, not by its size, which both share; yours takes {square} bytes.",
    )
    return "The innermost axis in 128s, the next in 8s, nothing further out."


@todo(
    "8g",
    hints=(
        'What does one image take? Four of the parts are used up, and one is the room.',
        'How many such images go into the room? Then leave out what fills no 128.',
    ),
    why='Bytes grow in proportion to the batch, so one measurement is enough for an estimate.',
)
def memory(largest_batch: Callable) -> str:
    """As many whole 128s as fit."""
    parts = {
        "arguments": 3e6,
        "temporaries": 7e6,
        "outputs": 2e6,
        "code": 2e3,
        "available": 1.005e9,
    }
    found = largest_batch(dict(parts), 128)  # 93.8 kB an image: 10,718 fit
    _is_number(found, "largest_batch")
    expect(
        found >= 128,
        f"1.005 GB of room, 12.002 MB for 128 images: far more than {found} fit. How much does one image "
        "take? (`available` is the room, and takes none.)",
    )
    expect(
        found != 18304,
        "Those would fit if temporaries were all that takes room: arguments and outputs grow too.",
    )
    expect(
        found % 128 == 0,
        f"{found} is not a multiple of 128: the last images would bring padding for the rest of a 128.",
    )
    expect(
        isinstance(found, Integral),
        f"{found!r} is not a whole number; a batch size is one: int(...).",
    )
    expect(
        found <= 10718,
        f"12.002 MB for 128 images, 1.005 GB of room: {found:,} images do not fit. All four parts take room, "
        "and what does not fill a 128 is left out.",
    )
    expect(
        found == 10624,
        "12.002 MB for 128 images, 1.005 GB of room: 10,718 images fit, in whole 128s 10,624; yours gives "
        f"{found:,}. Only the four parts of a step take room; `available` is the room.",
    )
    doubled = largest_batch(dict(parts), 256)
    expect(
        doubled == 21376,
        "The same bytes for 256 images are half as much for each: 21,436 fit, in whole 128s 21,376; yours "
        f"gives {doubled:,}.",
    )
    return "Bytes an image, images that fit, whole 128s."


@todo(
    "8h",
    hints=(
        'How many images do all cores together take in a step?',
        'By what factor is that larger than `batch`? And how many whole steps are in the examples?',
    ),
    why='A larger batch takes a larger rate, and leaves fewer steps in a pass.',
)
def pod(pod_settings: Callable) -> str:
    """The batch of all cores, a rate in proportion, whole steps."""
    found = pod_settings(16, 64, 5000, 320, 0.25)
    expect(
        isinstance(found, tuple | list) and len(found) == 3,
        f"pod_settings should return three numbers; yours returns {a(found)}.",
    )
    global_batch, rate, steps = found
    expect(
        global_batch == 1024,
        f"16 cores take 64 images each: 1,024 in a step of all cores together; yours says {global_batch}.",
    )
    expect(
        not math.isclose(rate, 0.25),
        "The rate is that of the small batch: scale it by global batch / batch.",
    )
    expect(
        rate > 0.25, f"A larger batch takes a larger rate, not a smaller one; yours gives {rate}."
    )
    expect(
        math.isclose(rate, 0.8),
        "The rate grows in proportion to the global batch: 3.2 times 320 images, 3.2 times 0.25; yours "
        f"gives {rate:.4g}.",
    )
    expect(
        steps == 4 and float(steps).is_integer(),
        f"5,000 images are 4 full steps of 1,024, and some left over; yours gives {steps}.",
    )
    _, rate, steps = pod_settings(512, 128, 3670)
    expect(
        steps == 0,
        f"A step of 65,536 images is more than 3,670: there is no full step in the pass; yours gives {steps}.",
    )
    expect(
        math.isclose(rate, 0.05 * 65536 / 32),
        f"From 32 images to 65,536 the rate grows 2,048 times, to 102.4, whatever comes of it; yours is {rate:.4g}.",
    )
    return "More cores: a larger batch, a larger rate, fewer steps in a pass."


def _is_number(found: object, name: str) -> None:
    expect(
        isinstance(found, Real) and not isinstance(found, bool),
        f"{name} should return a number; yours returns {a(found)}.",
    )
