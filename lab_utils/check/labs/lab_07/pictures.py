"""Bytes to pixels: TODO 7a, preprocess, 7b, the records of input_fn, 7c, views, and 7g, what a served model takes."""

import io
import tempfile
from collections.abc import Callable

import numpy as np
from PIL import Image

from lab_utils.check.todos import Cases, todo
from lab_utils.check.tools import a, expect, expect_dataset, returns, scope_of, translated
from lab_utils.estimator import tf, v1

SIZE = 32
_COLOURS = {
    "red": (200, 30, 30),
    "grey": (128, 128, 128),
    "blue": (30, 30, 200),
    "black": (0, 0, 0),
}
_PLACES = 5, SIZE // 2, SIZE - 6


def _encoded(pixels: np.ndarray, format: str = "JPEG", mode: str = "RGB") -> bytes:
    file = io.BytesIO()
    Image.fromarray(pixels).convert(mode).save(file, format, quality=95, subsampling=0)
    return file.getvalue()


def _banded(width: int, height: int) -> np.ndarray:
    """uint8 [height, width, 3]: the left quarter red, the right one blue, grey between."""
    pixels = np.full([height, width, 3], _COLOURS["grey"], np.uint8)
    pixels[:, : width // 4], pixels[:, -(width // 4) :] = _COLOURS["red"], _COLOURS["blue"]
    return pixels


def _banded_jpegs(count: int) -> list[bytes]:
    return [_encoded(_banded(40 + 8 * n, 40)) for n in range(count)]


def _prepared(preprocess: Callable, encoded: bytes) -> tuple[str, np.ndarray]:
    """Type and static shape, and the pixels, that preprocess makes of an image within tf.data, as input_fn does."""
    with translated(
        "contains no shape",
        "decode_image may give an animation, of four axes, so its result has no static shape and cannot be "
        "resized: expand_animations=False.",
    ):
        dataset = tf.data.Dataset.from_tensors(encoded).map(lambda one: preprocess(one, SIZE))
    return _kind(dataset.element_spec), next(dataset.as_numpy_iterator())


def _kind(tensor: tf.Tensor | tf.TensorSpec) -> str:
    return f"{tensor.dtype.name} {tensor.shape}"


@todo(
    "7a",
    hints=(
        "decode_image takes any kind of image; two of its arguments make a shape of three axes, with three channels.",
        "What does resize give, which type and which range? What does tf.cast do with 3.9?",
    ),
    why="Means over areas use every pixel, and rounding keeps their mean: training and serving see the same.",
    slips={
        (
            "tf.round(image)",
            "image",
        ): "The means are cut off, not rounded: tf.cast drops what is behind the point, "
        "so tf.round comes first.",
        (', method="area"', ""): "The pixels are not the means over areas: tf.image.resize without "
        'method="area" looks at a few pixels and passes over the rest.',
    },
)
def one_image(preprocess: Callable) -> Cases:
    """The whole picture in a square of uint8, whatever it was."""
    for width, height in ((160, 96), (48, 96)):
        encoded = _encoded(_banded(width, height))
        kind, pixels = _prepared(preprocess, encoded)
        yield (
            (
                f"Type and static shape for size={SIZE}, of a picture of {width} x {height} (channels=3 makes three of "
                "a grey image's one; resize sets height and width; pixels stay uint8 on their way to the device)"
            ),
            kind,
        )
        expect(
            all(np.array_equal(pixels, _prepared(preprocess, encoded)[1]) for _ in range(3)),
            "The same bytes give another result each time. Evaluation and serving come by here: nothing random.",
        )
        far = {
            name: np.abs(pixels[np.ix_(_PLACES, _PLACES)] - np.array(rgb)).sum(-1)
            for name, rgb in _COLOURS.items()
        }
        named = np.array(list(far))[np.argmin(list(far.values()), axis=0)]
        yield (
            (
                "The whole picture should fill the square, squeezed, in uint8 from 0 to 255: colours near its corners and "
                f"in its middle, of one of {width} x {height}, red at its left and blue at its right"
            ),
            named.tolist(),
        )
    yield (
        "Type and static shape, of a grey picture",
        _prepared(preprocess, _encoded(_banded(40, 40), mode="L"))[0],
    )
    noise = np.random.default_rng(8).integers(0, 256, [80, 112, 3]).astype(np.uint8)
    with translated(
        "",
        "A picture in another format than JPEG, here a BMP, fails; tf.io.decode_image takes every kind.",
        (tf.errors.InvalidArgumentError,),
    ):
        yield (
            "Each pixel should be the rounded mean over its area",
            _prepared(preprocess, _encoded(noise, "BMP"))[1],
        )
    return "Any size, grey or colour: the whole picture, uint8, with a static shape."


def _write_records(folder: str, images: list[bytes]) -> None:
    """Writes records as lab 05's conversion does, their labels 1, 2, 3, 1 ..."""
    with tf.io.TFRecordWriter(f"{folder}/eval-00000-of-00001.tfrecord") as writer:
        for n, image in enumerate(images):
            feature = {
                "image/encoded": tf.train.Feature(bytes_list=tf.train.BytesList(value=[image])),
                "image/class/label": tf.train.Feature(
                    int64_list=tf.train.Int64List(value=[n % 3 + 1])
                ),
            }
            example = tf.train.Example(features=tf.train.Features(feature=feature))
            writer.write(example.SerializeToString())


@todo(
    "7b",
    hints=(
        "tf.io.parse_single_example takes a dict from name to FixedLenFeature and returns one from name to tensor.",
        "Which function makes the image? What does the label need, by type and by number?",
        "A weight of a real image is a scalar of float32.",
    ),
    why="One parse for training and evaluation, with what the padding has, too.",
)
def input_fn(make_input_fn: Callable) -> Cases:
    """Records as lab 05 writes them -> images, weights, labels from 0."""
    images, params = _banded_jpegs(6), {"batch_size": 4, "image_size": SIZE}
    with tempfile.TemporaryDirectory() as folder:
        _write_records(folder, images)
        training = make_input_fn(f"{folder}/eval-*", True)(params)
        expect_dataset(training, "input_fn")
        yield (
            (
                'parse should return a pair: a dict of "image", made by preprocess, and "weight", a float32 scalar, and '
                "the label, an int32 scalar. A batch of 4"
            ),
            tf.nest.map_structure(_kind, training.element_spec),
        )
        evaluation = make_input_fn(f"{folder}/eval-*", False)(params)
        passes = [  # what is drawn at random is drawn again in each pass
            tf.nest.map_structure(
                lambda *parts: np.concatenate(parts), *evaluation.take(2).as_numpy_iterator()
            )
            for _ in range(5)
        ]
    features, label = passes[0]
    yield (
        (
            "Labels 1, 2, 3, 1, 2, 3 of the records, which count from 1, 0 being background; a model of n classes wants "
            "0 to n - 1"
        ),
        label[:6],
    )
    yield (
        "Real images have weight 1; with others they count for nothing or too much",
        features["weight"][:6],
    )
    preprocess = scope_of(make_input_fn)["preprocess"]
    for n, encoded in enumerate(images):
        wanted = _prepared(preprocess, encoded)[1]
        expect(
            all(np.array_equal(each["image"][n], wanted) for each, _ in passes),
            "The images are not what preprocess makes of the same bytes; serving would differ. Nothing before it, "
            "nothing after it.",
        )
    return "Images through preprocess, weight 1, labels from 0."


def _seen(views: Callable, mode: str, steps: list[int]) -> tuple[str, list[np.ndarray]]:
    """Type and shape of what the model sees of four pictures, and the pixels at each of these global steps."""
    coarse = np.random.default_rng(5).integers(0, 256, [4, 4, 4, 3]).astype(np.uint8)
    pixels = coarse.repeat(SIZE // 4, 1).repeat(SIZE // 4, 2)
    pixels[:, 0, 0], pixels[:, 0, 1] = 0, 255
    with tf.Graph().as_default(), v1.Session() as session:
        step = v1.train.create_global_step()
        fed = v1.placeholder(tf.uint8, [None if mode == "infer" else 4, *pixels.shape[1:]])
        images = views(fed, mode)
        returns(images, tf.Tensor, "views", "a tensor")
        session.run(v1.global_variables_initializer())
        found = []
        for each in steps:
            session.run(step.assign(each))
            found.append(session.run(images, {fed: pixels}))
        return _kind(images), found


@todo(
    "7c",
    hints=(
        "What happens in every mode? Write that first, and return it where the mode is not TRAIN.",
        "v1.train.get_global_step() is int64; the seed is two int32.",
    ),
    why="Random views belong to training alone, and follow from the step, so that a resumed run sees the same.",
    slips={
        (
            "if mode == TRAIN:",
            "if True:",
        ): "In mode 'eval' the same pictures look different at another step: "
        "augment in TRAIN alone.",
        (
            "if mode == TRAIN:",
            "if mode != PREDICT:",
        ): "In mode 'eval' the same pictures look different at "
        "another step: augment in TRAIN alone.",
        (
            "if mode == TRAIN:",
            "if False:",
        ): "In training the pictures come out unchanged: random_views.",
    },
)
def augmented(views: Callable) -> Cases:
    """Another view at each step of training, the same pixels in every other mode."""
    kind, images = _seen(views, "eval", [0, 1])
    yield "In mode 'eval' the model takes float32, in the pictures' shape", kind
    yield (
        "In mode 'eval' 0 to 255 becomes -1 to 1, at any step, and nothing else should happen",
        images,
        1e-3,
    )
    with translated(
        "",
        "In mode 'infer' a caller sends any number of pictures, and views fails: random_views belongs to TRAIN alone.",
    ):
        kind, images = _seen(views, "infer", [0, 1])
    yield "In mode 'infer' the model takes float32, in the pictures' shape, of any number", kind
    yield (
        "In mode 'infer' 0 to 255 becomes -1 to 1, at any step, and nothing else should happen",
        images,
        1e-3,
    )
    kind, (first, again, later) = _seen(views, "train", [3, 3, 4])
    yield "In training the model takes float32, in the pictures' shape", kind
    expect(
        np.array_equal(first, again),
        "The same step gives other views when it is taken again: a run that was killed and went on would not be "
        "the same run. Make the seed of the global step.",
    )
    expect(
        not np.allclose(first, later) or np.allclose(first, images[0], atol=1e-3),
        "Training gets the same views at every step: the seed should hold the global step.",
    )
    yield (
        (
            "In training, random_views takes images from -1 to 1, so scale first. The seed should be [0, global step]: "
            "the views of the steps 3 and 4"
        ),
        [first, later],
        1e-3,
    )
    return "Each step of training has its own views; evaluation and serving see the picture itself."


@todo(
    "7g",
    hints=(
        "A placeholder of strings, of any number: which shape is that?",
        "tf.map_fn calls a function for each element; it must be told what comes out, if it is not what went in.",
        "What does model_fn look up in its features? Under which name does a caller send bytes?",
    ),
    why="The served model prepares pictures by the same function as training did.",
)
def serving(make_serving_input_fn: Callable) -> Cases:
    """Bytes in, what evaluation feeds the model out."""
    made = make_serving_input_fn(SIZE)
    returns(made, callable, "make_serving_input_fn", "a function")
    images = _banded_jpegs(3)
    loud = v1.logging.get_verbosity()
    v1.logging.set_verbosity(v1.logging.FATAL)  # map_fn logs what is told below
    with tf.Graph().as_default(), v1.Session() as session:
        try:
            with translated(
                "not scalars",
                "The placeholder holds one string; a caller sends any number of them: [None].",
            ):
                receiver = made()
        finally:
            v1.logging.set_verbosity(loud)
        expect(
            hasattr(receiver, "receiver_tensors"),
            f"Return a v1.estimator.export.ServingInputReceiver; yours returns {a(receiver)}.",
        )
        sent = receiver.receiver_tensors
        yield (
            'What a caller sends: any number of strings, [None], the placeholder itself, as "image_bytes"',
            {name: f"{each.op.type} {_kind(each)}" for name, each in sent.items()},
        )
        image = receiver.features.get("image")
        expect(
            image is not None,
            f'model_fn looks for features["image"]; yours hold {list(receiver.features)}.',
        )
        yield (
            (
                'features["image"], as preprocess makes it (map_fn takes it that what comes out is of the type that '
                "went in, string: tell it with fn_output_signature=tf.uint8)"
            ),
            _kind(image),
        )
        tries = [session.run(image, {sent["image_bytes"]: images}) for _ in range(5)]
    expect(
        all(np.array_equal(tries[0], each) for each in tries),
        "The same bytes give another picture each time: nothing random in serving.",
    )
    preprocess = scope_of(make_serving_input_fn)["preprocess"]
    for found, each in zip(tries[0], images, strict=True):
        expect(
            np.array_equal(found, _prepared(preprocess, each)[1]),
            "The model gets another picture than evaluation gives it: call preprocess, and do nothing else.",
        )
    return "Bytes go through the same preprocess as in training."
