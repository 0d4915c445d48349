"""A faster network: TODO 8c, the pooled head, and 8e, bfloat16."""

from collections.abc import Callable

import numpy as np

from lab_utils.check.labs.lab_08.graphs import SIDE, logits_of, looks_everywhere, weights
from lab_utils.check.todos import todo
from lab_utils.check.tools import a, expect, other_names
from lab_utils.estimator import tf, v1


@todo(
    "8c",
    hints=(
        'x is [B, height, width, 20]: which axes are positions?',
        'What stays is the two dense layers of inference_old, in their order.',
    ),
    why='A mean over positions leaves one number for each filter, so the dense layer needs no weight for a position.',
)
def pooled(inference_pooled: Callable) -> str:
    """A mean over positions in place of a weight for each."""
    with tf.Graph().as_default():
        logits = logits_of(inference_pooled)
        shapes = [v.shape.as_list() for v in v1.trainable_variables()]
        expect(
            [5, 5, 3, 10] in shapes and [5, 5, 10, 20] in shapes,
            "One thing at a time: the two convolutions should stay as they are.",
        )
        expect(
            weights() < 50_000,
            f"There are still {weights():,} weights: one for each position and filter. Pool before the "
            "first dense layer.",
        )
        expect(
            any(shape[-1] == 300 for shape in shapes),
            "One thing at a time: the dense layer of 300 should stay, after the pooling.",
        )
        expect(
            [20, 300] in shapes,
            "The dense layer of 300 should get the 20 numbers of each image, one for each filter.",
        )
        expect(
            looks_everywhere(logits),
            "The logits do not depend on all positions: pool over height and width.",
        )
        count = weights()
    _is_pooled_first(inference_pooled)
    return f"{count:,} weights, where each position had its own."


def _is_pooled_first(inference_pooled: Callable) -> None:
    """Raises Wrong unless the head is a mean over positions, 300 with relu, and 5."""
    given = np.random.default_rng(1).uniform(0, 2, [4, 38, 38, 20]).astype(np.float32)
    with tf.Graph().as_default(), v1.Session() as session:
        with other_names(inference_pooled, convolutions=lambda images: tf.constant(given)):
            logits = inference_pooled(v1.placeholder(tf.float32, [4, SIDE, SIDE, 3]))
        session.run(v1.global_variables_initializer())
        found, values = session.run([logits, v1.trainable_variables()])
    by_shape = {each.shape: each for each in values}
    first, last = by_shape.get((20, 300)), by_shape.get((300, 5))
    expect(last is not None, "The dense layer of 5 should follow that of 300, as before.")

    def head(vectors: np.ndarray) -> np.ndarray:
        return np.maximum(vectors @ first, 0) @ last

    def gives(other: np.ndarray) -> bool:
        return np.allclose(found, other, rtol=1e-2, atol=1e-3)

    mean = given.mean(axis=(1, 2))
    expect(
        not gives(head(given.max(axis=(1, 2)))), "That is each filter's maximum; take its mean."
    )
    expect(
        not gives(head(given.sum(axis=(1, 2)))),
        "That is each filter's sum, 1,444 times as large as its mean: take the mean.",
    )
    expect(
        not gives(np.maximum(given @ first, 0).mean(axis=(1, 2)) @ last),
        "The mean is taken after the dense layer, which then works at each of 1,444 positions: pool first.",
    )
    expect(
        not gives(mean @ first @ last),
        "The dense layer of 300 has lost its relu: two layers without one are one layer.",
    )
    expect(
        gives(head(mean)),
        "With given results of the convolutions the logits differ from those of the mean over positions, a "
        "dense layer of 300 with relu, and one of 5: the rest stays as it was.",
    )


@todo(
    "8e",
    hints=(
        'What type do the images have to have, for layers to calculate in bfloat16?',
        'Which lines have to stand within v1.tpu.bfloat16_scope(), and which type should leave the function?',
    ),
    why='The scope keeps variables in float32, and the casts stand at both ends only.',
)
def bfloat16(in_bfloat16: Callable) -> str:
    """bfloat16 between the layers, float32 variables and logits."""
    seen, given = [], []

    def probe(images):
        seen.append(images.dtype)
        x = v1.layers.conv2d(images, 16, 3, strides=4, name="convolution")
        seen.append(x.dtype)
        given.append((images, v1.layers.dense(tf.reduce_mean(x, [1, 2]), 5, name="head")))
        return given[-1][1]

    with tf.Graph().as_default():
        narrow = in_bfloat16(probe)
        expect(
            callable(narrow),
            f"in_bfloat16 should return a function of the images; yours returns {a(narrow)}.",
        )
        images = v1.placeholder(tf.float32, [4, SIDE, SIDE, 3])
        logits = narrow(images)
        expect(bool(seen), "Your function never calls `inference`.")
        expect(
            isinstance(logits, tf.Tensor), f"It should return logits; yours returns {a(logits)}."
        )
        kinds = {v.dtype.base_dtype for v in v1.trainable_variables()}
        expect(
            set(seen) == {tf.bfloat16},
            f"The layers should calculate in bfloat16; they get {seen[0].name} and give {seen[1].name}.",
        )
        expect(
            kinds == {tf.float32},
            "The variables are bfloat16: small updates to them would be lost. Build the layers under "
            "v1.tpu.bfloat16_scope().",
        )
        expect(
            logits.dtype == tf.float32,
            f"The logits are {logits.dtype.name}, and the loss wants float32: cast them.",
        )
        (inside, outside), random = given[-1], np.random.default_rng(2)
        with v1.Session() as session:
            session.run(v1.global_variables_initializer())
            fed = random.uniform(0, 1, [4, SIDE, SIDE, 3])
            came, went, ends = session.run(
                [tf.cast(inside, tf.float32), tf.cast(outside, tf.float32), logits], {images: fed}
            )
        expect(
            np.allclose(came, fed, atol=0.01),
            "`inference` gets other pixels than came in: cast the images, and scale nothing.",
        )
        expect(
            np.allclose(went, ends, atol=1e-3),
            "The logits are not those that `inference` gave: cast them to float32, and do nothing else (the "
            "softmax belongs to the loss).",
        )
    return "bfloat16 between the layers; variables and logits stay float32."
