"""Pictures, and what they cost: TODO 6b, a view, 6c, the device's half, and 6h, cores."""

import io
from collections.abc import Callable

import numpy as np
from PIL import Image

from lab_utils.check.todos import todo
from lab_utils.check.tools import a, expect, other_names, scope_of
from lab_utils.estimator import tf
from lab_utils.flowers.augment import random_views

HEIGHT, WIDTH = 180, 240


def jpeg(shade: int = 0) -> bytes:
    """A picture of 180 x 240 pixels: red grows to the right, green downwards, blue is `shade`."""
    rgb = np.full([HEIGHT, WIDTH, 3], shade, np.uint8)
    rgb[:, :, 0] = np.linspace(0, 250, WIDTH)[None]
    rgb[:, :, 1] = np.linspace(0, 250, HEIGHT)[:, None]
    file = io.BytesIO()
    Image.fromarray(rgb).save(file, "JPEG", quality=95)
    return file.getvalue()


@todo(
    "6b",
    hints=(
        "random_window wants the picture's shape. Which function gives it without decoding?",
        'decode_and_crop_jpeg takes the window as it is. How many channels should there be?',
        'tf.image.resize gives floats from 0 to 255: what is left to do for uint8?',
    ),
    why='What is not shown is not decoded, and what a TPU does in passing is left to it.',
)
def cropping(view: Callable) -> str:
    """A random part, decoded alone, uint8 of a static shape."""
    asked = []
    top, left, height, width = WINDOW

    def window(shape: object) -> tf.Tensor:
        asked.append(shape)
        return tf.constant(WINDOW)

    with other_names(view, random_window=window):
        traced = tf.function(view).get_concrete_function(tf.TensorSpec([], tf.string))
    expect(bool(asked), "Take the part from random_window, which draws another one each time.")
    side, image = scope_of(view).get("SIZE", 128), traced.outputs[0]
    expect(
        image.dtype == tf.uint8,
        f"The view should be uint8, a quarter of the bytes to carry; it is {image.dtype.name}.",
    )
    expect(
        image.shape.is_fully_defined() and image.shape == (side, side, 3),
        f"The view should have the static shape [SIZE, SIZE, 3], here {[side, side, 3]}; it is {image.shape}. "
        "channels=3 makes three of them, resize sets height and width.",
    )
    kinds = _op_types(traced.graph)
    whole = kinds & {"DecodeJpeg", "DecodeImage", "DecodePng"}
    expect(
        not whole,
        f"The whole picture is decoded ({', '.join(sorted(whole))}). extract_jpeg_shape reads the shape from "
        "the header, and decode_and_crop_jpeg decodes the part alone.",
    )
    expect("DecodeAndCropJpeg" in kinds, "The part should be decoded by decode_and_crop_jpeg.")
    with other_names(view, random_window=window):
        view(tf.constant(jpeg()))
    given = np.asarray(asked[-1]).tolist()
    expect(
        given == [HEIGHT, WIDTH, 3],
        f"random_window gets {given}; the picture's shape is {[HEIGHT, WIDTH, 3]}: extract_jpeg_shape.",
    )
    part = Image.open(io.BytesIO(jpeg(SHADE))).crop((left, top, left + width, top + height))
    wanted = np.asarray(part.resize((side, side), Image.Resampling.BILINEAR), float)
    views = [traced(tf.constant(jpeg(SHADE))).numpy().astype(float) for _ in range(12)]
    expect(
        max(one.max() for one in views) > 20,
        "The views are all but black: uint8 goes from 0 to 255, so scale nothing here.",
    )
    for one in views:
        _shows(one, wanted)
    return "A random part, decoded alone, as uint8."


WINDOW = (10, 10, 160, 220)  # top, left, height, width: neither dimension is the views'
SHADE = 200


def _shows(one: np.ndarray, wanted: np.ndarray) -> None:
    """Raises Wrong unless a view is the picture's part, squeezed into the square, and no more."""

    def far(other: np.ndarray) -> bool:
        return np.abs(one - other).mean() > 6

    mirrored = not far(wanted[:, ::-1]) or not far(wanted[::-1])
    expect(not mirrored, "Some views are mirrored: flips are for the device, in the model.")
    blue = one[4:-4, 4:-4, 2]
    expect(
        (one.mean(axis=2)[[0, -1]] > 20).all(),
        "There are black bars: the part was padded. Squeeze it into the square with tf.image.resize.",
    )
    expect(
        blue.std() < 20 and not np.isin(one, (0, 255)).mean() > 0.8,
        "The pixels have overflowed: tf.image.resize leaves numbers from 0 to 255, which tf.cast makes uint8. "
        "(convert_image_dtype takes floats from 0 to 1.)",
    )
    expect(
        abs(blue.mean() - SHADE) < 4,
        f"A blue of {SHADE} comes out as {blue.mean():.0f}: colours are for the device, in the model.",
    )
    expect(
        not far(wanted),
        "The view is not the part that random_window gave, (top, left, height, width), squeezed into the "
        "square: decode_and_crop_jpeg, then tf.image.resize.",
    )


