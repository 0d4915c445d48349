"""TensorFlow reads what the converter writes; the only test of the converter that imports it."""

import io
import random

import numpy as np
import pytest
from PIL import Image

from lab_utils.convert.errors import RejectError
from lab_utils.convert.images import RgbJpeg, to_rgb_jpeg
from lab_utils.convert.records import Example, encode_example

tf = pytest.importorskip("tensorflow")


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
