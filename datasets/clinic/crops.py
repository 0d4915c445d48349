"""Input for a flower model: decoded once, cached, and cut again in each epoch."""

import numpy as np
import tensorflow as tf

KEPT, SIZE = 160, 128
AUTOTUNE = tf.data.AUTOTUNE


def parse(record):
    features = {
        "image/encoded": tf.io.FixedLenFeature([], tf.string),
        "image/class/label": tf.io.FixedLenFeature([], tf.int64),
    }
    example = tf.io.parse_single_example(record, features)
    image = tf.io.decode_jpeg(example["image/encoded"], channels=3)
    image = tf.cast(tf.image.resize(image, [KEPT, KEPT]), tf.uint8)
    return image, tf.cast(example["image/class/label"], tf.int32) - 1


def crop(image, label):
    top, left = tf.unstack(tf.random.uniform([2], 0, KEPT - SIZE + 1, tf.int32))
    return tf.image.crop_to_bounding_box(image, top, left, SIZE, SIZE), label


def make_input_fn(files):
    def input_fn(params):
        paths = tf.data.Dataset.from_tensor_slices(np.random.permutation(files))
        records = paths.interleave(tf.data.TFRecordDataset, num_parallel_calls=AUTOTUNE)
        images = records.map(parse, num_parallel_calls=AUTOTUNE).cache()
        images = images.shuffle(1024).repeat().map(crop, num_parallel_calls=AUTOTUNE)
        return images.batch(params["batch_size"], drop_remainder=True).prefetch(AUTOTUNE)

    return input_fn


WARD = {
    "others": (
        "the cache keeps what is random",
        "the buffer is too small to mix the pictures of an epoch",
        "without a seed the random numbers are the same in each epoch",
        "batches that are prepared beforehand are served again",
    ),
    "healthy": {
        ".cache()": "What stands above it, parse, draws nothing at random.",
        "np.random.permutation": "The order of the files is drawn once, and that does no harm: shuffle mixes in each epoch.",
        "images.shuffle(1024)": "It mixes again in each epoch, and stands below the cache. The crop comes after it.",
        "prefetch(AUTOTUNE)": "It prepares the next batches; none is served twice.",
    },
    "faults": [
        {
            "rule": "",
            "right": "top, left = tf.unstack(tf.random.uniform([2], 0, KEPT - SIZE + 1, tf.int32))",
            "wrong": "top, left = np.random.randint(0, KEPT - SIZE + 1, 2)",
            "why": "this is drawn once, while the graph is built",
            "comment": "map calls crop once, to build a graph. NumPy's two numbers are constants of that graph.",
        },
    ],
}
