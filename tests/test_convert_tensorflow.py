"""TensorFlow reads what the converter writes; the only test of the converter that imports it."""

import csv
import io
import random

import numpy as np
import pytest
from PIL import Image

from lab_utils.convert import convert
from lab_utils.convert.errors import RejectError
from lab_utils.convert.images import RgbJpeg, to_rgb_jpeg
from lab_utils.convert.records import Example, encode_example

tf = pytest.importorskip("tensorflow")

SPECIFICATION = {
    "image/encoded": tf.io.FixedLenFeature([], tf.string),
    "image/format": tf.io.FixedLenFeature([], tf.string),
    "image/colorspace": tf.io.FixedLenFeature([], tf.string),
    "image/filename": tf.io.FixedLenFeature([], tf.string),
    "image/class/text": tf.io.FixedLenFeature([], tf.string),
    "image/height": tf.io.FixedLenFeature([], tf.int64),
    "image/width": tf.io.FixedLenFeature([], tf.int64),
    "image/channels": tf.io.FixedLenFeature([], tf.int64),
    "image/class/label": tf.io.FixedLenFeature([], tf.int64),
}


@pytest.fixture(scope="module")
def converted(tmp_path_factory):
    """Images of every kind, converted and read back: {file name: features, as numpy}."""
    folder = tmp_path_factory.mktemp("images")
    ramp = np.linspace(0, 255, 40 * 24 * 3, dtype=np.uint8).reshape(24, 40, 3)
    image = Image.fromarray(ramp)
    rotated = Image.Exif()
    rotated[0x0112] = 6
    image.save(folder / "baseline.jpg")
    image.save(folder / "progressive.jpg", progressive=True)
    image.save(folder / "rotated.jpg", exif=rotated)
    image.convert("L").save(folder / "grey.jpg")
    image.convert("CMYK").save(folder / "cmyk.jpg")
    image.save(folder / "true.png")
    image.convert("RGBA").save(folder / "alpha.png")
    image.save(folder / "image.gif")
    image.save(folder / "image.bmp")
    image.save(folder / "image.webp")
    names = sorted(path.name for path in folder.iterdir())
    (folder / "labels.txt").write_text("odd\neven\n")
    with open(folder / "rows.csv", "w", newline="") as file:
        csv.writer(file).writerows((name, ("odd", "even")[n % 2]) for n, name in enumerate(names))
    rows = folder / "rows.csv"
    manifest = convert(rows, rows, folder / "labels.txt", folder / "out", train_shards=3)
    records = tf.data.TFRecordDataset(manifest.paths("train"))
    examples = [
        tf.io.parse_single_example(record, SPECIFICATION) for record in records.as_numpy_iterator()
    ]
    found = {
        example["image/filename"].numpy().decode(): {k: v.numpy() for k, v in example.items()}
        for example in examples
    }
    assert sorted(found) == names
    return folder, found


def test_the_pixels_survive(converted):
    folder, found = converted
    for name, features in found.items():
        decoded = tf.io.decode_jpeg(features["image/encoded"]).numpy()
        assert decoded.shape == (features["image/height"], features["image/width"], 3)
        assert features["image/channels"] == 3
        with Image.open(folder / name) as image:
            if name == "rotated.jpg":
                image = image.transpose(Image.Transpose.ROTATE_270)
            expected = np.asarray(image.convert("RGB"), dtype=float)
        assert np.abs(decoded - expected).mean() < 6, name


def test_labels_count_from_one(converted):
    _, found = converted
    for number, name in enumerate(sorted(found)):
        assert found[name]["image/class/label"] == number % 2 + 1
        assert found[name]["image/class/text"] == (b"odd", b"even")[number % 2]


def damaged(data: bytes, source: random.Random) -> bytes:
    place = source.randrange(2, len(data) - 600)
    return source.choice(
        [
            lambda: data[:place] + source.randbytes(512) + data[place + 512 :],
            lambda: data[:place] + bytes([source.randrange(256)]) + data[place + 1 :],
            lambda: data[:place] + bytes(512) + data[place + 512 :],
            lambda: data[:place] + data[place + source.randrange(500) :],
            lambda: data[:place] + data[place // 2 : place] + data[place:],
        ]
    )()


def test_what_is_accepted_tensorflow_can_decode():
    coarse = np.random.default_rng(0).integers(0, 256, (24, 32, 3), dtype=np.uint8)
    source = random.Random(0)
    accepted = refused = 0
    for number in range(300):
        file = io.BytesIO()
        image = Image.fromarray(coarse).resize((160, 120))
        image.save(file, "JPEG", quality=90, progressive=number % 2 == 0)
        data = damaged(file.getvalue(), source)
        try:
            stored = to_rgb_jpeg(data).data
        except RejectError:
            refused += 1
            continue
        accepted += 1
        tf.io.decode_jpeg(stored, channels=3)  # raises InvalidArgumentError
    assert min(accepted, refused) > 25


def test_the_message_is_tensorflows_own_though_built_apart():
    data = encode_example(RgbJpeg(b"jpeg", 2, 3), b"a.jpg", 1, "rose")
    example = tf.train.Example.FromString(data)
    assert example.features.feature["image/height"].int64_list.value[0] == 2
    assert example.SerializeToString(deterministic=True) == data
    assert type(example) is not Example
