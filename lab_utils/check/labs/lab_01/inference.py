"""TODO 1b, the inference function."""

from collections.abc import Callable

import numpy as np

from lab_utils.check.outcome import Wrong
from lab_utils.check.todos import todo
from lab_utils.check.tools import a, expect
from lab_utils.estimator import tf, v1

CLASSES = 10
SAME_VALUES = {"Identity", "Reshape", "Squeeze", "Cast", "StopGradient"}
ACTIVATIONS = {"Relu", "Relu6", "Elu", "Selu", "LeakyRelu", "Tanh", "Sigmoid", "Softplus", "Softsign"}


@todo(
    "1b",
    hints=(
        "images has no axis for channels, and a convolution wants one: None in an index adds "
        "it.",
        "Convolution with an activation, pooling, flatten, dense: each takes what the one "
        "before returned.",
        "Logits may have any sign. What does that say about an activation of the last layer?",
    ),
    why="The hidden layers have activations, so that the whole is more than a linear map; the last one has "
    "none, since the loss does the softmax.",
)
def logits_of_digits(inference: Callable) -> str:
    """Ten logits for each image, whatever the batch."""
    with tf.Graph().as_default(), v1.Session() as session:
        v1.set_random_seed(1)
        images = v1.placeholder(tf.float32, [None, 8, 8])
        logits = inference(images)
        expect(
            isinstance(logits, tf.Tensor),
            f"inference should return a tensor of logits; yours returns {a(logits)}.",
        )
        expect(
            logits.dtype == tf.float32
            and logits.shape.as_list()[-1:] == [CLASSES]
            and logits.shape.rank == 2,
            f"Logits should be float32 [B, 10]; yours are {logits.dtype.name} {logits.shape}.",
        )
        last = logits.op
        while last.type in SAME_VALUES:
            last = last.inputs[0].op
        expect(
            last.type not in ("Softmax", "LogSoftmax"),
            "The last op is a softmax: return the logits as they are; the loss does the softmax.",
        )
        expect(
            last.type not in ACTIVATIONS,
            f"The last layer has an activation, {last.type}: logits may have any sign and size.",
        )
        expect(
            bool(v1.trainable_variables()),
            "There are no trainable variables: use layers of v1.layers.",
        )
        session.run(v1.global_variables_initializer())

        def answers(batch: np.ndarray) -> np.ndarray:
            try:
                return session.run(logits, {images: batch})
            except tf.errors.InvalidArgumentError as error:
                raise Wrong(
                    "inference should take any number of images; is a batch size written into it? "
                    f"With {len(batch)} images: {error.message.splitlines()[0]}"
                ) from None

        probe = np.random.default_rng(3).random((24, 8, 8), np.float32)
        whole, again, part = answers(probe), answers(probe), answers(probe[:5])
        both, zero = answers(probe[:5] + probe[5:10]), answers(0 * probe[:5])
    expect(len(whole) == 24, f"24 images gave {len(whole)} rows: keep the batch axis first.")
    expect(
        not np.allclose(whole.sum(1), 1.0),
        "These are probabilities: each row adds up to 1. Leave the softmax out; the loss does it.",
    )
    expect(
        np.allclose(whole, again, rtol=1e-3, atol=1e-5),
        "The same image gives other logits at each call. inference takes no mode, so leave dropout and other "
        "chance out of it.",
    )
    expect(
        whole.min() < 0,
        "None of the logits is negative: the last layer should have no activation.",
    )
    expect(
        np.allclose(whole[:5], part, rtol=1e-3, atol=1e-5),
        "An image's logits depend on the other images of the batch; serving will send them one by one.",
    )
    expect(
        not np.allclose(both + zero, whole[:5] + whole[5:10], rtol=1e-3, atol=1e-4),
        "The whole is one linear map: put a hidden layer with an activation in it.",
    )
    return "Ten logits for each image, whatever the batch size."
