"""One record: TODO 5a, the size of a picture, 5b, the example, and 5g, reading it back."""

import io
from collections.abc import Callable
from unittest import mock

import numpy as np
from google.protobuf.message import DecodeError
from PIL import Image, ImageFile

from lab_utils.check.outcome import Wrong
from lab_utils.check.todos import todo
from lab_utils.check.tools import a, expect, scope_of, with_names
from lab_utils.estimator import tf

HEIGHT, WIDTH = 40, 60


def picture(format: str = "JPEG", height: int = HEIGHT, width: int = WIDTH) -> bytes:
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
        'Put only Image.open into a try, so that every exception it raises becomes a Reject with a reason.',
        'Which attribute of the image tells the format? Which bytes should the data end with?',
        "Pillow's .size has the width first; tensors have the height first.",
    ),
    why='The header is enough for the size. The end marker tells what the header cannot: whether the rest is there.',
)
def size(image_size: Callable) -> str:
    """Height and width from the header; a reject for everything but a whole JPEG."""
    jpeg = picture()
    with mock.patch.object(ImageFile.ImageFile, "load", autospec=True) as decoding:
        decoding.side_effect = _Decoded
        try:
            found = _accepted(image_size, jpeg)
            hollow = _accepted(image_size, _without_tables(jpeg))
            large = _accepted(image_size, picture(height=900, width=1300))
        except (_Decoded, tf.errors.InvalidArgumentError):
            raise Wrong(
                "This decodes the whole picture. Height and width stand in the header, which Image.open has "
                "read already: image.height, image.width."
            ) from None
    expect(found is not None, "image_size returns None for a good JPEG (is a return missing?)")
    expect(
        tuple(found) != (WIDTH, HEIGHT),
        f"A picture of {HEIGHT} rows and {WIDTH} columns gives {tuple(found)}: that is width first, as "
        "Pillow's .size has it. Return (height, width).",
    )
    expect(
        tuple(found) == tuple(hollow) == (HEIGHT, WIDTH) and tuple(large) == (900, 1300),
        f"JPEGs of {HEIGHT} rows and {WIDTH} columns, and of 900 and 1300, give {tuple(found)} and {tuple(large)}; "
        "each should give (height, width) of the file.",
    )
    half = jpeg[: (jpeg.index(b"\xff\xda") + len(jpeg)) // 2]
    truncated = _is_rejected(image_size, "a JPEG that ends in the midst of its picture", half)
    _is_rejected(
        image_size,
        "half a JPEG that holds a whole thumbnail, and with it an end marker, but not at its end,",
        _with_thumbnail(half),
    )
    for what, data in (
        ("a PNG", picture("PNG") + b"\xff\xd9"),  # these two bytes prove nothing about its kind
        ("a text, which is not an image at all,", b"<html>404 Not Found</html>"),
        ("an empty file", b""),
        ("a JPEG that is cut off in its header", jpeg[:30]),
    ):
        why = _is_rejected(image_size, what, data)
        expect(
            what != "a PNG" or why != truncated,
            f"A PNG and half a JPEG are rejected for the same reason, {why!r}: say which of them it is, so "
            "that a colleague knows what to do.",
        )
    return "The header says it all; a JPEG that is not whole is rejected with a reason."


class _Decoded(BaseException):  # past any `except Exception` of the learner's
    """Raised where Pillow would decode."""

    def __init__(self, *args: object, **kwargs: object) -> None:
        pass


def _without_tables(jpeg: bytes) -> bytes:
    """The JPEG without its quantisation tables: its size can be read, but no decoder can decode it."""
    while (table := jpeg.find(b"\xff\xdb")) >= 0:
        length = int.from_bytes(jpeg[table + 2 : table + 4])
        jpeg = jpeg[:table] + jpeg[table + 2 + length :]
    return jpeg


def _with_thumbnail(jpeg: bytes) -> bytes:
    """The JPEG with a small one in its Exif segment, as cameras write them."""
    file = io.BytesIO()
    Image.new("RGB", (8, 8)).save(file, "JPEG")
    held = b"Exif\0\0" + file.getvalue()
    return jpeg[:2] + b"\xff\xe1" + (len(held) + 2).to_bytes(2) + held + jpeg[2:]


def _accepted(image_size: Callable, jpeg: bytes) -> object:
    """What image_size gives for a good file."""
    try:
        return image_size(jpeg)
    except Exception as error:
        expect(type(error).__name__ != "Reject", f"A whole JPEG is rejected: {error}")
        raise


def _is_rejected(image_size: Callable, what: str, data: bytes) -> str:
    """Raises Wrong unless the bytes are rejected; the reason."""
    try:
        found = image_size(data)
    except Exception as error:
        if isinstance(error, NotImplementedError):
            raise
        expect(
            type(error).__name__ == "Reject",
            f"For {what} image_size raises {type(error).__name__}; it should raise Reject, or the whole "
            "job ends there.",
        )
        expect(bool(str(error)), f"For {what} it raises Reject without a reason.")
        return str(error)
    else:
        raise Wrong(f"For {what} image_size should raise Reject; it returns {found}.")


_BYTES = {
    "image/format": b"JPEG",
    "image/colorspace": b"RGB",
    "image/class/text": "Gänseblümchen".encode(),
    "image/filename": "wiese/gänse.jpg".encode(),
}
_INTEGERS = {
    "image/height": HEIGHT,
    "image/width": WIDTH,
    "image/channels": 3,
    "image/class/label": 7,
}


@todo(
    "5b",
    hints=(
        'Which of the nine values are whole numbers, and which are bytes? Text becomes bytes with .encode().',
        'Features hold a dict, an Example holds Features, and SerializeToString turns an Example into bytes.',
    ),
    why='One order of names and types for all readers; the picture itself is copied, never decoded.',
)
def example(make_example: Callable) -> str:
    """A serialised Example with the nine features of the TPU readers."""
    data = picture()
    made = make_example(data, "wiese/gänse.jpg", 7, "Gänseblümchen")
    expect(
        isinstance(made, bytes),
        f"make_example should return bytes: example.SerializeToString(). Yours returns {a(made)}.",
    )
    try:
        features = dict(tf.train.Example.FromString(made).features.feature)
    except DecodeError:
        raise Wrong(
            "These bytes are not a tf.train.Example: wrap the Features, "
            "tf.train.Example(features=tf.train.Features(feature=...)), and serialise that."
        ) from None
    for name in [*_BYTES, *_INTEGERS, "image/encoded"]:
        expect(
            name in features,
            f"The feature {name} is missing; there are {', '.join(sorted(features)) or 'none'}.",
        )
    for name, value in _INTEGERS.items():
        found = list(features[name].int64_list.value)
        expect(len(found) == 1, f"{name} should be one integer (int_feature).")
        told = "; labels count from 1 here, and label does so already" if "label" in name else ""
        expect(
            found == [value],
            f"For a picture of {HEIGHT} rows and {WIDTH} columns, of class 7, {name} is {found[0]}{told}.",
        )
    for name, value in _BYTES.items():
        found = list(features[name].bytes_list.value)
        expect(found == [value], f"{name} should be [{value}]; it is {found}.")
    expect(
        list(features["image/encoded"].bytes_list.value) == [data],
        "image/encoded should be the JPEG file, byte for byte: neither decoded nor encoded again.",
    )
    try:
        make_example(data[: len(data) * 3 // 4], "half.jpg", 7, "rose")
    except Exception as error:
        if type(error).__name__ != "Reject":
            raise
    else:
        raise Wrong(
            "Half a JPEG becomes an example: take height and width from image_size, which rejects it."
        )
    return "Nine features, as the readers of ImageNet expect them."


@todo(
    "5g",
    hints=(
        'FixedLenFeature says shape and type of a feature; integers are int64 in a record.',
        'channels=3 fixes the last axis, tf.image.resize the other two, as float32.',
        'Which types does the TODO ask for, and from which number do its classes count?',
    ),
    why='Every picture comes out in one shape and type, so that batches of it have one shape.',
)
def reading(parse: Callable) -> str:
    """From a record to uint8 of a static shape, and a class from 0."""
    records = [_record(picture(), 3), _record(_framed(), 5)]
    dataset = tf.data.Dataset.from_tensor_slices(records).map(parse)
    spec = dataset.element_spec
    expect(
        isinstance(spec, tuple) and len(spec) == 2,
        "parse should return a pair: the picture and its class.",
    )
    expect(
        spec[0].shape.rank != 0 or spec[1].shape.rank != 3,
        "The class comes first; parse should return the picture and its class.",
    )
    side, shape = scope_of(parse).get("SIZE", 96), spec[0].shape
    expect(
        shape.is_fully_defined() and shape == (side, side, 3),
        f"The picture should have the static shape [SIZE, SIZE, 3], here {[side, side, 3]}; it is {shape}.",
    )
    expect(
        spec[0].dtype == tf.uint8,
        f"The picture should be uint8, a quarter of float32; it is {spec[0].dtype.name}.",
    )
    expect(spec[1].dtype == tf.int32, f"The class should be int32; it is {spec[1].dtype.name}.")
    try:
        (image, label), (framed, _) = dataset.as_numpy_iterator()
    except tf.errors.InvalidArgumentError as error:
        expect(
            "Incompatible shapes" not in str(error),
            f"The picture is not {side} pixels wide and high, whatever set_shape says: tf.image.resize.",
        )
        raise
    expect(
        label == 2,
        f"A record of class 3, counted from 1, gives {label}; counted from 0 that is class 2.",
    )
    expect(
        image.max() > 5,
        "The picture comes out black: uint8 goes from 0 to 255, so scale nothing before the cast.",
    )
    again = [each for each, _ in dataset.take(1).repeat(32).as_numpy_iterator()]
    expect(
        all(np.array_equal(each, image) for each in again),
        "The same record gives another picture each time: parse reads what is there; views that are drawn at "
        "random belong into the training's own step.",
    )
    edges = [framed[3, side // 2], framed[-4, side // 2], framed[side // 2, 3], framed[side // 2, -4]]
    expect(
        min(edge.mean() for edge in edges) > 40,
        "There are black bars at the edges: the picture was padded, not squeezed into the square.",
    )
    expect(
        min(edge.mean() for edge in edges) > 180,
        "The edges of the picture are missing: squeeze the whole of it into the square, and crop nothing.",
    )
    wanted = Image.open(io.BytesIO(picture())).resize((side, side))
    difference = np.abs(image.astype(float) - np.asarray(wanted, float)).mean()
    expect(
        difference < 12,
        "The picture is not the whole one squeezed into the square (tf.image.resize): it differs by "
        f"{difference:.0f} of 255 on average.",
    )
    smaller = with_names(parse, SIZE=24)  # smaller than the pictures, which a crop would show
    shape = tf.data.Dataset.from_tensor_slices(records).map(smaller).element_spec[0].shape
    expect(shape == (24, 24, 3), f"With SIZE = 24 the picture is {shape}: take SIZE, not its value.")
    image = smaller(tf.constant(records[0]))[0].numpy()
    wanted = Image.open(io.BytesIO(picture())).resize((24, 24))
    expect(
        np.abs(image.astype(float) - np.asarray(wanted, float)).mean() < 16,
        "A picture larger than SIZE by SIZE is not squeezed into it: keep the whole of it, and crop nothing.",
    )
    return "Pictures of one static shape, classes from 0."


def _record(jpeg: bytes, label: int) -> bytes:
    """A whole example, with all nine features."""
    values = _BYTES | _INTEGERS | {"image/encoded": jpeg, "image/class/label": label}
    example = tf.train.Example()
    for name, value in values.items():
        feature = example.features.feature[name]
        (feature.bytes_list if isinstance(value, bytes) else feature.int64_list).value.append(value)
    return example.SerializeToString()


def _framed() -> bytes:
    """A grey JPEG of 40 x 60 pixels with a white frame of 4."""
    grey = np.full([HEIGHT, WIDTH, 3], 250, np.uint8)
    grey[4:-4, 4:-4] = 90
    file = io.BytesIO()
    Image.fromarray(grey).save(file, "JPEG", quality=95)
    return file.getvalue()
