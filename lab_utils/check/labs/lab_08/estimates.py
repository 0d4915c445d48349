"""What pencil and paper tell: padding, and a pod."""

from collections.abc import Callable

from lab_utils.check.todos import Cases, todo


@todo(
    "8a",
    hints=(
        "order[0] is the number of an axis, not a place: which entry of shape does it name?",
        "What is the smallest multiple of 128 that is not below n? Only two axes are filled up.",
        "The elements that are stored, times the bytes of each.",
    ),
    why="Only the two innermost axes lie in tiles; the compiler's order says which those are.",
    slips={
        "item *  -> ": "Those are elements: times `item` they are bytes.",
        "prod(padded) -> prod(shape)": "That is the array without padding.",
        "padded[order[1]] / 8) * 8 -> padded[order[1]])": "Only the innermost axis is filled up in yours; the one "
        "next to it, order[1], lies along the 8.",
        "padded = list(shape) -> padded = list(shape); order = (*order[1::-1], *order[2:])": "8 and 128 are "
        "swapped: order[0] is filled up to a multiple of 128, order[1] to a multiple of 8.",
        "padded = list(shape) -> padded = list(shape); order = order[::-1]": "The innermost axis is order[0], and "
        "order[1] is next to it; yours reads `order` from its end.",
        "padded = list(shape) -> padded = list(shape); order = (-1, -2)": "Yours takes the last two axes of the "
        "shape, and does not go by `order`.",
        "padded = list(shape) -> padded = list(shape); order = (order.index(0), order.index(1))": "order[0] is the "
        "number of an axis; yours takes it for that axis's place.",
        "math.ceil(padded[order[0]] / 128) -> (padded[order[0]] // 128 + 1)": "A [16, 256] fills its tiles already "
        "and takes no padding; yours adds some.",
    },
)
def padding(stored_bytes: Callable) -> Cases:
    """Two axes filled up, in the order given."""
    for shape, order, item, stored in (
        ((100, 1024), (1, 0), 4, "104 x 1024"),
        ((16, 256), (1, 0), 4, "16 x 256, without padding"),
        ((100, 1024), (0, 1), 4, "128 x 1024"),
        ((32, 9, 9, 10), (0, 3, 2, 1), 2, "128 x 9 x 9 x 16"),
        ((9, 100, 20), (1, 2, 0), 4, "9 x 128 x 24"),
        ((20, 20), (0, 1), 4, "128 x 24 (an axis goes by its number, not by its size)"),
    ):
        label = f"{list(shape)} of {item} bytes each with order {order} is stored as {stored}"
        yield label, stored_bytes(shape, order, item)
    return "The innermost axis in 128s, the next in 8s, nothing further out."


_FULL_STEPS = "5,000 images are 4 full steps of 1,024, and some left over."
_IN_PROPORTION = (
    "The rate grows in proportion to the global batch: 3.2 times 320 images, 3.2 times 0.25."
)


@todo(
    "8e",
    hints=(
        "How many images do all cores together take in a step?",
        "By what factor is that larger than `batch`? And how many whole steps are in the examples?",
    ),
    why="A larger batch takes a larger rate, and leaves fewer steps in a pass.",
    slips={
        "cores * per_core -> per_core": "16 cores take 64 images each: 1,024 in a step of all cores.",
        "rate * global_batch / batch -> rate": "The rate is that of the small batch: scale it by global batch / batch.",
        "rate * global_batch / batch -> rate * batch / global_batch": "A larger batch takes a larger rate, not a "
        "smaller one.",
        "rate * global_batch / batch -> rate * cores": _IN_PROPORTION,
        "rate * global_batch / batch -> rate * math.sqrt(global_batch / batch)": _IN_PROPORTION,
        "examples // global_batch -> examples / global_batch": _FULL_STEPS,
        "examples // global_batch -> -(-examples // global_batch)": _FULL_STEPS,
        "examples // global_batch -> examples // per_core": _FULL_STEPS,
    },
)
def pod(pod_settings: Callable) -> Cases:
    """The batch of all cores, a rate in proportion, whole steps."""
    label = "16 cores with 64 images each, 5,000 examples, a rate of 0.25 for 320 images"
    yield label, pod_settings(16, 64, 5000, 320, 0.25)
    yield "512 cores with 128 images each, 3,670 examples", pod_settings(512, 128, 3670)
    return "More cores: a larger batch, a larger rate, fewer steps in a pass."
