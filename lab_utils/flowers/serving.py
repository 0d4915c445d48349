"""What a SavedModel of the flowers model takes: encoded images."""

from collections.abc import Callable

from lab_utils.estimator import tf, v1
from lab_utils.flowers.upright import decode_upright


def make_serving_input_fn(image_size: int) -> Callable:
    """Makes the serving_input_receiver_fn: "image_bytes", string [B], each one encoded image.

    Decoding is the evaluation's own: the whole image, no augmentation. Before it, the image is prepared as
    the converter does it: a JPEG is turned as its EXIF data say, a PNG is laid on white.
    """

    def serving_input_receiver_fn():
        encoded = v1.placeholder(tf.string, [None], "image_bytes")
        image = tf.map_fn(
            lambda one: decode_upright(one, image_size), encoded, fn_output_signature=tf.uint8
        )
        image = tf.ensure_shape(image, [None, image_size, image_size, 3])
        return v1.estimator.export.ServingInputReceiver({"image": image}, {"image_bytes": encoded})

    return serving_input_receiver_fn
