"""TFRecords -> batches of uint8 images with a static shape, fast enough to feed a TPU.

Decoded images stay uint8, a quarter of float32, until they are on the device: the model scales and
augments them there (`augment.py`), where XLA fuses the work, and one decode can be cached for all epochs.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

from lab_utils.estimator import tf, v1
from lab_utils.flowers.records import Records

READ_BUFFER = 2 * 1024 * 1024  # bytes a file; a remote store answers big reads far better
PARALLEL_FILES = 8  # read at once; tf.data opens 16 more ahead, so 48 MB of read buffers at most
WINDOW = 256  # encoded images among which the next is drawn; the converter has mixed them before
CACHE_LIMIT = 400 * 1024 * 1024  # bytes of decoded images that may stay in memory

_FEATURES = {
    "image/encoded": tf.io.FixedLenFeature([], tf.string),
    "image/class/label": tf.io.FixedLenFeature([], tf.int64),
}


def decode_jpeg(encoded: tf.Tensor, size: int) -> tf.Tensor:
    """Decodes one JPEG: scalar string -> uint8 [size, size, 3], the whole image squeezed into the square.

    Of one twice as large or more, the decoder makes a half, a quarter or an eighth, at less work than the
    whole. What is left to shrink is done by bilinear sampling; where that would pass over pixels, by means
    over areas, which take twice the time. Training, evaluation and serving all pass here.
    """
    shape = tf.io.extract_jpeg_shape(encoded)[:2]
    halvings = tf.reduce_sum(
        tf.cast(tf.reduce_min(shape) >= [2 * size, 4 * size, 8 * size], tf.int32)
    )
    # Bilinear sampling reads two pixels along an axis.
    passed_over = tf.reduce_max(shape) > 2 * size * tf.bitwise.left_shift(1, halvings)

    def decoded(ratio: int, method: str) -> tf.Tensor:
        return squeezed(tf.io.decode_jpeg(encoded, channels=3, ratio=ratio), size, method)

    # One choice for both: a branch costs a tenth of decoding a small image.
    ways = [partial(decoded, ratio, how) for how in ("bilinear", "area") for ratio in (1, 2, 4, 8)]
    return tf.switch_case(halvings + 4 * tf.cast(passed_over, tf.int32), ways)


def decode_image(encoded: tf.Tensor, size: int) -> tf.Tensor:
    """As `decode_jpeg`, of any kind of image that TensorFlow knows."""

    def other() -> tf.Tensor:
        image = tf.io.decode_image(encoded, channels=3, expand_animations=False)
        return squeezed(image, size, "area")

    return tf.cond(tf.io.is_jpeg(encoded), lambda: decode_jpeg(encoded, size), other)


def squeezed(image: tf.Tensor, size: int, method: str) -> tf.Tensor:
    """Squeezes a whole image [height, width, 3] into a square: uint8 [size, size, 3]."""
    return tf.cast(tf.image.resize(image, [size, size], method) + 0.5, tf.uint8)


def train_size(image_size: int) -> int:
    """Side, in pixels, of the training images that the model cuts its random views from."""
    return image_size * 5 // 4


def make_input_fn(
    records: Records, *, training: bool, image_size: int, seed: int = 0
) -> Callable[[dict], tf.data.Dataset]:
    """Makes an `input_fn(params)` for TPUEstimator over a split's TFRecord shards.

    The input_fn returns a dataset of `(features, labels)`, each batch `B = params['batch_size']`:
      features["image"]: uint8 [B, S, S, 3]; S is `image_size`, in training `train_size(image_size)`.
      features["weight"]: float32 [B]; 1 for a real image, 0 for padding (evaluation alone pads).
      labels: int32 [B], from 0; the records count from 1, 0 being background.

    Training repeats for ever, shuffled; the same seed gives the same batches. Evaluation yields every image
    exactly once, in a fixed order, and then padding for ever: ask for `ceil(examples / batch)` steps and each
    image counts once.

    Args:
        records: the shards. How many examples they hold decides whether the decoded images are cached.
        training: shuffled and endless, or evaluation.
        image_size: side of the square that the model sees, in pixels.
        seed: of the shuffle.
    """
    side = train_size(image_size) if training else image_size

    @tf.autograph.experimental.do_not_convert  # there is nothing to convert; looking for it takes 0.3 s
    def parse(record: tf.Tensor) -> tuple[dict[str, tf.Tensor], tf.Tensor]:
        example = tf.io.parse_single_example(record, _FEATURES)
        image = decode_jpeg(example["image/encoded"], side)
        label = tf.cast(example["image/class/label"], tf.int32) - 1
        return {"image": image, "weight": tf.constant(1.0)}, label

    def input_fn(params: dict) -> tf.data.Dataset:
        host, hosts = 0, 1
        if "context" in params:  # on a TPU: each host reads its own share
            _, host, hosts, _ = params["context"].current_input_fn_deployment()
        paths = tf.data.Dataset.from_tensor_slices(records.files)
        if training:
            paths = paths.shuffle(len(records.files), seed=seed)
        encoded = paths.interleave(
            lambda path: tf.data.TFRecordDataset(path, buffer_size=READ_BUFFER),
            cycle_length=PARALLEL_FILES,
            num_parallel_calls=min(PARALLEL_FILES, len(records.files)),
            deterministic=True,  # hosts count the same records, or their shares would overlap
        )
        # By record, not by file: hosts get equal shares however few files there are.
        encoded = encoded.shard(hosts, host)
        fits = records.examples // hosts * side * side * 3 <= CACHE_LIMIT
        if training:  # what is small: encoded images
            encoded = encoded.shuffle(WINDOW, seed=seed)
        if training and not fits:
            encoded = encoded.repeat()
        images = encoded.map(parse, num_parallel_calls=tf.data.AUTOTUNE, deterministic=True)
        if training and fits:
            images = _mixed_epochs(images.cache(), records.examples, seed)
        if not training:
            padding = {"image": tf.zeros([side, side, 3], tf.uint8), "weight": tf.constant(0.0)}
            images = images.concatenate(tf.data.Dataset.from_tensors((padding, 0)).repeat())
        batches = images.batch(params["batch_size"], drop_remainder=True)
        return batches.prefetch(tf.data.AUTOTUNE)

    return input_fn


def _mixed_epochs(cached: tf.data.Dataset, examples: int, seed: int) -> tf.data.Dataset:
    """Endless epochs of a dataset, each in an order of its own but for the first.

    That one fills the cache, and none of its images waits for others to be decoded. All come out of one
    function, for a graph would make two caches of a dataset that is used twice.
    """

    def epoch(number: tf.Tensor) -> tf.data.Dataset:
        window = tf.where(tf.equal(number, 0), tf.constant(1, tf.int64), examples)
        return cached.shuffle(window, seed=seed + number)

    return tf.data.Dataset.counter().flat_map(epoch)


def make_serving_input_fn(image_size: int) -> Callable[[], Any]:
    """Makes the serving_input_receiver_fn: "image_bytes", string [B], each one encoded image.

    Decoding is the evaluation's own: the whole image, no augmentation. TensorFlow's decoders pass over EXIF's
    orientation and transparency: `predict` and `rest` prepare an image as the converter does.
    """

    def serving_input_receiver_fn() -> Any:
        encoded = v1.placeholder(tf.string, [None], "image_bytes")
        image = tf.map_fn(
            lambda one: decode_image(one, image_size), encoded, fn_output_signature=tf.uint8
        )
        image = tf.ensure_shape(image, [None, image_size, image_size, 3])
        return v1.estimator.export.ServingInputReceiver({"image": image}, {"image_bytes": encoded})

    return serving_input_receiver_fn
