"""What learners get wrong in lab 05, and the words that they must hear."""

import re

from wrong_answers import Mutant, Right, Wrong

_UNKNOWN = """            if label not in self.numbers:
                raise Reject(f"unknown label {label}")
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
        except Reject as reject:
            yield beam.pvalue.TaggedOutput("rejects", (line, str(reject)))
"""
_5C = """
def parse(record):
    e = tf.io.parse_single_example(record, {"image/encoded": tf.io.FixedLenFeature([], tf.string), "image/class/label": tf.io.FixedLenFeature([], tf.int64)})
    image = tf.io.decode_jpeg(e["image/encoded"], channels=3)
    image = tf.image.resize(image, [SIZE, SIZE])
    return tf.cast(image, tf.uint8), tf.cast(e["image/class/label"], tf.int32) - 1
"""

ANSWERS = {
    "5a": [
        Mutant("enumerate(labels, 1)", "enumerate(labels)", "lines count from 1"),
        Mutant(
            'raise Reject(f"unknown label {label}")',
            "return",
            re.compile("an unknown label.*nothing"),
        ),
        Mutant("if label not in self.numbers:", "if False:", "KeyError"),
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
        # Split() on the labels file, returns lists
        Right(r"""
class ToExample(beam.DoFn):
    def __init__(self, folder, labels_file):
        self.folder, self.labels_file = str(folder), str(labels_file)
    def setup(self):
        names = Path(self.labels_file).read_text().split()
        self.numbers = {name: n + 1 for n, name in enumerate(names)}
    def process(self, line):
        try:
            path, label, data = read_row(line, self.folder)
            if label not in self.numbers:
                raise Reject(f"unknown label {label}")
            return [make_example(data, path, self.numbers[label], label)]
        except Reject as reject:
            return [beam.pvalue.TaggedOutput("rejects", (line, str(reject)))]
"""),
        # FileSystems, dict zip, try except else
        Right(r"""
class ToExample(beam.DoFn):
    def __init__(self, folder, labels_file):
        self.folder, self.labels_file = str(folder), str(labels_file)
    def setup(self):
        with FileSystems.open(self.labels_file) as file:
            names = file.read().decode().splitlines()
        self.number_of = dict(zip(names, range(1, len(names) + 1)))
    def _example(self, line):
        path, label, data = read_row(line=line, folder=self.folder)
        number = self.number_of.get(label)
        if number is None:
            raise Reject(f"{label!r} is not among the labels")
        return make_example(data=data, filename=path, label=number, text=label)
    def process(self, line):
        try:
            example = self._example(line)
        except Reject as why:
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
                raise Reject("no such class: " + label)
            result = make_example(data, path, number, label)
        except Reject as e:
            result = beam.pvalue.TaggedOutput(tag="rejects", value=(line, e.args[0]))
        yield result
"""),
        # Except Exception
        Wrong(
            _5A.replace("except Reject", "except Exception"),
            "could become rejects without an error. Catch",
        ),
        # Except KeyError around all
        Wrong(
            _5A.replace(_UNKNOWN, "").replace("except Reject", "except (Reject, KeyError)"),
            "a whole data set could become rejects without an error. Catch",
        ),
        # Labels sorted
        Wrong(
            _5A.replace("= Path", "= sorted(Path").replace("lines()", "lines())"), "label of line 2"
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
            "not the pair (line, reason), both strings: ('a.jpg,rosses', Reject(",
        ),
    ],
    "5b": [
        # Another order of the branches
        Right(
            "rows_treatment = {23: '''if label not in self.numbers:\n    yield self.reject(line, 'no class')\n    return''', 24: ''}"
        ),
        # The line above, which the fault may be taken for
        Right("rows_diagnosis = {24: 'e'}"),
        # The helper that returns, too
        Wrong("rows_diagnosis = {19: 'E'}", "This method has no yield"),
        # A header that nobody skips
        Wrong("rows_diagnosis = {47: 'C'}", "skips no header"),
        # The right line for another reason
        Wrong("rows_diagnosis = {24: 'A'}", "not for the reason"),
        # The row goes on after it was rejected
        Wrong("rows_treatment = {24: 'yield self.reject(line, label)'}", "KeyError"),
        # The bad rows are passed over in another way
        Wrong("rows_treatment = {24: 'return'}", "The lines of rejects.tsv"),
        # A class for all of them
        Wrong(
            "rows_treatment = {23: '', 24: '', 32: 'yield self.record(path, data, self.numbers.get(label, 0))'}",
            "rejects.tsv",
        ),
        # Not a program any more
        Wrong("rows_treatment = {24: 'yield self.reject(line, label'}", "SyntaxError"),
    ],
    "5c": [
        Mutant("tf.int32) - 1", "tf.int32)", "from 0"),
        Mutant(
            "tf.cast(tf.image.resize(image, [SIZE, SIZE]), tf.uint8)",
            "tf.image.resize(image, [SIZE, SIZE])",
            "float32",
        ),
        Mutant("tf.cast(tf.image.resize(image, [SIZE, SIZE]), tf.uint8)", "image", "static shape"),
        Mutant(
            "tf.image.resize(image, [SIZE, SIZE])",
            "tf.image.resize_with_crop_or_pad(image, SIZE, SIZE)",
            "squeezed",
        ),
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
        "image/class/label": tf.io.FixedLenFeature((), tf.int64)})
    image = tf.io.decode_image(example["image/encoded"], channels=3, expand_animations=False)
    image = tf.image.resize(image, (SIZE, SIZE), method="area")
    return tf.cast(tf.round(image), tf.uint8), tf.cast(example["image/class/label"] - 1, tf.int32)
