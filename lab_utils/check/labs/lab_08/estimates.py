"""What pencil and paper tell: the roofline, padding, lines of a report, batches, a pod, session calls, loops."""

from collections.abc import Callable
from numbers import Integral

from lab_utils.check.todos import Cases, todo
from lab_utils.check.tools import expect
from lab_utils.common.source import Place
from lab_utils.dry_run.inspect import LineCost


@todo(
    "8a",
    hints=(
        "How long does the arithmetic take alone, and how long the traffic?",
        "They go on at the same time. When has the step ended?",
    ),
    why="The slower of two things that go on together decides.",
    slips={
        ("max(flop / peak, bytes_ / bandwidth)", "flop / peak + bytes_ / bandwidth"): "That is the "
        "sum of both times. They go on side by side: the step ends when the longer one does.",
        (
            "max(",
            "min(",
        ): "That is the shorter of the two times; the step ends when both have ended.",
        ("flop / peak, bytes_ / bandwidth", "flop / bandwidth, bytes_ / peak"): "FLOP go with the "
        "peak, and bytes with the bandwidth; yours divides each by the other.",
        ("flop / peak, bytes_ / bandwidth", "flop * peak, bytes_ * bandwidth"): "FLOP divided by "
        "FLOP/s are seconds: divide by the peaks.",
        ("flop / peak, bytes_ / bandwidth", "flop // peak, bytes_ // bandwidth"): "65 bytes at "
        "10 bytes/s take 6.5 s: divide with /, // drops the rest.",
    },
)
def roofline(least_seconds: Callable) -> Cases:
    """The larger of two times."""
    for flop, bytes_, peak, bandwidth, told in (
        (90, 65, 40, 10, "90 FLOP at 40 FLOP/s and 65 bytes at 10 bytes/s: the memory needs 6.5 s"),
        (
            90,
            65,
            10,
            40,
            "90 FLOP at 10 FLOP/s and 65 bytes at 40 bytes/s: the arithmetic needs 9 s",
        ),
        (
            1e9,
            1e8,
            23e12,
            358e9,
            "1 GFLOP and 100 MB on a v2 core, a usual time that is not rounded",
        ),
    ):
        yield told, least_seconds(flop, bytes_, peak, bandwidth)
    return "The longer of the two times bounds the step."


@todo(
    "8b",
    hints=(
        "order[0] is the number of an axis, not a place: which entry of shape does it name?",
        "What is the smallest multiple of 128 that is not below n? Only two axes are filled up.",
        "The elements that are stored, times the bytes of each.",
    ),
    why="Only the two innermost axes lie in tiles; the compiler's order says which those are.",
    slips={
        ("item * ", ""): "Those are elements: times `item` they are bytes.",
        ("prod(padded)", "prod(shape)"): "That is the array without padding.",
        (
            "padded[order[1]] / 8) * 8",
            "padded[order[1]])",
        ): "Only the innermost axis is filled up in "
        "yours; the one next to it, order[1], lies along the 8.",
        (
            "padded[order[1]] / 8) * 8",
            "padded[order[1]] / 128) * 128",
        ): "Only the innermost axis lies along the 128; order[1] is filled up to a multiple of 8.",
        ("padded[order[0]] / 128) * 128", "padded[order[0]] / 8) * 8"): "order[0] is the innermost "
        "axis: it is filled up to a multiple of 128.",
        (
            "padded = list(shape)",
            "padded, order = list(shape), (*order[1::-1], *order[2:])",
        ): "8 and "
        "128 are swapped: order[0] is filled up to a multiple of 128, order[1] to a multiple of 8.",
        (
            "padded = list(shape)",
            "padded, order = list(shape), order[::-1]",
        ): "The innermost axis is "
        "order[0], and order[1] is next to it; yours reads `order` from its end.",
        (
            "padded = list(shape)",
            "padded, order = list(shape), (-1, -2)",
        ): "Yours takes the last two axes of the shape, and does not go by `order`.",
        (
            "padded = list(shape)",
            "padded, order = list(shape), (order.index(0), order.index(1))",
        ): "order[0] is the number of an axis; yours takes it for that axis's place.",
        (
            "math.ceil(padded[order[0]] / 128)",
            "(padded[order[0]] // 128 + 1)",
        ): "A [16, 256] fills its tiles already and takes no padding; yours adds some.",
    },
)
def padding(stored_bytes: Callable) -> Cases:
    """Two axes filled up, in the order given."""
    for shape, order, item, stored in (
        ((100, 1024), (1, 0), 4, "104 x 1024"),
        ((16, 256), (1, 0), 4, "16 x 256, without padding"),
        ((8, 100), (1, 0), 4, "8 x 128"),
        ((100, 1024), (0, 1), 4, "128 x 1024"),
        ((32, 9, 9, 10), (0, 3, 2, 1), 2, "128 x 9 x 9 x 16"),
        ((9, 100, 20), (1, 2, 0), 4, "9 x 128 x 24"),
        (
            (20, 20),
            (0, 1),
            4,
            "128 x 24 (an axis goes by its number, not by its size, which both share)",
        ),
    ):
        told = f"{list(shape)} of {item} bytes each with order {order} is stored as {stored}"
        yield told, stored_bytes(shape, order, item)
    return "The innermost axis in 128s, the next in 8s, nothing further out."


