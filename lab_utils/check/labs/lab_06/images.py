"""Pictures: TODO 6b, a view, and 6c, the device's half."""

import io
from collections.abc import Callable

import numpy as np
from PIL import Image

from lab_utils.check.todos import Cases, todo
from lab_utils.check.tools import expect, other_names, returns
from lab_utils.estimator import tf
from lab_utils.flowers.augment import random_views

HEIGHT, WIDTH = 180, 240
SIZE = 128  # of a view in the notebook


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
        "decode_and_crop_jpeg takes the window as it is. How many channels should there be?",
        "tf.image.resize gives floats from 0 to 255: what is left to do for uint8?",
    ),
    why="What is not shown is not decoded, and what a TPU does in passing is left to it.",
    slips={
        ("tf.image.resize(image, [SIZE, SIZE])", "tf.image.resize(image, [SIZE, SIZE]) / 255"): "The "
        "views are all but black: uint8 goes from 0 to 255, so scale nothing here.",
        ("tf.image.resize(", "tf.image.resize_with_pad("): "There are black bars: the part was padded. "
        "Squeeze it into the square with tf.image.resize.",
        ("tf.cast(tf.image.resize(image, [SIZE, SIZE]),", "tf.image.convert_image_dtype(tf.image.resize(image, "
        "[SIZE, SIZE]),"): "The pixels have overflowed: tf.image.resize leaves numbers from 0 to 255, which tf.cast "
        "makes uint8. (convert_image_dtype takes floats from 0 to 1.)",
    },
)  # fmt: skip
def cropping(view: Callable) -> Cases:
    """A random part, decoded alone, uint8 of a static shape."""
    asked = []

    def window(shape: object) -> tf.Tensor:
        asked.append(shape)
        return tf.constant([10, 10, 160, 220])  # top, left, height, width: neither is the views'

    with other_names(view, random_window=window, SIZE=SIZE):
        traced = tf.function(view).get_concrete_function(tf.TensorSpec([], tf.string))
        expect(bool(asked), "Take the part from random_window, which draws another one each time.")
        view(tf.constant(jpeg()))
    image = traced.outputs[0]
    told = "The view (channels=3 makes three of them, resize sets height and width; uint8 is a quarter of the bytes"
    yield f"{told} to carry) in type and static shape", [image.dtype.name, image.shape]
    definition = traced.graph.as_graph_def()
    nodes = [
        *definition.node,
        *(node for each in definition.library.function for node in each.node_def),
    ]
    whole = {"DecodeJpeg", "DecodeImage", "DecodePng"} & {node.op for node in nodes}
    expect(
        not whole,
        f"The whole picture is decoded ({', '.join(sorted(whole))}). extract_jpeg_shape reads the shape from "
        "the header, and decode_and_crop_jpeg decodes the part alone.",
    )
    yield (
        "random_window gets the picture's shape (extract_jpeg_shape)",
        np.asarray(asked[-1]).tolist(),
    )
    views = np.array([traced(tf.constant(jpeg(200))).numpy() for _ in range(12)]) / 255
    edges = views[:, :, [0, -1], 0].mean(axis=1)  # red, left and right
    mirrored = edges[:, 0] > edges[:, 1] + 0.2
    expect(not mirrored.any(), "Some views are mirrored: flips are for the device, in the model.")
    for name, corner in (
        ("top left", views[0, :16, :16]),
        ("top right", views[0, :16, -16:]),
        ("bottom left", views[0, -16:, :16]),
        ("bottom right", views[0, -16:, -16:]),
    ):
        told = f"The {name} of the part that random_window gave, (top, left, height, width), squeezed into the square"
        yield (
            f"{told}, in red, green and blue",
            corner.mean(axis=(0, 1))[:2].astype(np.float32),
            0.06,
        )
    blue = views[:, 8:-8, 8:-8, 2].mean(axis=(1, 2))
    told = "The least and the most blue of 12 views, of 0 to 1 (colours are for the device, in the model)"
    yield told, [blue.min(), blue.max()], 0.02
    return "A random part, decoded alone, as uint8."


@todo(
    "6c",
    hints=(
        "Which type do you need before you divide? Where do 0 and 255 have to go?",
        "The seed is two integers, 0 and the step; the step may be int64.",
    ),
    why="A seed that follows from the step alone draws the same views in a run that was resumed.",
)
def device(prepare: Callable) -> Cases:
    """bfloat16 views from -1 to 1, which the step decides."""
    seen = []

    def recorded(images: tf.Tensor, size: int, seed: object) -> tf.Tensor:
        seen.append((images, np.asarray(tf.convert_to_tensor(seed)).tolist()))
        return random_views(images, size, seed)

    with other_names(prepare, random_views=recorded):
        black, white = (
            prepare(tf.fill([8, 160, 160, 3], np.uint8(value)), tf.constant(step, tf.int64))
            for value, step in ((0, 3), (255, 123_456))
        )
    returns(black, tf.Tensor, "prepare", "a tensor of images")
    yield "The type and shape of 8 views", [black.dtype.name, black.shape]
    expect(bool(seen), "Cut the views with random_views(images, size, seed).")
    shades = [float(tf.reduce_mean(tf.cast(each, tf.float32))) for each, _ in seen]
    yield "Black and white as random_views gets them, which takes values from -1 to 1", shades, 0.05
    shades = [float(tf.reduce_mean(tf.cast(each, tf.float32))) for each in (black, white)]
    yield "Black and white views in the mean, scaled once", shades, 0.3
    told = "The seeds of the steps 3 and 123456 (0 and the step: other views in each step, the same ones when it runs"
    yield f"{told} again)", [seed for _, seed in seen]
    return "Views from -1 to 1 in bfloat16; the same step sees the same."