"""),
        # Decode_jpeg, bilinear, saturate_cast, helper
        Right(r"""
def _picture(encoded):
    pixels = tf.image.decode_jpeg(encoded, channels=3)
    return tf.saturate_cast(tf.image.resize(pixels, [SIZE, SIZE], antialias=True), tf.uint8)

def parse(record):
    spec = dict.fromkeys(["image/encoded"], tf.io.FixedLenFeature([], tf.string))
    spec["image/class/label"] = tf.io.FixedLenFeature([], tf.int64, default_value=0)
    found = tf.io.parse_example(record, spec)
    return _picture(found["image/encoded"]), tf.cast(found["image/class/label"], tf.int32) - 1
"""),
        # Convert_image_dtype both ways, nearest, all features parsed
        Right(r"""
def parse(record):
    features = {name: tf.io.FixedLenFeature([], kind) for name, kind in {
        "image/encoded": tf.string, "image/class/label": tf.int64, "image/class/text": tf.string}.items()}
    e = tf.io.parse_single_example(serialized=record, features=features)
    x = tf.image.convert_image_dtype(tf.io.decode_jpeg(e["image/encoded"], channels=3), tf.float32)
    x = tf.image.resize(x, [SIZE, SIZE])
    return tf.image.convert_image_dtype(x, tf.uint8, saturate=True), tf.cast(tf.subtract(e["image/class/label"], 1), tf.int32)
"""),
        # V1.image.resize, nearest
        Right(r"""
def parse(record):
    e = tf.io.parse_single_example(record, {"image/encoded": tf.io.FixedLenFeature([], tf.string), "image/class/label": tf.io.FixedLenFeature([], tf.int64)})
    image = tf.io.decode_jpeg(e["image/encoded"], 3)
    image = tf.image.resize(image, [SIZE, SIZE], tf.image.ResizeMethod.NEAREST_NEIGHBOR)
    return image, tf.cast(e["image/class/label"], "int32") - 1
"""),
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
            "another picture each time",
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
        Right("decisions = {'ImageNet': (768, 'a'), 'x-rays': (64, 'B'), 'flowers': (1, 'C')}"),
        Right("decisions = {'ImageNet': (1280, 'A'), 'x-rays': (288, 'B'), 'flowers': (1, 'C')}"),
        Mutant("1024", "1000", "cannot be shared evenly by 64 hosts"),
        Mutant("1024", "64", "reads a single file"),
        Mutant("1024", "128", "100 to 200 MB are possible"),
        Mutant("1024", "12800", "100 to 200 MB are possible"),
        Mutant("128", "30", "cannot be shared evenly by 32 hosts"),
        Mutant("128", "320", "so small that opening"),
        Mutant('(128, "B")', '(128, "A")', "Which rule cannot be met"),
        Mutant('(1, "C")', '(4, "B")', "so small that opening"),
        Mutant('(1, "C")', "1", "expected a pair"),
        Wrong("decisions = {'ImageNet': (1024, 'A')}", "missing: flowers, x-rays"),
    ],
}
