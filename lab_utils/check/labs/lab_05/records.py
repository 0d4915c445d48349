"""One record: TODO 5a, the size of a picture, 5b, the example, 5g, reading it back, and 5h, from a bucket."""

import io
from collections.abc import Callable
from typing import Any
from unittest import mock

import numpy as np
from google.protobuf.message import DecodeError
from PIL import Image, ImageFile

from lab_utils.check.outcome import Wrong
from lab_utils.check.todos import Cases, todo
from lab_utils.check.tools import a, expect, other_names, returns
from lab_utils.estimator import tf


def picture(format: str = "JPEG", height: int = 40, width: int = 60) -> bytes:
    """A file of 40 x 60 pixels, or others: red grows to the right, green downwards, blue is even."""
    rgb = np.full([height, width, 3], 90, np.uint8)
    rgb[:, :, 0] = np.linspace(0, 250, width)[None]
    rgb[:, :, 1] = np.linspace(0, 250, height)[:, None]
    file = io.BytesIO()
    Image.fromarray(rgb).save(file, format)
    return file.getvalue()


@todo(
    "5a",
    hints=(
        "Put only Image.open into a try, so that every exception it raises becomes a Reject with a reason.",
        "Which attribute of the image tells the format? Which bytes should the data end with?",
        "Pillow's .size has the width first; tensors have the height first.",
    ),
    why="The header is enough for the size. The end marker tells what the header cannot: whether the rest is there.",
    slips={
        (
            "image.height, image.width",
            "image.size",
        ): "For 40 rows and 60 columns (60, 40) comes out: "
        "that is width first, as Pillow's .size has it. Return (height, width).",
    },
)
def size(image_size: Callable) -> Cases:
    """Height and width from the header; a reject for everything but a whole JPEG."""
    jpeg = picture()
    with mock.patch.object(ImageFile.ImageFile, "load", side_effect=_Decoded):
        try:
            yield "For a JPEG of 40 rows and 60 columns", image_size(jpeg)
            hollow = image_size(_without_tables(jpeg))
            yield (
                "For a JPEG of 40 rows and 60 columns of which only the header can be read",
                hollow,
            )
            large = image_size(picture(height=900, width=1300))
            yield "For a JPEG of 900 rows and 1,300 columns", large
        except (_Decoded, tf.errors.InvalidArgumentError):
            raise Wrong(
                "This decodes the whole picture. Height and width stand in the header, which Image.open has "
                "read already: image.height, image.width."
            ) from None
    half = jpeg[: (jpeg.index(b"\xff\xda") + len(jpeg)) // 2]
    png = picture("PNG") + b"\xff\xd9"  # these two bytes prove nothing about its kind
    for told, data in (
        ("a JPEG that ends in the midst of its picture", half),
        ("half a JPEG that holds a whole thumbnail, and with it an end marker, but not at its end", _with_thumbnail(half)),
        ("a PNG", png),
        ("a text, which is not an image at all", b"<html>404 Not Found</html>"),
        ("an empty file", b""),
        ("a JPEG that is cut off in its header", jpeg[:30]),
    ):  # fmt: skip
        yield f"For {told}", _outcome(image_size, data)[0]
    why = _outcome(image_size, png)[1]
    expect(
        why != _outcome(image_size, half)[1],
        f"A PNG and half a JPEG are rejected for the same reason, {why!r}: say which of them it is, so that a "
        "colleague knows what to do.",
    )
    return "The header says it all; a JPEG that is not whole is rejected with a reason."


class _Decoded(BaseException):  # past any `except Exception` of the learner's
    """Raised where Pillow would decode."""


def _without_tables(jpeg: bytes) -> bytes:
    """The JPEG without its quantisation tables: its size can be read, but no decoder can decode it."""
    while (table := jpeg.find(b"\xff\xdb")) >= 0:
        length = int.from_bytes(jpeg[table + 2 : table + 4])
        jpeg = jpeg[:table] + jpeg[table + 2 + length :]
    return jpeg


def _with_thumbnail(jpeg: bytes) -> bytes:
    """The JPEG with a small one in its Exif segment, as cameras write them."""
    held = b"Exif\0\0" + picture(height=8, width=8)
    return jpeg[:2] + b"\xff\xe1" + (len(held) + 2).to_bytes(2) + held + jpeg[2:]


def _outcome(function: Callable, *arguments: Any) -> tuple[str, str]:
    """What became of a bad file, in words, and the reason of its Reject."""
    try:
        return a(function(*arguments)), ""
    except NotImplementedError:
        raise
    except Exception as error:
        kind = type(error).__name__
        if kind != "Reject":
            return f"{kind} is raised, which ends the whole job", ""
        return "a Reject with a reason" if str(error) else "a Reject without a reason", str(error)


_FEATURES = {
    "image/height": "of 40 rows and 60 columns",
    "image/width": "of 40 rows and 60 columns",
    "image/channels": "in colour",
    "image/class/label": "of class 7 (labels count from 1 here, and label does so already)",
    "image/format": "that is a JPEG",
    "image/colorspace": "in colour",
    "image/class/text": "of class 'Gänseblümchen', as UTF-8",
    "image/filename": "in wiese/gänse.jpg, as UTF-8",
}


@todo(
    "5b",
    hints=(
        "Which of the nine values are whole numbers, and which are bytes? Text becomes bytes with .encode().",
        "Features hold a dict, an Example holds Features, and SerializeToString turns an Example into bytes.",
    ),
    why="One order of names and types for all readers; the picture itself is copied, never decoded.",
)
def example(make_example: Callable) -> Cases:
    """A serialised Example with the nine features of the TPU readers."""
    data = picture()
    made = make_example(data, "wiese/gänse.jpg", 7, "Gänseblümchen")
    returns(made, bytes, "make_example", "bytes, example.SerializeToString()")
    try:
        features = dict(tf.train.Example.FromString(made).features.feature)
    except DecodeError:
        raise Wrong(
            "These bytes are not a tf.train.Example: wrap the Features, "
            "tf.train.Example(features=tf.train.Features(feature=...)), and serialise that."
        ) from None
    for name, told in _FEATURES.items():
        feature = features.get(name, tf.train.Feature())
        kind = feature.WhichOneof("kind") or "no such feature"
        yield (
            f"{name} of a picture {told}",
            [kind, *getattr(getattr(feature, kind, None), "value", [])],
        )
    encoded = features.get("image/encoded", tf.train.Feature()).bytes_list.value
    expect(
        list(encoded) == [data],
        "image/encoded should be the JPEG file, byte for byte: neither decoded nor encoded again.",
    )
    bad = _outcome(make_example, data[: len(data) * 3 // 4], "half.jpg", 7, "rose")
    yield (
        "Half a JPEG as the data (take height and width from image_size, which rejects it)",
        bad[0],
    )
    return "Nine features, as the readers of ImageNet expect them."


@todo(
    "5g",
    hints=(
        "FixedLenFeature says shape and type of a feature; integers are int64 in a record.",
        "channels=3 fixes the last axis, tf.image.resize the other two, as float32.",
        "Which types does the TODO ask for, and from which number do its classes count?",
    ),
    why="Every picture comes out in one shape and type, so that batches of it have one shape.",
    slips={
        (
            "[SIZE, SIZE])",
            "[SIZE, SIZE]) / 255",
        ): "The picture comes out black: uint8 goes from 0 to "
        "255, so scale nothing before the cast.",
        (
            "tf.image.resize(image,",
            "tf.image.resize(tf.transpose(image, [1, 0, 2]),",
        ): "The picture's rows have become columns: its height is the first axis, and stays so.",
        (
            "tf.image.resize(image,",
            "tf.image.resize(image[..., ::-1],",
        ): "Red and blue are swapped: decode_jpeg gives red, green, blue, and this order stays.",
        ("tf.image.resize(", "tf.image.resize_with_pad("): "There are black bars at the edges: the "
        "picture was padded, not squeezed into the square.",
    },
)
def reading(parse: Callable) -> Cases:
    """From a record to uint8 of a static shape, and a class from 0."""
    example = tf.train.Example()
    example.features.feature["image/encoded"].bytes_list.value.append(picture())
    example.features.feature["image/class/label"].int64_list.value.append(3)
    for name in ("text", "format", "colorspace", "filename"):
        feature = example.features.feature["image/" + ("class/text" if name == "text" else name)]
        feature.bytes_list.value.append(b"RGB")
    for name in ("height", "width", "channels"):
        example.features.feature[f"image/{name}"].int64_list.value.append(3)
    records = tf.data.Dataset.from_tensors(example.SerializeToString())
    for side, edge in (
        (96, 12),
        (24, 3),
    ):  # larger than the picture, and smaller, which a crop would show
        with other_names(parse, SIZE=side):
            dataset = records.map(parse)
        spec = dataset.element_spec
        pair = isinstance(spec, tuple) and len(spec) == 2
        expect(pair, "parse should return a pair: the picture and its class.")
        told = f"With SIZE = {side} (take SIZE, not its value)"
        yield f"{told}, the picture's type and static shape", [spec[0].dtype.name, spec[0].shape]
        yield f"{told}, the type of the class", spec[1].dtype.name
        (image, label), *again = dataset.repeat(16).as_numpy_iterator()
        expect(
            all(np.array_equal(each, image) for each, _ in again),
            "The same record gives another picture each time: parse reads what is there; views that are drawn "
            "at random belong into the training's own step.",
        )
        yield (
            f"{told}, the class of a record of class 3, counted from 1 (from 0 is asked for)",
            label,
        )
        for name, corner in (
            ("top left", image[:edge, :edge]),
            ("top right", image[:edge, -edge:]),
            ("bottom left", image[-edge:, :edge]),
            ("bottom right", image[-edge:, -edge:]),
        ):
            colour = (corner.mean(axis=(0, 1)) / 255).astype(np.float32)
            told = f"The {name} of a picture whose red grows to the right and green downwards"
            yield (
                f"{told}, the whole of it squeezed into {side} x {side}, as red, green, blue of 0 to 1",
                colour,
                0.06,
            )
    return "Pictures of one static shape, classes from 0."


@todo(
    "5h",
    hints=(
        "What does one file take? How many requests, and how many bytes?",
        "How many files has the stream with the most of them? It is a whole number.",
    ),
    why="Every request waits once; its bytes flow afterwards; streams wait side by side.",
    slips={
        (
            "requests * latency + ",
            "",
        ): "The latency is missing: each request waits before its first byte.",
        (
            " + file_bytes / bandwidth",
            "",
        ): "The bytes are missing: 1,000 bytes at 100 bytes/s take 10 s.",
        ("math.ceil(file_bytes / buffer_size)", "file_bytes / buffer_size"): "Part of a piece is a "
        "request, too: round up.",
        (
            "math.ceil(file_bytes / buffer_size)",
            "file_bytes // buffer_size",
        ): "The last, smaller piece is a request, too: round up.",
        ("file_bytes / bandwidth", "requests * buffer_size / bandwidth"): "The last piece has 200 "
        "bytes, not 400: the bytes of the file do not change with the buffer.",
        (
            "math.ceil(files / streams)",
            "files",
        ): "Two streams read at the same time; yours reads one after another.",
        (
            "math.ceil(files / streams)",
            "files / streams",
        ): "Five files in two streams: a file is not divided, so one stream reads three of them.",
    },
)
def bucket(bucket_seconds: Callable) -> Cases:
    """Requests times latency plus bytes, times the files of the busiest stream."""
    for told, *numbers in (
        ("1,000 bytes in one piece", 1, 1000, 1000, 1),
        ("1,000 bytes in pieces of 400, three requests", 1, 1000, 400, 1),
        (
            "Five such files in one piece each, in two streams of which one reads three",
            5,
            1000,
            1000,
            2,
        ),
        ("Two such files in eight streams", 2, 1000, 1000, 8),
        (
            "Five files in pieces of 400 in two streams (no request reads from two files)",
            5,
            1000,
            400,
            2,
        ),
    ):
        found = bucket_seconds(*numbers, 2.0, 100.0)
        yield f"{told}, with 2 s a request and 100 bytes/s", found
    return "Latency by the request, bytes by the bandwidth, and the busiest stream decides."
