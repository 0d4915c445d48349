"""TFRecord files for the programs: a few examples each, written once a folder."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf


def feature(value: Any) -> tf.train.Feature:
    """Bytes, whole numbers or floats as the Feature of an Example."""
    if isinstance(value, bytes):
        return tf.train.Feature(bytes_list=tf.train.BytesList(value=[value]))
    array = np.ravel(value)
    if array.dtype.kind in "iub":
        return tf.train.Feature(int64_list=tf.train.Int64List(value=array.astype(int)))
    return tf.train.Feature(float_list=tf.train.FloatList(value=array.astype(float)))


def write(path: str, count: int, example: Callable[[np.random.RandomState], dict]) -> str:
    """Writes `count` examples to `path` where it does not exist yet; returns `path`."""
    if not Path(path).exists():
        random = np.random.RandomState(len(path))
        with tf.io.TFRecordWriter(path) as writer:
            for _ in range(count):
                features = {name: feature(value) for name, value in example(random).items()}
                whole = tf.train.Example(features=tf.train.Features(feature=features))
                writer.write(whole.SerializeToString())
    return path