_LINES = [
    LineCost(Place(file="cell In [5]", line=line, code=code), cycles, bytes_, flops=7 * cycles)
    for line, code, cycles, bytes_ in (
        (3, "x = conv2d(images, 10, 5)", 500_000, 1e6),
        (5, "x = dense(x, 300)", 300_000, 9e9),
        (4, "x = max_pooling2d(x, 2, 2)", 100_000, 5e6),
        (8, "y = max_pooling2d(y, 2, 2)", 60_000, 5e6),
        (9, "", 40_000, 1e6),
    )
]


@todo(
    "8f",
    hints=(
        "How many cycles does a change save? It saves only on the lines whose code holds its part.",
        "A small saving on an expensive line may be more than a large one on a cheap line.",
        "All cycles, over the cycles that remain after the change: that is how many times as fast.",
    ),
    why="A change gains no more than the share of the lines that it touches.",
    slips={
        (
            "sum(each.cycles for each in lines if",
            "sum(each.bytes for each in lines if",
        ): "Count the cycles of the lines that a change touches, not their bytes.",
        ("(1 - left) * sum", "left * sum"): "What is left is not saved: 1 - left is.",
        (
            "(1 - left) * sum",
            "sum",
        ): "A line that a change touches is not saved whole: `left` of it remains.",
        ("total / (total - saved[best])", "total / saved[best]"): "How many times as fast is the "
        "whole, before, over what remains of it, not over what is saved.",
        (
            "total / (total - saved[best])",
            "saved[best] / total",
        ): "That is the share saved; how many "
        "times as fast is the whole, before, over what remains of it.",
        (
            "return best, total / (total - saved[best])",
            "return best",
        ): "best_change should return a pair, the name and how many times as fast.",
        ("max(saved, key=saved.get)", "min(saved, key=saved.get)"): "That change saves least.",
        (
            "in lines)\n    saved",
            "in lines if each.place.code)\n    saved",
        ): "All lines together take 1,000,000 cycles, that without code as well.",
    },
)
def change(best_change: Callable) -> Cases:
    """The most cycles saved, and the whole before over the whole after."""
    for changes, told in (
        (
            {"drop both poolings": ("max_pooling2d", 0.0), "a faster convolution": ("conv2d", 0.6)},
            "Without the poolings 160,000 of 1,000,000 cycles are saved, with the faster convolution 200,000",
        ),
        (
            {
                "half the convolution": ("conv2d(images", 0.9),
                "a small head": ("dense(x, 300)", 0.1),
            },
            "The convolution is the most expensive line, but a tenth of it is 50,000 cycles, and nine tenths of "
            "the head are 270,000, of 1,000,000 in all",
        ),
        (
            {"a faster sort": ("tf.sort", 0.0), "drop both poolings": ("max_pooling2d", 0.0)},
            "No line sorts, so that saves nothing. Two lines pool, and both are saved: 160,000 of 1,000,000 cycles",
        ),
    ):
        yield told, best_change(list(_LINES), dict(changes))
    return "The change that saves most cycles of the whole step."


