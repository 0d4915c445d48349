"""Made from solutions/source/05_tfrecords_with_beam.ipynb by `python -m lab_utils.build`: change it there."""

import os

from lab_utils import estimator  # noqa: F401  (TensorFlow, without its start-up notices)


import csv
import io
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import tensorflow as tf
from PIL import Image

from lab_utils import datasets, runtime
from lab_utils.convert.logs import quiet
from lab_utils.convert.plain_beam import beam  # Apache Beam, the same in a notebook as in a script

# isort: split
from apache_beam.io.filesystems import FileSystems
from apache_beam.options.pipeline_options import PipelineOptions

v1 = tf.compat.v1


class Reject(Exception):
    """A row gives no example; the message says why."""


def image_size(data):
    """The bytes of a JPEG file -> (height, width) in pixels, from its header. Raises Reject."""
    # TODO 5a: open, look at the format and the end, return (height, width)
    try:
        image = Image.open(io.BytesIO(data))
    except Exception:
        raise Reject("not an image") from None
    if image.format != "JPEG":
        raise Reject(f"a {image.format}, not a JPEG")
    if b"\xff\xd9" not in data[-64:]:  # some cameras write a few bytes behind it
        raise Reject("truncated: it has no end marker")
    return image.height, image.width


def bytes_feature(value):
    """bytes -> tf.train.Feature."""
    return tf.train.Feature(bytes_list=tf.train.BytesList(value=[value]))


def int_feature(value):
    """int -> tf.train.Feature."""
    return tf.train.Feature(int64_list=tf.train.Int64List(value=[value]))


def make_example(data, filename, label, text):
    """A JPEG's bytes, its file's name, its class as a number from 1 and as text -> bytes. Raises Reject."""
    # TODO 5b: the nine features, as the bytes of a tf.train.Example
    height, width = image_size(data)
    features = {
        "image/encoded": bytes_feature(data),
        "image/format": bytes_feature(b"JPEG"),
        "image/colorspace": bytes_feature(b"RGB"),
        "image/height": int_feature(height),
        "image/width": int_feature(width),
        "image/channels": int_feature(3),
        "image/class/label": int_feature(label),
        "image/class/text": bytes_feature(text.encode()),
        "image/filename": bytes_feature(filename.encode()),
    }
    example = tf.train.Example(features=tf.train.Features(feature=features))
    return example.SerializeToString()


def read_row(line, folder):
    """A line `path,label` -> (path, label, the bytes of the file), here or in a bucket. Raises Reject."""
    columns = next(csv.reader([line]), [])
    if len(columns) != 2:
        raise Reject(f"2 columns expected, path,label; found {len(columns)}")
    path, label = columns
    try:
        with FileSystems.open(os.path.join(folder, path)) as file:
            return path, label, file.read()
    except FileNotFoundError:
        raise Reject("file not found") from None


class ToExample(beam.DoFn):
    """Lines `path,label` -> examples, as bytes; and (line, reason) under the tag "rejects"."""

    def __init__(self, folder, labels_file):
        self.folder, self.labels_file = str(folder), str(labels_file)

    def setup(self):
        # TODO 5c: in setup the number of each label; in process an example, or a reject
        labels = Path(self.labels_file).read_text().splitlines()
        self.numbers = {label: number for number, label in enumerate(labels, 1)}

    def process(self, line):
        try:
            path, label, data = read_row(line, self.folder)
            if label not in self.numbers:
                raise Reject(f"unknown label {label}")
            yield make_example(data, path, self.numbers[label], label)
        except Reject as why:
            yield beam.pvalue.TaggedOutput("rejects", (line, str(why)))


def make_pipeline(workers=1):
    """An empty pipeline that will run on this machine: in this process, or in several."""
    # TODO 5d: beam.Pipeline with PipelineOptions of a list of flags
    flags = ["--runner=FnApiRunner"]
    if workers > 1:
        flags += ["--direct_running_mode=multi_processing", f"--direct_num_workers={workers}"]
    return beam.Pipeline(options=PipelineOptions(flags))


def add_steps(pipeline, csv_file, to_example, output, shards):
    """Adds the steps from a CSV file to TFRecord files and a list of rejects, both in `output`."""
    # TODO 5e: lines -> examples and rejects -> files
    made = (
        pipeline
        | beam.io.ReadFromText(str(csv_file))
        | beam.ParDo(to_example).with_outputs("rejects", main="examples")
    )
    _ = made.examples | beam.io.WriteToTFRecord(
        f"{output}/train", file_name_suffix=".tfrecord", num_shards=shards
    )
    _ = (
        made.rejects
        | beam.Map("\t".join)
        | beam.io.WriteToText(f"{output}/rejects.tsv", shard_name_template="")
    )


def publish(staging, output, rows):
    """Makes `staging` the result `output`, if each of the `rows` is in it: (examples, rejects)."""
    # TODO 5f: count, compare, rename
    files = tf.io.gfile.glob(f"{staging}/train-*.tfrecord")
    examples = sum(1 for _ in tf.data.TFRecordDataset(files))
    rejects = len(Path(staging, "rejects.tsv").read_text().splitlines())
    if examples + rejects != rows:
        raise RuntimeError(f"{examples} examples and {rejects} rejects do not make {rows} rows")
    os.rename(staging, output)
    return examples, rejects


SIZE = 96


def parse(record):
    """A scalar string -> (uint8 [SIZE, SIZE, 3], int32 from 0)."""
    # TODO 5g: a record -> the whole picture and its class
    features = {
        "image/encoded": tf.io.FixedLenFeature([], tf.string),
        "image/class/label": tf.io.FixedLenFeature([], tf.int64),
    }
    example = tf.io.parse_single_example(record, features)
    image = tf.io.decode_jpeg(example["image/encoded"], channels=3)
    image = tf.cast(tf.image.resize(image, [SIZE, SIZE]), tf.uint8)
    return image, tf.cast(example["image/class/label"], tf.int32) - 1


import math


def bucket_seconds(files, file_bytes, buffer_size, streams, latency=0.03, bandwidth=50e6):
    """Seconds to read that many files of that size from a bucket."""
    # TODO 5h: requests, bytes, and who shares them
    requests = math.ceil(file_bytes / buffer_size)
    one_file = requests * latency + file_bytes / bandwidth
    return math.ceil(files / streams) * one_file