def _op_types(graph: tf.Graph) -> set[str]:
    """The types of all ops in a graph, those of functions that it calls included."""
    definition = graph.as_graph_def()
    nodes = [*definition.node]
    for function in definition.library.function:
        nodes += function.node_def
    return {node.op for node in nodes}


@todo(
    "6c",
    hints=(
        'Which type do you need before you divide? Where do 0 and 255 have to go?',
        'The seed is two integers, 0 and the step; the step may be int64.',
    ),
    why='A seed that follows from the step alone draws the same views in a run that was resumed.',
)
def device(prepare: Callable) -> str:
    """bfloat16 views from -1 to 1, which the step decides."""
    row = np.arange(160, dtype=np.float32) * 255 / 159
    ramp = np.broadcast_to(row[None, None, :, None], [2, 160, 160, 3]).astype(np.uint8)
    seen = []

    def recorded(images: tf.Tensor, size: int, seed: object) -> tf.Tensor:
        seen.append((images, seed))
        return random_views(images, size, seed)

    with other_names(prepare, random_views=recorded):
        made = [prepare(tf.constant(ramp), tf.constant(step, tf.int64)) for step in (3, 3, 4)]
        black, white = (
            prepare(tf.fill([8, 160, 160, 3], np.uint8(value)), tf.constant(1)) for value in (0, 255)
        )
        prepare(tf.constant(ramp), tf.constant(123_456))
    first = made[0]
    expect(
        isinstance(first, tf.Tensor),
        f"prepare should return a tensor of images; yours returns {a(first)}.",
    )
    expect(
        first.dtype == tf.bfloat16, f"The views should be bfloat16; they are {first.dtype.name}."
    )
    expect(
        first.shape == [2, 128, 128, 3],
        f"Two images should become views of shape [2, 128, 128, 3]; yours are {first.shape}.",
    )
    values = [tf.cast(each, tf.float32).numpy() for each in made]
    expect(bool(seen), "Cut the views with random_views(images, size, seed).")
    given = seen[3][0], seen[4][0]  # black and white, as random_views got them
    low, high = (float(tf.reduce_mean(tf.cast(each, tf.float32))) for each in given)
    expect(
        -1.05 < low < -0.95 and 0.95 < high < 1.05,
        f"random_views takes values from -1 to 1: black should be -1 when it comes there, and is {low:.3g}; "
        f"white 1, and is {high:.3g}.",
    )
    low, high = (float(tf.reduce_mean(tf.cast(each, tf.float32))) for each in (black, white))
    expect(
        -1.3 < low < -0.7 and 0.7 < high < 1.3,
        f"Black views should be near -1, and are {low:.3g}; white ones near 1, and are {high:.3g}: scale once.",
    )
    expect(
        np.array_equal(values[0], values[1]),
        "The same step gives other views when it runs again: the seed should follow from the step alone.",
    )
    expect(
        not np.array_equal(values[0], values[2]),
        "Steps 3 and 4 draw the same views, and so would every step: put the step into the seed.",
    )
    seeds = [np.asarray(tf.convert_to_tensor(seen[n][1])).tolist() for n in (0, 5)]
    expect(
        seeds == [[0, 3], [0, 123_456]],
        f"The seed should be 0 and the step; for the steps 3 and 123456 yours is {seeds[0]} and {seeds[1]}.",
    )
    return "Views from -1 to 1 in bfloat16; the same step sees the same."


@todo(
    "6h",
    hints=(
        'How many seconds of one core does one image take?',
        'And how many such seconds are there to do in each second?',
    ),
    why='Work to be done in a second over the work that one core does in a second.',
)
def cores(host_cores: Callable) -> str:
    """Images a second times seconds of CPU an image."""
    found = host_cores(4000, 0.5)
    expect(
        isinstance(found, int | float | np.number),
        f"host_cores should return a number; yours returns {a(found)}.",
    )
    expect(
        found != 2000,
        "4,000 images/s at 0.5 ms are 2,000 milliseconds of CPU in each second; a core has 1,000 of them.",
    )
    expect(
        abs(found - 2) < 1e-6,
        f"4,000 images/s at 0.5 ms keep 2 cores busy; yours says {found:.4g}.",
    )
    expect(
        abs(host_cores(1000, 0.25) - 0.25) < 1e-6,
        "1,000 images/s at 0.25 ms keep a quarter of a core busy: do not round.",
    )
    return "Work a second over what a core does in a second."
