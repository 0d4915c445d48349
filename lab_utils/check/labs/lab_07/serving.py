"""TODO 7g: what a served model takes."""

from collections.abc import Callable

import numpy as np

from lab_utils.check.labs.lab_07.data import SIZE, banded, image_of
from lab_utils.check.outcome import Wrong
from lab_utils.check.todos import todo
from lab_utils.check.tools import a, expect, scope_of
from lab_utils.estimator import tf, v1


@todo(
    "7g",
    hints=(
        'A placeholder of strings, of any number: which shape is that?',
        'tf.map_fn calls a function for each element; it must be told what comes out, if it is not what went in.',
        'What does model_fn look up in its features? Under which name does a caller send bytes?',
    ),
    why='The served model prepares pictures by the same function as training did.',
)
def serving(make_serving_input_fn: Callable) -> str:
    """Bytes in, what evaluation feeds the model out."""
    made = make_serving_input_fn(SIZE)
    expect(
        callable(made), f"make_serving_input_fn should return a function; yours returns {a(made)}."
    )
    images = [banded(40 + 8 * n, 40) for n in range(3)]
    with tf.Graph().as_default(), v1.Session() as session:
        loud = v1.logging.get_verbosity()
        v1.logging.set_verbosity(v1.logging.FATAL)  # map_fn logs what is told below
        try:
            receiver = made()
        except ValueError as error:
            if "not scalars" not in str(error):
                raise
            raise Wrong(
                "The placeholder holds one string; a caller sends any number of them: [None]."
            ) from None
        finally:
            v1.logging.set_verbosity(loud)
        expect(
            hasattr(receiver, "receiver_tensors"),
            f"Return a v1.estimator.export.ServingInputReceiver; yours returns {a(receiver)}.",
        )
        sent, features = receiver.receiver_tensors, receiver.features
        expect(
            isinstance(sent, dict) and list(sent) == ["image_bytes"],
            f'The caller sends "image_bytes", one name; yours asks for {list(sent)}.',
        )
        encoded = sent["image_bytes"]
        expect(
            encoded.op.type == "Placeholder" and encoded.dtype == tf.string,
            "The receiver tensor should be the placeholder of strings itself, which the caller fills.",
        )
        expect(
            encoded.shape.as_list() == [None],
            f"Take any number of images, [None]; yours takes {encoded.shape}.",
        )
        expect(
            isinstance(features, dict) and "image" in features,
            'model_fn looks for features["image"]; yours hold '
            f"{list(features) if isinstance(features, dict) else a(features)}.",
        )
        image = features["image"]
        expect(
            image.dtype != tf.string,
            "map_fn takes it that what comes out is of the type that went in, string: tell it with "
            "fn_output_signature=tf.uint8.",
        )
        expect(
            image.dtype == tf.uint8 and image.shape.as_list() == [None, SIZE, SIZE, 3],
            f"The model takes uint8 [None, {SIZE}, {SIZE}, 3] there, as preprocess makes it; yours is "
            f"{image.dtype.name} {image.shape}.",
        )
        tries = [session.run(image, {encoded: images}) for _ in range(5)]
    found = tries[0]
    expect(
        all(np.array_equal(found, each) for each in tries),
        "The same bytes give another picture each time: nothing random in serving.",
    )
    preprocess = scope_of(make_serving_input_fn)["preprocess"]
    for n, each in enumerate(images):
        expect(
            np.array_equal(found[n], image_of(preprocess, each)),
            "The model gets another picture than evaluation gives it: call preprocess, and do nothing else.",
        )
    return "Bytes go through the same preprocess as in training."
