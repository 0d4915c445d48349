"""TODO 7c: scaling in every mode, augmentation in training alone."""

from collections.abc import Callable

import numpy as np

from lab_utils.check.outcome import Wrong
from lab_utils.check.todos import todo
from lab_utils.check.tools import a, expect, other_names
from lab_utils.estimator import tf, v1
from lab_utils.flowers.augment import random_views

SIZE = 32


def seen(
    views: Callable, pixels: np.ndarray, mode: str, steps: list[int]
) -> tuple[list[np.ndarray], list[tuple[np.ndarray, np.ndarray]]]:
    """What the model sees of the same pixels at each of these global steps, and what random_views got."""
    asked = []

    def recorded(images: tf.Tensor, size: int, seed: object) -> tf.Tensor:
        asked.append((images, tf.convert_to_tensor(seed)))
        return random_views(images, size, seed)

    with tf.Graph().as_default(), v1.Session() as session:
        step = v1.train.create_global_step()
        batch = None if mode == "infer" else len(pixels)
        fed = v1.placeholder(tf.uint8, [batch, *pixels.shape[1:]])
        try:
            with other_names(views, random_views=recorded):
                images = views(fed, mode)
        except (TypeError, ValueError) as error:
            if batch is not None:
                raise
            raise Wrong(
                "In mode 'infer' a caller sends any number of pictures, and views fails: random_views "
                f"belongs to TRAIN alone. ({type(error).__name__}: {str(error)[:120]})"
            ) from None
        expect(
            isinstance(images, tf.Tensor),
            f"views should return a tensor; yours returns {a(images)} in mode {mode!r}.",
        )
        expect(
            images.dtype == tf.float32,
            f"The model takes float32; in mode {mode!r} yours gives {images.dtype.name}.",
        )
        expect(
            images.shape.as_list() == fed.shape.as_list(),
            f"Images of {fed.shape} should keep their shape; in mode {mode!r} yours become {images.shape}.",
        )
        session.run(v1.global_variables_initializer())
        found, given = [], []
        for each in steps:
            session.run(step.assign(each))
            found.append(session.run(images, {fed: pixels}))
            given += session.run(asked[:1], {fed: pixels})
    return found, given


@todo(
    "7c",
    hints=(
        'What happens in every mode? Write that first, and return it where the mode is not TRAIN.',
        'v1.train.get_global_step() is int64; the seed is two int32.',
    ),
    why='Random views belong to training alone, and follow from the step, so that a resumed run sees the same.',
)
def augmented(views: Callable) -> str:
    """Another view at each step of training, the same pixels in every other mode."""
    rng = np.random.default_rng(5)
    coarse = rng.integers(0, 256, [4, 4, 4, 3]).astype(np.uint8)
    pixels = coarse.repeat(SIZE // 4, 1).repeat(SIZE // 4, 2)
    pixels[:, 0, 0], pixels[:, 0, 1] = 0, 255
    for mode in ("eval", "infer"):
        (images, later), _ = seen(views, pixels, mode, [0, 1])
        expect(
            np.array_equal(images, later),
            f"In mode {mode!r} the same pictures look different at another step: augment in TRAIN alone.",
        )
        expect(
            np.allclose(images, pixels / 127.5 - 1, atol=1e-3),
            f"In mode {mode!r} 0 to 255 should become -1 to 1, and nothing else should happen; yours go from "
            f"{images.min():.2f} to {images.max():.2f}.",
        )
    (first, again, later), given = seen(views, pixels, "train", [3, 3, 4])
    expect(
        not np.allclose(first, pixels / 127.5 - 1, atol=1e-3),
        "In training the pictures come out unchanged: random_views.",
    )
    expect(
        np.array_equal(first, again),
        "The same step gives other views when it is taken again: a run that was killed and went on would "
        "not be the same run. Make the seed of the global step.",
    )
    expect(
        not np.allclose(first, later),
        "Training gets the same views at every step: the seed should hold the global step.",
    )
    expect(
        np.abs(first).max() < 3,
        f"In training, too, pixels should be scaled to -1 to 1 first; yours reach {first.max():.3g}.",
    )
    expect(bool(given), "The views of training are those of random_views(images, size, seed).")
    expect(
        np.allclose(given[0][0], pixels / 127.5 - 1, atol=1e-3),
        "random_views takes images from -1 to 1; yours go there from "
        f"{given[0][0].min():.3g} to {given[0][0].max():.3g}: scale first.",
    )
    seeds = [given[n][1].tolist() for n in (0, 2)]
    expect(
        seeds == [[0, 3], [0, 4]],
        f"The seed should be [0, global step]; at the steps 3 and 4 yours is {seeds[0]} and {seeds[1]}.",
    )
    return "Each step of training has its own views; evaluation and serving see the picture itself."
