"""What learners get wrong in lab 05, and the words that they must hear."""

import re

from wrong_answers import Mutant, Right, Wrong

_UNKNOWN = """            if label not in self.numbers:
                raise RejectError(f"unknown label {label}")
"""
_5A = f"""
class ToExample(beam.DoFn):
    def __init__(self, folder, labels_file):
        self.folder, self.labels_file = str(folder), str(labels_file)
    def setup(self):
        names = Path(self.labels_file).read_text().splitlines()
        self.numbers = {{name: n for n, name in enumerate(names, 1)}}
    def process(self, line):
        try:
            path, label, data = read_row(line, self.folder)
{_UNKNOWN}            yield make_example(data, path, self.numbers[label], label)
        except RejectError as reject:
            yield beam.pvalue.TaggedOutput("rejects", (line, str(reject)))
"""
_5B = r"""
def convert(rows_csv, to_example, output, shards=4):
    with beam.Pipeline(runner="FnApiRunner") as pipeline:
        made = pipeline | beam.io.ReadFromText(rows_csv) | beam.ParDo(to_example).with_outputs("rejects", main="examples")
        examples = made.examples
        _ = examples | beam.io.WriteToTFRecord(f"{output}/train", file_name_suffix=".tfrecord", num_shards=shards)
        lines = made.rejects | beam.Map("\t".join)
        _ = lines | beam.io.WriteToText(f"{output}/rejects.tsv", shard_name_template="")
"""
_5C = """
def parse(record):
    e = tf.io.parse_single_example(record, {"image/encoded": tf.io.FixedLenFeature([], tf.string), "image/class/label": tf.io.FixedLenFeature([], tf.int64, 0)})
    image = tf.io.decode_jpeg(e["image/encoded"], channels=3)
    image = tf.image.resize(image, [SIZE, SIZE])
    label = tf.cast(e["image/class/label"], tf.int32)
    return tf.cast(image, tf.uint8), tf.maximum(label - 1, 0), tf.cast(label > 0, tf.float32)
"""

