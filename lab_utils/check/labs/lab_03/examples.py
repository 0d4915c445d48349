"""Inside an example: TODO 3d, a JPEG of any size, and 3e, a shape that Python lost."""

from collections.abc import Callable

import numpy as np

from lab_utils.check.outcome import Wrong
from lab_utils.check.todos import todo
from lab_utils.check.tools import expect, other_names, translated
from lab_utils.estimator import tf

SIDE = 64
COLOURS = np.array([[250, 20, 20], [20, 250, 20], [20, 20, 250], [250, 250, 20]], np.uint8)


def _jpeg(height: int, width: int, grey: bool = False, darker: int = 1) -> tf.Tensor:
    """A picture with another colour in each corner, divided by `darker`, around a black middle."""
    rows, columns = np.arange(height) * 6 // height, np.arange(width) * 6 // width
    picture = np.zeros([height, width, 3], np.uint8)
    for number, colour in enumerate(COLOURS):
        row, column = 5 * (number // 2), 5 * (number % 2)
        picture[np.ix_(rows == row, columns == column)] = colour // darker
    return tf.io.encode_jpeg(picture[:, :, :1] if grey else picture, quality=95)


@todo(
    "3d",
    hints=(
        "An argument of decode_jpeg asks for the same number of channels of every file.",
        "tf.image.resize gives float32 from 0 to 255; the sizes that it is given become static.",
    ),
    why="channels=3 and resize give all three sizes before any file is read.",
)
def decoded(prepared: Callable) -> str:
    """A static shape of three numbers, and the whole picture in it."""
    files = {
        "a file of 90 by 200": _jpeg(90, 200),
        "one of 300 by 120": _jpeg(300, 120),
        "one in grey": _jpeg(80, 80, grey=True),
        "a dark one": _jpeg(80, 80, darker=3),
    }
    dataset = tf.data.Dataset.from_tensor_slices(list(files.values()))
    mapped = _mapped(dataset, prepared)
    spec = mapped.element_spec
    shape = spec.shape
    if shape.rank == 3 and shape[:2].is_fully_defined() and shape[2] is None:
        raise Wrong(
            f"The static shape is {shape}: a JPEG has one channel or three, and says so itself. Ask "
            "decode_jpeg for channels=3."
        )
    expect(
        shape.is_fully_defined(),
        f"The static shape is {shape}. A resize gives the picture a size that is known beforehand.",
    )
    expect(
        shape.as_list() == [SIDE, SIDE, 3] and spec.dtype == tf.float32,
        f"prepared should give float32 [{SIDE}, {SIDE}, 3]; yours gives {spec.dtype.name} {shape}.",
    )
    try:
        with translated(
            "",
            "encoded holds the bytes of the file itself, not its name: there is nothing to read from the disk.",
            (UnicodeDecodeError, tf.errors.NotFoundError, tf.errors.FailedPreconditionError),
        ):
            pictures = list(mapped.repeat(3).as_numpy_iterator())  # again: chance would show
    except tf.errors.InvalidArgumentError as error:
        if f"[{SIDE},{SIDE},1]" in error.message:
            raise Wrong(
                f"A grey file comes as [{SIDE}, {SIDE}, 1]: ask decode_jpeg for channels=3."
            ) from None
        raise Wrong(
            f"The static shape is {shape}, and what comes has another: saying a shape resizes nothing. "
            f"TensorFlow says: {error.message.split('}} ')[-1].split(' [Op')[0]}"
        ) from None
    for name, picture in zip(3 * list(files), pictures, strict=True):
        expect(
            picture.min() >= -1e-3 and picture.max() < 1.05,
            f"Values should go from 0 to 1; yours go from {picture.min():.3g} to {picture.max():.3g}.",
        )
        if "dark" in name:
            expect(
                picture.max() < 0.6,
                f"A file whose brightest value is {COLOURS.max() // 3} of 255 comes with "
                f"{picture.max():.3g}: divide by 255, rather than by the brightest value of each picture.",
            )
        if "of" not in name:
            continue
        for inner in (4, 8):  # near the middle of a corner's block, and near its inner edge
            corners = picture[[inner, inner, -1 - inner, -1 - inner], [inner, -1 - inner] * 2] * 255
            expect(
                np.abs(corners - COLOURS).max() < 60,
                f"A corner of {name} is not in the corner of what comes: resize the whole picture, rather than "
                "cut from it, pad it or turn it.",
            )
    return f"Files of any size, in colour and in grey, come as [{SIDE}, {SIDE}, 3]."


def _mapped(dataset: tf.data.Dataset, function: Callable) -> tf.data.Dataset:
    try:
        with translated(
            "Dimension value must be integer",
            "tf.shape is a tensor, whose values are not known yet: the static shape is image.shape.",
        ):
            return dataset.map(function)
    except (TypeError, tf.errors.InvalidArgumentError) as error:
        if "return value" not in str(error) and "output_types" not in str(error):
            raise
        raise Wrong("It returns None: is a return missing?") from None


@todo(
    "3e",
    hints=(
        "Which of the two ways in the text looks at what comes?",
        "The static shape that result has lost is still there in image.",
    ),
    why="tf.ensure_shape gives the static shape and compares it with each tensor that comes.",
)
def contrast(with_contrast: Callable) -> str:
    """A shape that TensorFlow knows, and that is looked at when it runs."""
    images = tf.random.stateless_uniform([2, 6, 4, 3], seed=[1, 2], minval=0.2, maxval=0.7)
    dataset = tf.data.Dataset.from_tensor_slices(images)
    try:
        mapped = _mapped(dataset, with_contrast)
    except Wrong as wrong:
        if "set_shape" not in getattr(with_contrast, "__code__", _mapped.__code__).co_names:
            raise
        raise Wrong(
            "set_shape returns nothing, it changes the tensor; and it believes you."
        ) from wrong
    except ValueError as error:
        if "no shape" in str(error):
            raise Wrong(
                "A line of yours needs a shape, and result has none: tf.ensure_shape(result, ...) gives it one. "
                "Nothing has to be resized."
            ) from None
        if "shape" not in str(error).lower():
            raise
        raise Wrong(
            "For an image of [6, 4, 3] it fails: take the shape from image.shape, rather than a fixed one."
        ) from None
    shape = mapped.element_spec.shape
    expect(
        shape.rank is not None and shape.is_fully_defined(),
        f"The static shape of what you return is {shape}: unknown, as it comes from numpy_function. All of "
        "image.shape should stand in it.",
    )
    expect(
        shape.as_list() == [6, 4, 3],
        f"For an image of [6, 4, 3] yours says {shape}: take image.shape.",
    )
    try:
        made = list(mapped.as_numpy_iterator())
    except tf.errors.InvalidArgumentError:
        raise Wrong("For an image of [6, 4, 3] it fails when it runs: take image.shape.") from None
    expect(
        abs(made[0].min()) < 1e-3 and abs(made[0].max() - 1) < 1e-3,
        "What you return is not what `stretched` made: give `result` the shape, and return that.",
    )
    told = "Where NumPy returns another shape, nobody notices: "
    for lie, wrong in (
        (lambda image: image[:2], "set_shape believes what it is told."),
        (lambda image: image[:1], "an array of [1, 4, 3] is spread over [6, 4, 3] by a broadcast."),
        (
            lambda image: image.swapaxes(0, 1),
            "an array of [4, 6, 3] is scrambled into [6, 4, 3]. tf.reshape looks at the number of values.",
        ),
    ):
        asked = []

        def noting(image, lie=lie, asked=asked):
            asked.append(True)
            return lie(image)

        # While it runs too: a py_function may look the name up only then.
        with other_names(with_contrast, stretched=noting):
            try:
                next(iter(dataset.map(lambda image: tf.reduce_sum(with_contrast(image)))))
            except tf.errors.InvalidArgumentError:
                continue
        expect(
            bool(asked),
            "with_contrast should return what NumPy's `stretched` made; yours never calls it.",
        )
        raise Wrong(f"{told}{wrong} tf.ensure_shape looks at each axis.")
    return "The static shape is there, and an image of another shape is an error at once."
