"""Pictures, and what they cost: TODO 6b, a view, 6c, the device's half, and 6g, cores."""

import io
from collections.abc import Callable

import numpy as np
from PIL import Image

from lab_utils.check.todos import todo
from lab_utils.check.tools import a, expect
from lab_utils.estimator import tf

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
        "random_window(tf.io.extract_jpeg_shape(encoded)) is the part to decode.",
        "tf.image.decode_and_crop_jpeg(encoded, part, channels=3)",
        "tf.cast(tf.image.resize(image, [SIZE, SIZE]), tf.uint8)",
    ),
)
def cropping(view: Callable) -> str:
    """A random part, decoded alone, uint8 of a static shape."""
    traced = tf.function(view).get_concrete_function(tf.TensorSpec([], tf.string))
    image = traced.outputs[0]
    expect(
        image.dtype == tf.uint8,
        f"The view should be uint8, a quarter of the bytes to carry; it is {image.dtype.name}.",
    )
    expect(
        image.shape.is_fully_defined() and image.shape.rank == 3 and image.shape[2] == 3,
        f"The view should have the static shape [SIZE, SIZE, 3]; it is {image.shape}. Resize it.",
    )
    kinds = _op_types(traced.graph)
    whole = kinds & {"DecodeJpeg", "DecodeImage", "DecodePng"}
    expect(
        not whole,
        f"The whole picture is decoded ({', '.join(sorted(whole))}). extract_jpeg_shape reads the shape from "
        "the header, and decode_and_crop_jpeg decodes the part alone.",
    )
    expect("DecodeAndCropJpeg" in kinds, "The part should be decoded by decode_and_crop_jpeg.")
    encoded = tf.constant(jpeg())
    views = [traced(encoded).numpy().astype(float) for _ in range(6)]
    expect(
        max(one.max() for one in views) > 20,
        "The views are all but black: uint8 goes from 0 to 255, so scale nothing here.",
    )
    different = max(np.abs(one - views[0]).mean() for one in views[1:])
    expect(
        different > 1,
        "Six views of one picture show the same part of it: take the part from random_window.",
    )
    return "A random part, decoded alone, as uint8."


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
        "tf.cast(images, tf.bfloat16) / 127.5 - 1.0 goes from -1 to 1.",
        "The seed: tf.stack([0, tf.cast(step, tf.int32)]).",
        "return random_views(images, SIZE, seed)",
    ),
)
def device(prepare: Callable) -> str:
    """bfloat16 views from -1 to 1, which the step decides."""
    row = np.arange(160, dtype=np.float32) * 255 / 159
    ramp = np.broadcast_to(row[None, None, :, None], [2, 160, 160, 3]).astype(np.uint8)
    made = [prepare(tf.constant(ramp), tf.constant(step, tf.int64)) for step in (3, 3, 4)]
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
    black = tf.cast(prepare(tf.zeros([8, 160, 160, 3], tf.uint8), tf.constant(1)), tf.float32)
    white = tf.cast(prepare(tf.fill([8, 160, 160, 3], np.uint8(255)), tf.constant(1)), tf.float32)
    low, high = float(tf.reduce_mean(black)), float(tf.reduce_mean(white))
    expect(
        -1.3 < low < -0.7 and 0.7 < high < 1.3,
        f"random_views takes values from -1 to 1: black should be near -1, and is {low:.3g}; white near 1, "
        f"and is {high:.3g}.",
    )
    expect(
        np.array_equal(values[0], values[1]),
        "The same step gives other views when it runs again: the seed should follow from the step alone.",
    )
    expect(
        not np.array_equal(values[0], values[2]),
        "Steps 3 and 4 draw the same views, and so would every step: put the step into the seed.",
    )
    return "Views from -1 to 1 in bfloat16; the same step sees the same."


@todo(
    "6g",
    hints=(
        "One image takes cpu_ms / 1000 seconds of a core.",
        "So many images take images_per_second times that, in each second.",
    ),
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