ANSWERS = {
    "5a": [
        Mutant("enumerate(labels, 1)", "enumerate(labels)", "lines count from 1"),
        Mutant(
            'raise RejectError(f"unknown label {label}")',
            "return",
            re.compile("an unknown label.*nothing"),
        ),
        Mutant("if label not in self.numbers:", "if False:", "KeyError"),
        Mutant(
            "except RejectError as why:",
            "except (RejectError, KeyError) as why:",
            'becomes a reject under the tag "rejects": a whole data set',
        ),
        Mutant("yield beam.pvalue.TaggedOutput", "return beam.pvalue.TaggedOutput", "nothing"),
        Mutant(
            'yield beam.pvalue.TaggedOutput("rejects", (line, str(why)))',
            "yield (line, str(why))",
            "TaggedOutput",
        ),
        Mutant('TaggedOutput("rejects", (line', 'TaggedOutput("reject", (line', '"rejects"'),
        Mutant("(line, str(why))", "str(why)", "pair"),
        Mutant(
            "self.folder, self.labels_file = str(folder), str(labels_file)",
            "self.folder, self.labels_file = str(folder), str(labels_file)\n"
            "        self.table = Path(labels_file).read_text()",
            "__init__",
        ),
        Mutant(
            "path, label, data = read_row(line, self.folder)",
            "self.setup()\n            path, label, data = read_row(line, self.folder)",
            "setup",
        ),
        # Returns lists
        Right(r"""
class ToExample(beam.DoFn):
    def __init__(self, folder, labels_file):
        self.folder, self.labels_file = str(folder), str(labels_file)
    def setup(self):
        names = Path(self.labels_file).read_text().strip().split("\n")
        self.numbers = {name: n + 1 for n, name in enumerate(names)}
    def process(self, line):
        try:
            path, label, data = read_row(line, self.folder)
            if label not in self.numbers:
                raise RejectError(f"unknown label {label}")
            return [make_example(data, path, self.numbers[label], label)]
        except RejectError as reject:
            return [beam.pvalue.TaggedOutput("rejects", (line, str(reject)))]
"""),
        # FileSystems, dict zip, try except else
        Right(r"""
class ToExample(beam.DoFn):
    def __init__(self, folder, labels_file):
        self.folder, self.labels_file = str(folder), str(labels_file)
    def setup(self):
        with tf.io.gfile.GFile(self.labels_file) as file:
            names = file.read().splitlines()
        self.number_of = dict(zip(names, range(1, len(names) + 1)))
    def _example(self, line):
        path, label, data = read_row(line=line, folder=self.folder)
        number = self.number_of.get(label)
        if number is None:
            raise RejectError(f"{label!r} is not among the labels")
        return make_example(data=data, filename=path, label=number, text=label)
    def process(self, line):
        try:
            example = self._example(line)
        except RejectError as why:
            yield beam.pvalue.TaggedOutput("rejects", (line, str(why)))
        else:
            yield example
"""),
        # A list and index, KeyError turned into a Reject
        Right(r"""
class ToExample(beam.DoFn):
    def __init__(self, folder, labels_file):
        self.folder, self.labels_file = str(folder), str(labels_file)
    def setup(self):
        with open(self.labels_file) as f:
            self.labels = [line.strip() for line in f if line.strip()]
    def process(self, line, *args, **kwargs):
        try:
            path, label, data = read_row(line, self.folder)
            try:
                number = self.labels.index(label) + 1
            except ValueError:
                raise RejectError("no such class: " + label)
            result = make_example(data, path, number, label)
        except RejectError as e:
            result = beam.pvalue.TaggedOutput(tag="rejects", value=(line, e.args[0]))
        yield result
"""),
        # Except Exception
        Wrong(
            _5A.replace("except RejectError", "except Exception"),
            "could become rejects without an error. Catch",
        ),
        # Except KeyError around all
        Wrong(
            _5A.replace(_UNKNOWN, "").replace(
                "except RejectError", "except (RejectError, KeyError)"
            ),
            "a whole data set could become rejects without an error. Catch",
        ),
        # A class name with a space
        Wrong(
            _5A.replace("splitlines()", "split()"),
            "'IMG 1.JPG,oxeye daisy', process yields: expected",
        ),
        # Paths in small letters
        Wrong(
            _5A.replace("read_row(line,", "read_row(line.lower(),"),
            "process yields",
        ),
        Wrong(
            _5A.replace("make_example(data, path,", "make_example(data, path.lower(),"),
            "'filename': 'img 1.jpg'",
        ),
        # Labels in small letters
        Wrong(
            _5A.replace("{name: n", "{name.lower(): n"),
            "line 3",
        ),
        # Bytes in the place of text
        Wrong(
            _5A.replace("self.numbers[label], label)", "self.numbers[label], label.encode())"),
            re.compile("AttributeError.*it is a good row"),
        ),
        # An example of one's own, with names that no reader looks for
        Wrong(
            _5A.replace(
                "yield make_example(data, path, self.numbers[label], label)",
                "yield tf.train.Example(features=tf.train.Features(feature={'encoded': tf.train.Feature("
                "bytes_list=tf.train.BytesList(value=[data]))})).SerializeToString()",
            ),
            "an example without the features image/channels",
        ),
        # Labels sorted
        Wrong(
            _5A.replace("= Path", "= sorted(Path").replace("lines()", "lines())"), "label of line 3"
        ),
        # Newline left on the labels
        Wrong(
            _5A.replace(
                "Path(self.labels_file).read_text().splitlines()",
                "open(self.labels_file).readlines()",
            ),
            "strip the line break",
        ),
        # The exception object instead of the reason's text
        Wrong(
            _5A.replace("str(reject)", "reject"),
            "not the pair (line, reason), both strings: ('IMG 1.JPG,rosses', RejectError(",
        ),
    ],
    "5b": [
        Right(_5B),
        # Written as one expression, run() by hand
        Right(r"""
def convert(rows_csv, to_example, output, shards=4):
    p = beam.Pipeline(runner="FnApiRunner")
    good, bad = p | "read" >> beam.io.ReadFromText(rows_csv) | beam.ParDo(to_example).with_outputs("rejects", main="ok")
    good | "good" >> beam.io.tfrecordio.WriteToTFRecord(output + "/train", num_shards=shards, file_name_suffix=".tfrecord")
    bad | beam.MapTuple(lambda row, why: f"{row}\t{why}") | beam.io.WriteToText(output + "/rejects.tsv", num_shards=1, shard_name_template="")
    p.run().wait_until_finish()
"""),
        # Outputs by key, Create, an options object, paths of pathlib
        Right(r"""
from apache_beam.options.pipeline_options import PipelineOptions
def convert(rows_csv, to_example, output, shards=4):
    lines = Path(rows_csv).read_text().splitlines()
    with beam.Pipeline(options=PipelineOptions(["--runner=FnApiRunner"])) as root:
        results = root | beam.Create(lines) | beam.ParDo(to_example).with_outputs()
        results[None] | beam.io.WriteToTFRecord(
            file_path_prefix=str(Path(output) / "train"), file_name_suffix=".tfrecord", num_shards=shards)
        tsv = results["rejects"] | beam.Map(lambda pair: "\t".join(pair))
        tsv | beam.io.WriteToText(str(Path(output) / "rejects"), file_name_suffix=".tsv", shard_name_template="")
"""),
        # Beam's default runner, which is told what it is in the text below the lab
        Right(_5B.replace('runner="FnApiRunner"', "")),
        # Two steps of the pipeline, rejects with FlatMap
        Right(r"""
class Lines(beam.DoFn):
    def process(self, pair):
        yield pair[0] + "\t" + pair[1]
def convert(rows_csv, to_example, output, shards=4):
    def sinks(made):
        made["examples"] | beam.io.WriteToTFRecord(f"{output}/train", beam.coders.BytesCoder(), ".tfrecord", shards)
        made["rejects"] | beam.ParDo(Lines()) | beam.io.WriteToText(f"{output}/rejects.tsv", shard_name_template="")
    with beam.Pipeline("FnApiRunner") as pipeline:
        rows = pipeline | beam.io.ReadFromText(rows_csv, skip_header_lines=0)
        sinks(rows | beam.ParDo(to_example).with_outputs("rejects", main="examples"))
"""),
        Mutant(", num_shards=shards", ", num_shards=4", "With shards=3"),
        Mutant(", num_shards=shards", "", "With shards=3"),
        Mutant(
            ', shard_name_template=""',
            "",
            "in one file named rejects.tsv; yours wrote rejects.tsv-00000",
        ),
        Mutant(', file_name_suffix=".tfrecord"', "", "train-00000-of-00003.tfrecord"),
        Mutant(
            r'made.rejects | beam.Map("\t".join)',
            "made.rejects | beam.Map(str)",
            "the row, a tab and the reason",
        ),
        Mutant(r'"\t".join', "lambda pair: pair[0]", "the row, a tab and the reason"),
        Mutant("ReadFromText(rows_csv)", "ReadFromText(rows_csv, skip_header_lines=1)", "twice"),
        Mutant("made.examples |", "made.examples | beam.Distinct() |", "for each good row"),
        Mutant("lines | beam.io", "lines | beam.Distinct() | beam.io", "one bad row twice"),
        Mutant(
            "WriteToTFRecord(",
            "WriteToTFRecord(compression_type='gzip', file_path_prefix=",
            "without compression",
        ),
        Mutant(
            "ParDo(to_example)",
            "ParDo(ToExample('.', rows_csv))",
            "does ParDo run the DoFn `to_example`?",
        ),
        # The pipeline is built, and never run
        Wrong(
            _5B.replace(
                'with beam.Pipeline(runner="FnApiRunner") as pipeline:',
                'pipeline = beam.Pipeline(runner="FnApiRunner")\n    if True:',
            ),
            "has the pipeline run?",
        ),
        # Examples as lines of text
        Wrong(
            _5B.replace(
                "beam.io.WriteToTFRecord(",
                "'text' >> beam.io.WriteToText(coder=beam.coders.BytesCoder(), file_path_prefix=",
            ),
            "cannot read the files of examples",
        ),
        # Two outputs in one
        Wrong(
            _5B.replace('.with_outputs("rejects", main="examples")', "")
            .replace("made.examples", "made")
            .replace("made.rejects", "made"),
            "has one output, the examples: results with a tag are dropped",
        ),
        # Only the good ones
        Wrong(
            "\n".join(
                line
                for line in _5B.splitlines()
                if "rejects.tsv" not in line and "lines =" not in line
            ),
            "The rejects should be in one file named rejects.tsv",
        ),
        # Rejects among the examples
        Wrong(
            _5B.replace(
                "examples = made.examples",
                'examples = (made.examples, made.rejects | "b" >> beam.Map(lambda pair: pair[0].encode())) | beam.Flatten()',
            ),
            "not one of the examples that the DoFn yields",
        ),
    ],
    "5c": [
        Mutant("tf.maximum(label - 1, 0)", "label", "from 0"),
        Mutant(
            "tf.maximum(label - 1, 0)",
            "label - 1",
            "with the label 0 becomes class -1, which the loss",
        ),
        Mutant(", default_value=0)", ")", "without image/class/label ends the job"),
        Mutant(
            "default_value=0", "default_value=1", "The weight of a record without image/class/label"
        ),
        Mutant(
            "tf.cast(label > 0, tf.float32)",
            "tf.cast(label > 1, tf.float32)",
            "of a record of class 1",
        ),
        Mutant("tf.cast(label > 0, tf.float32)", "1.0", "The weight of a record with the label 0"),
        Mutant("tf.cast(label > 0, tf.float32)", "label > 0", "the weight's type"),
        Mutant(", tf.cast(label > 0, tf.float32)", "", "three things"),
        Mutant(
            "tf.cast(tf.image.resize(image, [SIZE, SIZE]), tf.uint8)",
            "tf.image.resize(image, [SIZE, SIZE])",
            "float32",
        ),
        Mutant("tf.cast(tf.image.resize(image, [SIZE, SIZE]), tf.uint8)", "image", "static shape"),
        Mutant(
            'tf.cast(example["image/class/label"], tf.int32)',
            'example["image/class/label"]',
            "int32",
        ),
        # Decode_image, area, round
        Right(r"""
def parse(record):
    example = tf.io.parse_single_example(record, {
        "image/encoded": tf.io.FixedLenFeature((), tf.string),
        "image/class/label": tf.io.FixedLenFeature((), tf.int64, 0)})
    image = tf.io.decode_image(example["image/encoded"], channels=3, expand_animations=False)
    image = tf.image.resize(image, (SIZE, SIZE), method="area")
    known = example["image/class/label"] > 0
    number = tf.where(known, example["image/class/label"] - 1, 0)
    return tf.cast(tf.round(image), tf.uint8), tf.cast(number, tf.int32), tf.where(known, 1.0, 0.0)
"""),
        # Decode_jpeg, bilinear, saturate_cast, helper; -1 where there is no label
        Right(r"""
def _picture(encoded):
    pixels = tf.image.decode_jpeg(encoded, channels=3)
    return tf.saturate_cast(tf.image.resize(pixels, [SIZE, SIZE], antialias=True), tf.uint8)

def parse(record):
    spec = dict.fromkeys(["image/encoded"], tf.io.FixedLenFeature([], tf.string))
    spec["image/class/label"] = tf.io.FixedLenFeature([], tf.int64, default_value=-1)
    found = tf.io.parse_example(record, spec)
    number = tf.cast(found["image/class/label"], tf.int32) - 1
    return _picture(found["image/encoded"]), tf.nn.relu(number), tf.cast(number >= 0, tf.float32)
"""),
        # A list of any length, tf.cond
        Right(r"""
def parse(record):
    features = {"image/encoded": tf.io.FixedLenFeature([], tf.string), "image/class/label": tf.io.VarLenFeature(tf.int64)}
    e = tf.io.parse_single_example(serialized=record, features=features)
    x = tf.image.convert_image_dtype(tf.io.decode_jpeg(e["image/encoded"], channels=3), tf.float32)
    x = tf.image.resize(x, [SIZE, SIZE])
    label = tf.cast(tf.reduce_sum(e["image/class/label"].values), tf.int32)
    number, weight = tf.cond(label > 0, lambda: (label - 1, 1.0), lambda: (0, 0.0))
    return tf.image.convert_image_dtype(x, tf.uint8, saturate=True), number, weight
"""),
        # V1.image.resize, nearest
        Right(r"""
def parse(record):
    e = tf.io.parse_single_example(record, {"image/encoded": tf.io.FixedLenFeature([], tf.string), "image/class/label": tf.io.FixedLenFeature([], tf.int64, 0)})
    image = tf.io.decode_jpeg(e["image/encoded"], 3)
    image = tf.image.resize(image, [SIZE, SIZE], tf.image.ResizeMethod.NEAREST_NEIGHBOR)
    weight = tf.cast(tf.minimum(e["image/class/label"], 1), tf.float32)
    return image, tf.maximum(tf.cast(e["image/class/label"], "int32") - 1, 0), weight
"""),
        # Letterboxed, by whatever way
        Wrong(
            _5C.replace(
                "tf.image.resize(image, [SIZE, SIZE])",
                "tf.image.resize_with_pad(image, SIZE, SIZE)",
            ),
            "black bars at two edges",
        ),
        Wrong(
            _5C.replace(
                "tf.image.resize(image, [SIZE, SIZE])",
                "tf.image.resize_with_pad(image, SIZE, SIZE, method='area', antialias=True)",
            ),
            "the picture was padded",
        ),
        Wrong(
            _5C.replace(
                "tf.image.resize(image, [SIZE, SIZE])",
                "tf.image.pad_to_bounding_box(tf.image.resize(image, [SIZE, SIZE], preserve_aspect_ratio=True), 0, 0, SIZE, SIZE)",
            ),
            "The bottom left",
        ),
        # Scaled before the cast
        Wrong(
            _5C.replace("tf.cast(image, tf.uint8)", "tf.cast(image / 255, tf.uint8)"),
            "comes out black",
        ),
        # The number instead of its name
        Wrong(_5C.replace("SIZE, SIZE", "96, 96"), "use SIZE, not its value"),
        # Cuts from what is larger
        Wrong(
            _5C.replace("resize(image,", "resize(image[:SIZE],"),
            "the whole of it squeezed into 24 x 24",
        ),
        # Augments while it parses
        Wrong(
            _5C.replace("resize(image,", "resize(tf.image.random_flip_left_right(image),"),
            "a different picture each time",
        ),
        # FixedLenFeature of int32
        Wrong(_5C.replace("tf.int64", "tf.int32"), "TypeError: Value passed to parameter"),
        # Central crop before
        Wrong(
            _5C.replace("resize(image,", "resize(tf.image.central_crop(image, 0.8),"),
            "squeezed into",
        ),
    ],
    "5d": [
        Right("decisions = {'ImageNet': (768, 'a'), 'x-rays': (64, 'B'), 'sounds': (128, 'c')}"),
        Right("decisions = {'ImageNet': (1280, 'A'), 'x-rays': (288, 'B'), 'sounds': (128, 'C')}"),
        # A number that NumPy computed
        Right(
            "import numpy as np\ndecisions['ImageNet'] = (np.ceil(148_000 / 150 / 64).astype(int) * 64, 'A')"
        ),
        # B asks for a multiple of 64 hosts, too
        Right("decisions['ImageNet'] = (1024, 'B')"),
        Wrong("decisions['ImageNet'] = (1024, 'C')", "ImageNet: rule C does not set the number"),
        Wrong("decisions['ImageNet'] = (1024, '')", "does not set the number"),
        # In GB and in kB
        Wrong("decisions['ImageNet'] = (64, 'A')", "64 files of 2.31 GB: each host reads"),
        Mutant("1024", "1000", "cannot be shared evenly by 64 hosts"),
        Mutant("1024", "64", "reads a single file"),
        Mutant("1024", "128", "100 to 200 MB are possible"),
        Mutant("1024", "12800", "100 to 200 MB are possible"),
        Wrong("decisions['x-rays'] = (30, 'B')", "cannot be shared evenly by 32 hosts"),
        Wrong("decisions['x-rays'] = (320, 'B')", "so small that opening"),
        # The number of ImageNet's files, for all data sets
        Wrong("decisions['x-rays'] = (1024, 'A')", "1,024 files of 2.93 MB are so small"),
        Wrong("decisions['sounds'] = (1024, 'A')", "1,024 files of 1.95 MB are so small"),
        Wrong("decisions['sounds'] = (256, 'B')", "256 files of 7.81 MB are so small"),
        Wrong("decisions['sounds'] = (200, 'C')", "cannot be shared evenly by 128 hosts"),
        Wrong("decisions['sounds'] = (20, 'A')", "cannot be shared evenly by 128 hosts"),
        Mutant('(128, "C")', '(128, "B")', "sounds: rule B does not set the number"),
        Mutant('(128, "B")', '(128, "A")', "Which rule cannot be met"),
        Wrong("decisions['sounds'] = 128", "expected a pair"),
        Wrong("decisions = {'ImageNet': (1024, 'A')}", "missing: sounds, x-rays"),
    ],
}
