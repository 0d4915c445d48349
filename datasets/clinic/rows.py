"""A list of flowers to TFRecords, as a colleague wrote it in one go."""

import os

import apache_beam as beam
import tensorflow as tf
from apache_beam.options.pipeline_options import PipelineOptions


class ToRecord(beam.DoFn):
    def __init__(self, folder, labels_file):
        self.folder, self.labels_file = folder, labels_file

    def setup(self):
        with open(self.labels_file) as file:
            self.numbers = {name.strip(): number for number, name in enumerate(file, 1)}

    def reject(self, line, why):
        return beam.pvalue.TaggedOutput("rejects", (line, why))

    def process(self, line):
        path, _, label = line.partition(",")
        if label not in self.numbers:
            yield self.reject(line, f"unknown label {label!r}")
            return
        try:
            with open(os.path.join(self.folder, path), "rb") as file:
                data = file.read()
        except FileNotFoundError:
            yield self.reject(line, "file not found")
        else:
            if data[:2] == b"\xff\xd8" and b"\xff\xd9" in data[-64:]:
                yield self.record(path, data, self.numbers[label])
            else:
                yield self.reject(line, "not a whole JPEG")

    def record(self, path, data, number):
        example = tf.train.Example()
        feature = example.features.feature
        feature["image/filename"].bytes_list.value.append(path.encode())
        feature["image/encoded"].bytes_list.value.append(data)
        feature["image/class/label"].int64_list.value.append(number)
        return example.SerializeToString()


def convert(rows_csv, folder, labels_file, output):
    with beam.Pipeline(options=PipelineOptions(["--runner=FnApiRunner"])) as pipeline:
        lines = pipeline | beam.io.ReadFromText(rows_csv)
        made = lines | beam.ParDo(ToRecord(folder, labels_file)).with_outputs(
            "rejects", main="records"
        )
        made.records | beam.io.WriteToTFRecord(f"{output}/train", file_name_suffix=".tfrecord")
        rejects = made.rejects | beam.Map("\t".join)
        rejects | beam.io.WriteToText(f"{output}/rejects.tsv", shard_name_template="")


WARD = {
    "others": (
        "the first line is taken for a header",
        "an exception ends a bundle, and the rows behind it are lost",
        "rows of the same file overwrite each other",
        "the same output gets values of two kinds, and drops one of them",
    ),
    "healthy": {
        "beam.io.ReadFromText(": "It skips no header unless it is told to.",
        "except FileNotFoundError": "A missing file becomes a reject, and the next row is read.",
        "path, _, label = line.partition": "A line without a comma gets the label '', which no class has.",
        "return beam.pvalue.TaggedOutput": "This method has no yield: what it returns reaches its caller.",
        "yield self.reject(line, \"file": "This one is yielded, and arrives.",
        "if data[:2] ==": "Whatever it says of a file, an example or a reject comes out.",
    },
    "faults": [
        {
            "rule": "",
            "right": """            yield self.reject(line, f"unknown label {label!r}")
            return
""",
            "wrong": """            return self.reject(line, f"unknown label {label!r}")
""",
            "why": "what this line gives never leaves process",
            "comment": "process holds a yield, so it is a generator, and what a generator returns goes nowhere.",
        },
    ],
}