_TOO_MANY = "do not fit. All four parts take room, and what does not fill a 128 is left out."
_FAR_MORE = (
    "Far more images fit. How much does one image take? (`available` is the room, and takes none.)"
)


@todo(
    "8g",
    hints=(
        "What does one image take? Four of the parts are used up, and one is the room.",
        "How many such images go into the room? Then leave out what fills no 128.",
    ),
    why="Bytes grow in proportion to the batch, so one measurement is enough for an estimate.",
    slips={
        (
            '("arguments", "temporaries", "outputs", "code")',
            '("temporaries",)',
        ): "Those would fit if "
        "temporaries were all that takes room: arguments and outputs grow too.",
        ('"arguments", ', ""): f"Without the arguments that is too many: so many {_TOO_MANY}",
        ('"temporaries", ', ""): f"Without the temporaries that is too many: so many {_TOO_MANY}",
        ('"outputs", ', ""): f"Without the outputs that is too many: so many {_TOO_MANY}",
        ("// 128 * 128", "// 128 * 128 + 128"): f"Rounded up that is too many: so many {_TOO_MANY}",
        (
            " // 128 * 128",
            "",
        ): "That is not a multiple of 128: the last images would bring padding for "
        "the rest of a 128.",
        ("(used / per_core)", "used"): _FAR_MORE,
        ('("arguments", ', '("available", "arguments", '): _FAR_MORE,
    },
)
def memory(largest_batch: Callable) -> Cases:
    """As many whole 128s as fit."""
    parts = {
        "arguments": 3e6,
        "temporaries": 7e6,
        "outputs": 2e6,
        "code": 2e3,
        "available": 1.005e9,
    }
    found = largest_batch(dict(parts), 128)
    yield "12.002 MB for 128 images, 1.005 GB of room: 10,718 images fit, in whole 128s", found
    doubled = largest_batch(dict(parts), 256)
    yield (
        "12.002 MB for 256 images, half as much for each: 21,436 images fit, in whole 128s",
        doubled,
    )
    expect(
        isinstance(found, Integral),
        f"{found!r} is not a whole number; a batch size is one: int(...).",
    )
    return "Bytes an image, images that fit, whole 128s."


_FULL_STEPS = "5,000 images are 4 full steps of 1,024, and some left over."
_IN_PROPORTION = (
    "The rate grows in proportion to the global batch: 3.2 times 320 images, 3.2 times 0.25."
)


@todo(
    "8h",
    hints=(
        "How many images do all cores together take in a step?",
        "By what factor is that larger than `batch`? And how many whole steps are in the examples?",
    ),
    why="A larger batch takes a larger rate, and leaves fewer steps in a pass.",
    slips={
        (
            "cores * per_core",
            "per_core",
        ): "16 cores take 64 images each: 1,024 in a step of all cores.",
        ("rate * global_batch / batch", "rate"): "The rate is that of the small batch: scale it by "
        "global batch / batch.",
        (
            "rate * global_batch / batch",
            "rate * batch / global_batch",
        ): "A larger batch takes a larger rate, not a smaller one.",
        ("rate * global_batch / batch", "rate * cores"): _IN_PROPORTION,
        ("rate * global_batch / batch", "rate * math.sqrt(global_batch / batch)"): _IN_PROPORTION,
        ("examples // global_batch", "examples / global_batch"): _FULL_STEPS,
        ("examples // global_batch", "-(-examples // global_batch)"): _FULL_STEPS,
        ("examples // global_batch", "examples // per_core"): _FULL_STEPS,
    },
)
def pod(pod_settings: Callable) -> Cases:
    """The batch of all cores, a rate in proportion, whole steps."""
    told = "16 cores with 64 images each, 5,000 examples, a rate of 0.25 for 320 images"
    yield told, pod_settings(16, 64, 5000, 320, 0.25)
    yield "512 cores with 128 images each, 3,670 examples", pod_settings(512, 128, 3670)
    return "More cores: a larger batch, a larger rate, fewer steps in a pass."


