"""Bytes to pixels: TODO 7a, preprocess, and 7b, the records of input_fn."""

import io
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
from PIL import Image

from lab_utils.check.outcome import Wrong
from lab_utils.check.todos import todo
from lab_utils.check.tools import a, expect, scope_of
from lab_utils.estimator import tf

SIZE = 32
RED, GREY, BLUE = (200, 30, 30), (128, 128, 128), (30, 30, 200)


def banded(width: int, height: int, mode: str = "RGB") -> bytes:
    """A JPEG whose left quarter is red and whose right quarter is blue, grey between."""
    pixels = np.empty([height, width, 3], np.uint8)
    pixels[:], pixels[:, : width // 4], pixels[:, -(width // 4) :] = GREY, RED, BLUE
    file = io.BytesIO()
    Image.fromarray(pixels).convert(mode).save(file, "JPEG", quality=95, subsampling=0)
    return file.getvalue()


def image_of(preprocess: Callable, encoded: bytes) -> np.ndarray:
    """What preprocess makes of one image within tf.data, which traces it as input_fn does."""

    returned = []

    def traced(one: tf.Tensor) -> tf.Tensor:
        returned.append(preprocess(one, SIZE))
        return tf.convert_to_tensor(0 if returned[0] is None else returned[0])

    try:
        dataset = tf.data.Dataset.from_tensors(encoded).map(traced)
    except ValueError as error:
        if "contains no shape" not in str(error):
            raise
        raise Wrong(
            "decode_image may give an animation, of four axes, so its result has no static shape and cannot "
            "be resized: expand_animations=False."
        ) from None
    expect(returned[0] is not None, f"preprocess should return a tensor; yours returns {a(None)}.")
    spec = dataset.element_spec
    expect(
        spec.shape.as_list() == [SIZE, SIZE, 3],
        f"With size={SIZE} the static shape should be ({SIZE}, {SIZE}, 3); yours is {spec.shape}. channels=3 "
        "makes three of a grey image's one; resize sets height and width.",
    )
    expect(
        spec.dtype == tf.uint8,
        f"The pixels should stay uint8 on their way to the device; yours are {spec.dtype.name}.",
    )
    return next(iter(dataset)).numpy().astype(int)


@todo(
    "7a",
    hints=(
        'decode_image takes any kind of image; two of its arguments make a shape of three axes, with three channels.',
        'What does resize give, which type and which range? What does tf.cast do with 3.9?',
    ),
    why='Means over areas use every pixel, and rounding keeps their mean: training and serving see the same.',
)
def one_image(preprocess: Callable) -> str:
    """The whole picture in a square of uint8, whatever it was."""
    for width, height in ((128, 64), (48, 96)):
        encoded = banded(width, height)
        image = image_of(preprocess, encoded)
        expect(
            image.max() > 1,
            "The picture comes out black: uint8 goes from 0 to 255, not from 0 to 1.",
        )
        again = [image_of(preprocess, encoded) for _ in range(3)]
        expect(
            all(np.array_equal(image, each) for each in again),
            "The same bytes give another result each time. Evaluation and serving come by here: nothing "
            "random.",
        )
        for column, colour in ((2, RED), (SIZE // 2, GREY), (SIZE - 3, BLUE)):
            found = image[4:-4, column].mean(0)
            expect(
                np.abs(found - colour).max() < 25,
                f"The whole picture should fill the square, squeezed. Of one of {width} x {height}, red "
                f"at its left and blue at its right, column {column} of {SIZE} comes out as "
                f"{found.round().astype(int).tolist()}, not {list(colour)}.",
            )
    image_of(preprocess, banded(40, 40, "L"))
    _is_of_means(preprocess)
    return "Any size, grey or colour: the whole picture, uint8, with a static shape."


def _is_of_means(preprocess: Callable) -> None:
    """Raises Wrong unless each pixel is the rounded mean over its area, of an image in another format too."""
    pixels = np.random.default_rng(8).integers(0, 256, [80, 112, 3]).astype(np.uint8)
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "BMP")
    try:
        found = image_of(preprocess, file.getvalue())
    except tf.errors.InvalidArgumentError as error:
        raise Wrong(
            f"A picture in another format than JPEG, here a BMP, fails; tf.io.decode_image takes every kind. ({str(error)[:160]})"
        ) from None
    wanted = tf.image.resize(pixels, [SIZE, SIZE], method="area").numpy()
    over = wanted - found
    expect(
        not (over.min() > -0.01 and 0.9 < over.max() < 1.01),
        "The means are cut off, not rounded: tf.cast drops what is behind the point, so tf.round comes first.",
    )
    expect(
        np.abs(over).max() < 0.51,
        "The pixels are not the means over areas: tf.image.resize without method=\"area\" looks at a few "
        "pixels and passes over the rest.",
    )


def records(folder: Path, count: int) -> list[bytes]:
    """Writes `count` records as lab 05's conversion does, their labels 1, 2, 3, 1 ...; the images' bytes."""
    images = [banded(40 + 8 * n, 40) for n in range(count)]
    with tf.io.TFRecordWriter(str(folder / "eval-00000-of-00001.tfrecord")) as writer:
        for n, image in enumerate(images):
            feature = {
                "image/encoded": tf.train.Feature(bytes_list=tf.train.BytesList(value=[image])),
                "image/class/label": tf.train.Feature(
                    int64_list=tf.train.Int64List(value=[n % 3 + 1])
                ),
            }
            example = tf.train.Example(features=tf.train.Features(feature=feature))
            writer.write(example.SerializeToString())
    return images


def _as_the_model_expects(spec: tuple) -> None:
    """Raises `Wrong` unless batches of 4 have the structure, types and shapes that model_fn takes."""
    expect(
        isinstance(spec, tuple) and len(spec) == 2,
        f"parse should return a pair, (features, label); yours gives {spec}.",
    )
    features, label = spec
    expect(
        isinstance(features, dict) and {"image", "weight"} <= features.keys(),
        'Features should be a dict of "image" and "weight"; yours hold '
        f"{list(features) if isinstance(features, dict) else features}.",
    )
    for name, found, kind, shape in (
        ("The image, made by preprocess,", features["image"], tf.uint8, [SIZE, SIZE, 3]),
        ("The weight", features["weight"], tf.float32, []),
        ("The label", label, tf.int32, []),
    ):
        expect(
            found.dtype == kind and found.shape.as_list()[1:] == shape,
            f"{name} should be {kind.name} {shape}; yours is {found.dtype.name} "
            f"{found.shape.as_list()[1:]}.",
        )


@todo(
    "7b",
    hints=(
        'tf.io.parse_single_example takes a dict from name to FixedLenFeature and returns one from name to tensor.',
        'Which function makes the image? What does the label need, by type and by number?',
        'A weight of a real image is a scalar of float32.',
    ),
    why='One parse for training and evaluation, with what the padding has, too.',
)
def input_fn(make_input_fn: Callable) -> str:
    """Records as lab 05 writes them -> images, weights, labels from 0."""
    with tempfile.TemporaryDirectory() as folder:
        images = records(Path(folder), 6)
        params = {"batch_size": 4, "image_size": SIZE}
        try:
            _as_the_model_expects(make_input_fn(f"{folder}/eval-*", True)(params).element_spec)
        except tf.errors.InvalidArgumentError as error:
            expect("output_types" not in str(error), "parse returns None: is a return missing?")
            raise
        evaluation = make_input_fn(f"{folder}/eval-*", False)(params)
        batches = [each for each, _ in zip(evaluation, range(2), strict=False)]
        again = [  # what is drawn at random is drawn again in each pass
            np.concatenate([features["image"] for features, _ in evaluation.take(2)]) for _ in range(4)
        ]
    features, label = tf.nest.map_structure(lambda *parts: np.concatenate(parts), *batches)
    expect(
        label[:3].tolist() != [1, 2, 3],
        "Labels in the records count from 1, 0 being background; a model of n classes wants 0 to n - 1.",
    )
    expect(
        label[:6].tolist() == [0, 1, 2, 0, 1, 2],
        f"Labels 1, 2, 3, 1, 2, 3 of the records should become 0, 1, 2, 0, 1, 2; yours are {label[:6]}.",
    )
    weight = features["weight"]
    expect(
        weight[:6].tolist() == [1.0] * 6,
        f"Real images have weight 1; with yours, {weight[:6].tolist()}, they count for nothing or too much.",
    )
    preprocess = scope_of(make_input_fn)["preprocess"]
    for n, encoded in enumerate(images):
        expect(
            all(
                np.array_equal(each[n], image_of(preprocess, encoded))
                for each in (features["image"], *again)
            ),
            "The images are not what preprocess makes of the same bytes; serving would differ. "
            "Nothing before it, nothing after it.",
        )
    return "Images through preprocess, weight 1, labels from 0."