@todo(
    "8i",
    hints=(
        "How many calls does each of the two runs make for the same number of steps?",
        "The steps themselves take the same time in both runs. What is left of the difference, and how many calls "
        "is that?",
    ),
    why="Both runs take the same steps: their difference is the calls that only one of them makes.",
    slips={
        (
            " / (steps / short - steps / long)",
            "",
        ): "The difference is that of many calls: divide by how many more the one run makes.",
        (
            "(slow - fast) / (steps / short - steps / long)",
            "slow / (steps / short)",
        ): "Seconds over "
        "calls hold the steps of a loop as well: they are in both runs, so take the difference.",
    },
)
def call(call_seconds: Callable) -> Cases:
    """The difference of two runs over the difference of their calls."""
    for step, each, steps, loops in (
        (0.002, 0.010, 400, (2, 10)),  # 200 and 40 calls
        (0.0005, 0.003, 1000, (1, 100)),
        (0.004, 0.0002, 60, (3, 4)),
    ):
        timed = {loop: steps * step + steps / loop * each for loop in loops}
        told = (
            f"{steps} steps, in loops of {loops[0]} and {loops[1]}; a run makes steps / loop calls"
        )
        yield f"{timed} seconds for {told}", call_seconds(dict(timed), steps)
        timed = dict(reversed(timed.items()))
        yield f"{timed}, which may come in either order, for {told}", call_seconds(timed, steps)
    return "The steps cancel out; what remains is the calls."


@todo(
    "8j",
    hints=(
        "Which share of a loop's time is steps, for a loop of n?",
        "Only divisors of the steps to a checkpoint come into question: try them from the smallest on.",
        "What is left where even one loop from checkpoint to checkpoint is too short?",
    ),
    why="A longer loop than needed hides hooks and logs; one that does not divide the steps moves the checkpoints.",
    slips={
        (
            "checkpoint % loop == 0 and ",
            "",
        ): "Such a loop does not divide the steps to a checkpoint, "
        "so checkpoints would come at other steps.",
        ("range(1, checkpoint + 1)", "range(checkpoint, 0, -1)"): "A shorter loop is enough; yours "
        "hides hooks and logs for longer.",
        (">= share", "> share"): "A shorter loop is enough: the share may be reached exactly.",
        (
            "share * (loop * step + call)",
            "share * call",
        ): "The share is of the whole loop, steps and "
        "call; yours compares the steps with the call alone.",
    },
)
def loop(shortest_loop: Callable) -> Cases:
    """The shortest divisor that keeps the core busy."""
    for step, call_, checkpoint, share in (
        (0.001, 0.005, 1000, 0.95),  # 95 would do, and does not divide
        (0.001, 0.005, 1000, 0.5),  # exactly a half
        (0.1, 0.001, 500, 0.9),
        (0.002, 0.010, 360, 0.895),  # 0.9, not just 0.9: another formula may round it down
        (0.0001, 0.01, 200, 0.99),  # none is enough
        (0.001, 0.002, 7, 0.6),  # a prime
    ):
        told = (
            f"Steps of {1e3 * step:g} ms, {1e3 * call_:g} ms a call, a checkpoint each {checkpoint} steps, at work "
            f"{share:.1%} of the time: the shortest loop that divides {checkpoint}, or all of it"
        )
        found = shortest_loop(step, call_, checkpoint, share)
        yield told, found
        expect(
            isinstance(found, Integral), f"A loop is a whole number, an int; yours is {found!r}."
        )
    return "The shortest loop that divides the checkpoint's steps and keeps the core busy."
