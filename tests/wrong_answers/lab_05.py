"""What learners get wrong in lab 05, and the words that they must hear."""

import re

from wrong_answers import Mutant, Right, Wrong

ANSWERS = {
    "5a": [
        Mutant("image.height, image.width", "np.asarray(image).shape[:2]", "decodes"),
        Mutant(
            "return image.height, image.width",
            "return tuple(tf.io.decode_jpeg(data).shape[:2])",
            "decodes",
        ),
        Mutant('if image.format != "JPEG":', "if False:", "PNG"),
        Mutant('if b"\\xff\\xd9" not in data[-64:]:', "if False:", "in the midst"),
        Mutant(
            'raise Reject("not an image") from None',
            "return None",
            "not an image at all: expected 'a Reject with a reason', yours gives 'None",
        ),
        Mutant(
            'raise Reject("not an image") from None',
            "raise",
            "UnidentifiedImageError is raised, which ends the whole job",
        ),
        Mutant(
            'raise Reject(f"a {image.format}, not a JPEG")', "raise Reject()", "without a reason"
        ),
        # Context manager, except Exception
        Right(r"""
def image_size(data):
    try:
        with Image.open(io.BytesIO(data)) as image:
            kind, width, height = image.format, image.width, image.height
    except Exception as error:
        raise Reject(f"not an image: {error}") from error
    if kind != "JPEG":
        raise Reject(f"a {kind}, not a JPEG")
    if data[-2:] != b"\xff\xd9":
        raise Reject("JPEG is cut off")
    return height, width
"""),
        # Helper functions, size reversed
        Right(r"""
def _opened(data):
    try:
        return Image.open(io.BytesIO(data))
    except Exception:
        raise Reject("cannot be opened as an image") from None

def image_size(data):
    img = _opened(data)
    problems = [reason for bad, reason in (
        (img.format != "JPEG", "image is not in JPEG format"),
        (not data.endswith(b"\xff\xd9"), "end marker is missing: truncated file"),
    ) if bad]
    if problems:
        raise Reject("; ".join(problems))
    return tuple(reversed(img.size))
"""),
        # End first, then format
        Right(r"""
def image_size(data):
    try:
        picture = Image.open(io.BytesIO(bytes(data)))
    except BaseException as e:
        raise Reject("no image at all") from e
    if not picture.format == "JPEG":
        raise Reject("format " + str(picture.format))
    if not bytes(data).endswith(bytes([0xFF, 0xD9])):
        raise Reject("incomplete file")
    size = (picture.height, picture.width)
    return size
"""),
        # Width first
        Wrong(
            r"""
def image_size(data):
    try:
        image = Image.open(io.BytesIO(data))
    except Exception:
        raise Reject("no image") from None
    if image.format != "JPEG":
        raise Reject("no JPEG")
    if not data.endswith(b"\xff\xd9"):
        raise Reject("truncated")
    return image.size
""",
            "that is width first, as Pillow's .size has it. Return",
        ),
        # End marker anywhere
        Wrong(
            r"""
def image_size(data):
    try:
        image = Image.open(io.BytesIO(data))
    except Exception:
        raise Reject("no image") from None
    if image.format != "JPEG":
        raise Reject("no JPEG")
    if b"\xff\xd9" not in data:
        raise Reject("truncated")
    return image.height, image.width
""",
            "For half a JPEG that holds a whole thumbnail, and with it",
        ),
        # End marker among the last kilobyte
        Wrong(
            r"""
def image_size(data):
    try:
        image = Image.open(io.BytesIO(data))
    except Exception:
        raise Reject("no image") from None
    if image.format != "JPEG":
        raise Reject("no JPEG")
    if b"\xff\xd9" not in data[-1024:]:
        raise Reject("truncated")
    return image.height, image.width
""",
            "For half a JPEG that holds a whole thumbnail, and with it",
        ),
        # UnidentifiedImageError alone
        Wrong(
            r"""
from PIL import UnidentifiedImageError
def image_size(data):
    try:
        image = Image.open(io.BytesIO(data))
    except UnidentifiedImageError:
        raise Reject("no image") from None
    if image.format != "JPEG":
        raise Reject("no JPEG")
    if not data.endswith(b"\xff\xd9"):
        raise Reject("truncated")
    return image.height, image.width
""",
            "For a JPEG that is cut off in its header: expected 'a Reject",
        ),
        # Decodes with numpy
        Wrong(
            r"""
def image_size(data):
    try:
        image = Image.open(io.BytesIO(data))
    except Exception:
        raise Reject("no image") from None
    if image.format != "JPEG":
        raise Reject("no JPEG")
    if not data.endswith(b"\xff\xd9"):
        raise Reject("truncated")
    height, width, _ = np.asarray(image.convert("RGB")).shape
    return height, width
""",
            "This decodes the whole picture. Height and width stand in",
        ),
        # Verify instead of the marker
        Wrong(
            r"""
def image_size(data):
    try:
        image = Image.open(io.BytesIO(data))
        image.verify()
    except Exception:
        raise Reject("no image") from None
    if image.format != "JPEG":
        raise Reject("no JPEG")
    return image.height, image.width
""",
            "For a JPEG that ends in the midst of its picture",
        ),
        # One reason for all
        Wrong(
            r"""
def image_size(data):
    try:
        image = Image.open(io.BytesIO(data))
        assert image.format == "JPEG"
        assert data.endswith(b"\xff\xd9")
    except Exception:
        raise Reject("bad image") from None
    return image.height, image.width
""",
            "say which of them it is, so that a colleague knows what to",
        ),
        # Looks at a thumbnail, which changes only what is large
        Wrong(
            r"""
def image_size(data):
    try:
        image = Image.open(io.BytesIO(data))
    except Exception:
        raise Reject("not an image") from None
    if image.format != "JPEG":
        raise Reject("not a JPEG")
    if b"\xff\xd9" not in data[-64:]:
        raise Reject("truncated")
    image.thumbnail((96, 96))
    return image.height, image.width
""",
            "decodes the whole picture",
        ),
    ],
    "5b": [
        Mutant("height, width = image_size", "width, height = image_size", "image/height"),
        Mutant("int_feature(label),", "int_feature(label - 1),", "from 1"),
        Mutant("return example.SerializeToString()", "return example", "SerializeToString"),
        Mutant('"image/class/label": int', '"image/label": int', "image/class/label"),
        Mutant('bytes_feature(b"JPEG")', 'bytes_feature(b"jpg")', "image/format"),
        Mutant(
            '"image/height": int_feature(height)',
            '"image/height": bytes_feature(str(height).encode())',
            "expected ['int64_list', 40]",
        ),
        Mutant(
            '"image/encoded": bytes_feature(data)',
            '"image/encoded": bytes_feature(tf.io.decode_jpeg(data).numpy().tobytes())',
            "byte for byte",
        ),
        Mutant("bytes_feature(text.encode())", "bytes_feature(text)", "TypeError"),
        # Fills an Example in place
        Right(r"""
def make_example(data, filename, label, text):
    height, width = image_size(data)
    example = tf.train.Example()
    feature = example.features.feature
    for name, value in (("encoded", data), ("format", b"JPEG"), ("colorspace", b"RGB"),
                        ("filename", filename.encode("utf-8")), ("class/text", text.encode("utf-8"))):
        feature["image/" + name].bytes_list.value.append(value)
    for name, value in (("height", height), ("width", width), ("channels", 3), ("class/label", label)):
        feature["image/" + name].int64_list.value.append(value)
    return example.SerializeToString()
"""),
        # One helper for all types
        Right(r"""
def _feature(value):
    if isinstance(value, str):
        value = value.encode()
    return bytes_feature(value) if isinstance(value, bytes) else int_feature(value)

def make_example(data, filename, label, text):
    h, w = image_size(data)
    values = dict(encoded=data, format="JPEG", colorspace="RGB", height=h, width=w, channels=3, filename=filename)
    features = {f"image/{k}": _feature(v) for k, v in values.items()}
    features.update({"image/class/label": _feature(label), "image/class/text": _feature(text)})
    return tf.train.Example(features=tf.train.Features(feature=features)).SerializeToString(deterministic=True)
"""),
        # Keyword arguments, tf.compat.as_bytes
        Right(r"""
def make_example(data, filename, label, text):
    size = image_size(data=data)
    as_bytes = tf.compat.as_bytes
    proto = tf.train.Example(features=tf.train.Features(feature={
        "image/height": int_feature(size[0]), "image/width": int_feature(size[1]),
        "image/channels": int_feature(3), "image/colorspace": bytes_feature(as_bytes("RGB")),
        "image/format": bytes_feature(as_bytes("JPEG")), "image/encoded": bytes_feature(data),
        "image/filename": bytes_feature(as_bytes(filename)),
        "image/class/label": int_feature(int(label)), "image/class/text": bytes_feature(as_bytes(text))}))
    serialized = proto.SerializeToString()
    return serialized
"""),
        # Height and width swapped
        Wrong(
            r"""
def make_example(data, filename, label, text):
    width, height = image_size(data)
    f = {"image/encoded": bytes_feature(data), "image/format": bytes_feature(b"JPEG"), "image/colorspace": bytes_feature(b"RGB"),
         "image/height": int_feature(height), "image/width": int_feature(width), "image/channels": int_feature(3),
         "image/class/label": int_feature(label), "image/class/text": bytes_feature(text.encode()), "image/filename": bytes_feature(filename.encode())}
    return tf.train.Example(features=tf.train.Features(feature=f)).SerializeToString()
""",
            "image/height of a picture of 40 rows and 60 columns",
        ),
        # Adds 1 to the label
        Wrong(
            r"""
def make_example(data, filename, label, text):
    height, width = image_size(data)
    f = {"image/encoded": bytes_feature(data), "image/format": bytes_feature(b"JPEG"), "image/colorspace": bytes_feature(b"RGB"),
         "image/height": int_feature(height), "image/width": int_feature(width), "image/channels": int_feature(3),
         "image/class/label": int_feature(label + 1), "image/class/text": bytes_feature(text.encode()), "image/filename": bytes_feature(filename.encode())}
    return tf.train.Example(features=tf.train.Features(feature=f)).SerializeToString()
""",
            "here, and label does so already",
        ),
        # Text not encoded
        Wrong(
            r"""
def make_example(data, filename, label, text):
    height, width = image_size(data)
    f = {"image/encoded": bytes_feature(data), "image/format": bytes_feature(b"JPEG"), "image/colorspace": bytes_feature(b"RGB"),
         "image/height": int_feature(height), "image/width": int_feature(width), "image/channels": int_feature(3),
         "image/class/label": int_feature(label), "image/class/text": bytes_feature(text), "image/filename": bytes_feature(filename)}
    return tf.train.Example(features=tf.train.Features(feature=f)).SerializeToString()
""",
            "Your code raised TypeError: expected bytes, str found",
        ),
        # The Example itself
        Wrong(
            r"""
def make_example(data, filename, label, text):
    height, width = image_size(data)
    f = {"image/encoded": bytes_feature(data), "image/format": bytes_feature(b"JPEG"), "image/colorspace": bytes_feature(b"RGB"),
         "image/height": int_feature(height), "image/width": int_feature(width), "image/channels": int_feature(3),
         "image/class/label": int_feature(label), "image/class/text": bytes_feature(text.encode()), "image/filename": bytes_feature(filename.encode())}
    return tf.train.Example(features=tf.train.Features(feature=f))
""",
            "make_example should return bytes",
        ),
        # Features serialised, not the Example
        Wrong(
            r"""
def make_example(data, filename, label, text):
    height, width = image_size(data)
    f = {"image/encoded": bytes_feature(data), "image/format": bytes_feature(b"JPEG"), "image/colorspace": bytes_feature(b"RGB"),
         "image/height": int_feature(height), "image/width": int_feature(width), "image/channels": int_feature(3),
         "image/class/label": int_feature(label), "image/class/text": bytes_feature(text.encode()), "image/filename": bytes_feature(filename.encode())}
    return tf.train.Features(feature=f).SerializeToString()
""",
            "These bytes are not a tf.train.Example: wrap the Features",
        ),
        # Decoded pixels
        Wrong(
            r"""
def make_example(data, filename, label, text):
    height, width = image_size(data)
    pixels = np.asarray(Image.open(io.BytesIO(data)).convert("RGB")).tobytes()
    f = {"image/encoded": bytes_feature(pixels), "image/format": bytes_feature(b"JPEG"), "image/colorspace": bytes_feature(b"RGB"),
         "image/height": int_feature(height), "image/width": int_feature(width), "image/channels": int_feature(3),
         "image/class/label": int_feature(label), "image/class/text": bytes_feature(text.encode()), "image/filename": bytes_feature(filename.encode())}
    return tf.train.Example(features=tf.train.Features(feature=f)).SerializeToString()
""",
            "should be the JPEG file, byte for byte: neither decoded",
        ),
        # Size from Pillow, not image_size: bad ones pass
        Wrong(
            r"""
def make_example(data, filename, label, text):
    image = Image.open(io.BytesIO(data))
    f = {"image/encoded": bytes_feature(data), "image/format": bytes_feature(b"JPEG"), "image/colorspace": bytes_feature(b"RGB"),
         "image/height": int_feature(image.height), "image/width": int_feature(image.width), "image/channels": int_feature(3),
         "image/class/label": int_feature(label), "image/class/text": bytes_feature(text.encode()), "image/filename": bytes_feature(filename.encode())}
    return tf.train.Example(features=tf.train.Features(feature=f)).SerializeToString()
""",
            "take height and width from image_size, which rejects it",
        ),
    ],
    "5c": [
        Mutant("enumerate(labels, 1)", "enumerate(labels)", "number 1"),
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
        # Numpy loadtxt, a helper of the module
        Right(r"""
def numbers_of(file):
    return {str(name): 1 + n for n, name in enumerate(np.loadtxt(file, dtype=str, ndmin=1))}

class ToExample(beam.DoFn):
    def __init__(self, folder, labels_file):
        self.folder, self.labels_file = str(folder), str(labels_file)
    def setup(self):
        self.table = numbers_of(self.labels_file)
    def process(self, line):
        def reject(why):
            return beam.pvalue.TaggedOutput("rejects", (line, why))
        try:
            path, label, data = read_row(line, self.folder)
            if label in self.table:
                yield make_example(data, path, self.table[label], label)
            else:
                yield reject("the label is unknown: " + label)
        except Reject as r:
            yield reject(str(r))
"""),
        # Except Exception
        Wrong(
            r"""
class ToExample(beam.DoFn):
    def __init__(self, folder, labels_file):
        self.folder, self.labels_file = str(folder), str(labels_file)
    def setup(self):
        names = Path(self.labels_file).read_text().splitlines()
        self.numbers = {name: n for n, name in enumerate(names, 1)}
    def process(self, line):
        try:
            path, label, data = read_row(line, self.folder)
            if label not in self.numbers:
                raise Reject(f"unknown label {label}")
            yield make_example(data, path, self.numbers[label], label)
        except Exception as reject:
            yield beam.pvalue.TaggedOutput("rejects", (line, str(reject)))
""",
            "a whole data set could go to the rejects unseen. Catch",
        ),
        # Except KeyError around all
        Wrong(
            r"""
class ToExample(beam.DoFn):
    def __init__(self, folder, labels_file):
        self.folder, self.labels_file = str(folder), str(labels_file)
    def setup(self):
        names = Path(self.labels_file).read_text().splitlines()
        self.numbers = {name: n for n, name in enumerate(names, 1)}
    def process(self, line):
        try:
            path, label, data = read_row(line, self.folder)
            yield make_example(data, path, self.numbers[label], label)
        except (Reject, KeyError) as reject:
            yield beam.pvalue.TaggedOutput("rejects", (line, str(reject)))
""",
            "a whole data set could go to the rejects unseen. Catch",
        ),
        # Numbers from 0
        Wrong(
            r"""
class ToExample(beam.DoFn):
    def __init__(self, folder, labels_file):
        self.folder, self.labels_file = str(folder), str(labels_file)
    def setup(self):
        names = Path(self.labels_file).read_text().splitlines()
        self.numbers = {name: n for n, name in enumerate(names)}
    def process(self, line):
        try:
            path, label, data = read_row(line, self.folder)
            if label not in self.numbers:
                raise Reject(f"unknown label {label}")
            yield make_example(data, path, self.numbers[label], label)
        except Reject as reject:
            yield beam.pvalue.TaggedOutput("rejects", (line, str(reject)))
""",
            "the first is number 1",
        ),
        # Labels sorted
        Wrong(
            r"""
class ToExample(beam.DoFn):
    def __init__(self, folder, labels_file):
        self.folder, self.labels_file = str(folder), str(labels_file)
    def setup(self):
        names = sorted(Path(self.labels_file).read_text().splitlines())
        self.numbers = {name: n for n, name in enumerate(names, 1)}
    def process(self, line):
        try:
            path, label, data = read_row(line, self.folder)
            if label not in self.numbers:
                raise Reject(f"unknown label {label}")
            yield make_example(data, path, self.numbers[label], label)
        except Reject as reject:
            yield beam.pvalue.TaggedOutput("rejects", (line, str(reject)))
""",
            "with the label of line 2",
        ),
        # Newline left on the labels
        Wrong(
            r"""
class ToExample(beam.DoFn):
    def __init__(self, folder, labels_file):
        self.folder, self.labels_file = str(folder), str(labels_file)
    def setup(self):
        self.numbers = {name: n for n, name in enumerate(open(self.labels_file).readlines(), 1)}
    def process(self, line):
        try:
            path, label, data = read_row(line, self.folder)
            if label not in self.numbers:
                raise Reject(f"unknown label {label}")
            yield make_example(data, path, self.numbers[label], label)
        except Reject as reject:
            yield beam.pvalue.TaggedOutput("rejects", (line, str(reject)))
""",
            "each ends in a line break",
        ),
        # Unknown label ends the job
        Wrong(
            r"""
class ToExample(beam.DoFn):
    def __init__(self, folder, labels_file):
        self.folder, self.labels_file = str(folder), str(labels_file)
    def setup(self):
        names = Path(self.labels_file).read_text().splitlines()
        self.numbers = {name: n for n, name in enumerate(names, 1)}
    def process(self, line):
        try:
            path, label, data = read_row(line, self.folder)
            yield make_example(data, path, self.numbers[label], label)
        except Reject as reject:
            yield beam.pvalue.TaggedOutput("rejects", (line, str(reject)))
""",
            "One such row would end the whole job; it should be a",
        ),
        # The exception object instead of the reason's text
        Wrong(
            r"""
class ToExample(beam.DoFn):
    def __init__(self, folder, labels_file):
        self.folder, self.labels_file = str(folder), str(labels_file)
    def setup(self):
        names = Path(self.labels_file).read_text().splitlines()
        self.numbers = {name: n for n, name in enumerate(names, 1)}
    def process(self, line):
        try:
            path, label, data = read_row(line, self.folder)
            if label not in self.numbers:
                raise Reject(f"unknown label {label}")
            yield make_example(data, path, self.numbers[label], label)
        except Reject as reject:
            yield beam.pvalue.TaggedOutput("rejects", (line, reject))
""",
            "not the pair (line, reason), both text: ('a.jpg,rosses', Reject(",
        ),
    ],
    "5d": [
        Mutant('"--runner=FnApiRunner"', '"--runner=DirectRunner"', "Prism"),
        Mutant('flags = ["--runner=FnApiRunner"]', "flags = []", "Prism"),
        Mutant('flags += ["--direct_running_mode=multi_processing", ', "flags += [", "in_memory"),
        Mutant(', f"--direct_num_workers={workers}"', "", "2 workers"),
        # Runner as an argument of Pipeline
        Right(r"""
def make_pipeline(workers=1):
    flags = []
    if workers > 1:
        flags = ["--direct_running_mode=multi_processing", "--direct_num_workers=%d" % workers]
    return beam.Pipeline(runner="FnApiRunner", options=PipelineOptions(flags))
"""),
        # Keyword arguments of PipelineOptions
        Right(r"""
def make_pipeline(workers=1):
    options = {"runner": "FnApiRunner"}
    if workers != 1:
        options |= {"direct_running_mode": "multi_processing", "direct_num_workers": workers}
    return beam.Pipeline(options=PipelineOptions([], **options))
"""),
        # Flags and values apart
        Right(r"""
def make_pipeline(workers=1):
    flags = ["--runner", "FnApiRunner"]
    if workers >= 2:
        flags.extend(["--direct_running_mode", "multi_processing", "--direct_num_workers", str(workers)])
    options = PipelineOptions(flags=flags)
    return beam.Pipeline(options=options)
"""),
        # In_memory said for one
        Right(r"""
def make_pipeline(workers=1):
    mode = "in_memory" if workers == 1 else "multi_processing"
    return beam.Pipeline(options=PipelineOptions(["--runner=FnApiRunner", f"--direct_running_mode={mode}", f"--direct_num_workers={workers}"]))
"""),
        # DirectRunner
        Wrong(
            r"""
def make_pipeline(workers=1):
    flags = ["--runner=DirectRunner"]
    if workers > 1:
        flags += ["--direct_running_mode=multi_processing", f"--direct_num_workers={workers}"]
    return beam.Pipeline(options=PipelineOptions(flags))
""",
            "yours gives 'SwitchingDirectRunner'",
        ),
        # No runner
        Wrong(
            r"""
def make_pipeline(workers=1):
    flags = []
    if workers > 1:
        flags += ["--direct_running_mode=multi_processing", f"--direct_num_workers={workers}"]
    return beam.Pipeline(options=PipelineOptions(flags))
""",
            "yours gives 'SwitchingDirectRunner'",
        ),
        # The number of workers alone
        Wrong(
            r"""
def make_pipeline(workers=1):
    return beam.Pipeline(options=PipelineOptions(["--runner=FnApiRunner", f"--direct_num_workers={workers}"]))
""",
            "expected ['multi_processing', 2], yours gives ['in_memory', 2]",
        ),
        # The mode alone
        Wrong(
            r"""
def make_pipeline(workers=1):
    flags = ["--runner=FnApiRunner"]
    if workers > 1:
        flags += ["--direct_running_mode=multi_processing"]
    return beam.Pipeline(options=PipelineOptions(flags))
""",
            "expected ['multi_processing', 2], yours gives ['multi_processing', 1]",
        ),
        # Several processes always
        Wrong(
            r"""
def make_pipeline(workers=1):
    return beam.Pipeline(options=PipelineOptions(["--runner=FnApiRunner", "--direct_running_mode=multi_processing", f"--direct_num_workers={workers}"]))
""",
            "One worker should stay in this process: starting another",
        ),
        # More than two only
        Wrong(
            r"""
def make_pipeline(workers=1):
    flags = ["--runner=FnApiRunner"]
    if workers > 2:
        flags += ["--direct_running_mode=multi_processing", f"--direct_num_workers={workers}"]
    return beam.Pipeline(options=PipelineOptions(flags))
""",
            "of 2 workers: expected ['multi_processing', 2]",
        ),
        # Flags of this process too
        Wrong(
            r"""
def make_pipeline(workers=1):
    flags = {}
    if workers > 1:
        flags = dict(direct_running_mode="multi_processing", direct_num_workers=workers)
    return beam.Pipeline(options=PipelineOptions(runner="FnApiRunner", **flags))
""",
            "PipelineOptions takes the flags of this process, those of",
        ),
    ],
    "5e": [
        # Runs what it should only join
        Wrong(
            """
def add_steps(pipeline, csv_file, to_example, output, shards):
    out = pipeline | beam.io.ReadFromText(str(csv_file)) | beam.ParDo(to_example).with_outputs("rejects", main="examples")
    out.examples | beam.io.WriteToTFRecord(os.path.join(output, "train"), file_name_suffix=".tfrecord", num_shards=shards)
    out.rejects | beam.Map(lambda r: "\\t".join(r)) | beam.io.WriteToText(os.path.join(output, "rejects.tsv"), shard_name_template="")

    pipeline.run()
""",
            "has run the pipeline",
        ),
        Mutant(", num_shards=shards", "", "3 files"),
        Mutant(', file_name_suffix=".tfrecord"', "", ".tfrecord"),
        Mutant('.with_outputs("rejects", main="examples")', "", "AttributeError"),
        Mutant(
            '    _ = (\n        made.rejects\n        | beam.Map("\\t".join)\n'
            '        | beam.io.WriteToText(f"{output}/rejects.tsv", shard_name_template="")\n    )\n',
            "",
            "rejects.tsv",
        ),
        Mutant(', shard_name_template=""', "", "rejects.tsv"),
        Mutant('beam.Map("\\t".join)', "beam.Map(str)", "tab"),
        Mutant("beam.io.WriteToTFRecord(", '"Examples" >> beam.io.WriteToText(', "TFRecord"),
        # Lambda, labels on the steps
        Right(r"""
def add_steps(pipeline, csv_file, to_example, output, shards):
    results = (
        pipeline
        | "read rows" >> beam.io.ReadFromText(str(csv_file))
        | "to examples" >> beam.ParDo(to_example).with_outputs("rejects", main="examples")
    )
    results.examples | "write" >> beam.io.WriteToTFRecord(f"{output}/train", file_name_suffix=".tfrecord", num_shards=shards)
    (results.rejects
     | "format" >> beam.Map(lambda pair: "\t".join(pair))
     | "write rejects" >> beam.io.WriteToText(f"{output}/rejects.tsv", shard_name_template=""))
"""),
        # MapTuple, tuple unpacking, reshuffle, helper
        Right(r"""
def as_line(line, reason):
    return f"{line}\t{reason}"

def add_steps(pipeline, csv_file, to_example, output, shards):
    lines = pipeline | beam.io.ReadFromText(os.fspath(csv_file))
    examples, rejects = lines | beam.Reshuffle() | beam.ParDo(to_example).with_outputs("rejects", main="examples")
    _ = examples | beam.io.WriteToTFRecord(os.path.join(output, "train"), file_name_suffix=".tfrecord", num_shards=shards)
    _ = rejects | beam.MapTuple(as_line) | beam.io.WriteToText(os.path.join(output, "rejects.tsv"), shard_name_template="")
"""),
        # By index, suffix of WriteToText, returns the results
        Right(r"""
def add_steps(pipeline, csv_file, to_example, output, shards):
    out = Path(output)
    done = pipeline | beam.io.ReadFromText(file_pattern=str(csv_file)) | beam.ParDo(to_example).with_outputs("rejects", main="examples")
    written = done["examples"] | beam.io.WriteToTFRecord(file_path_prefix=str(out / "train"), num_shards=shards, file_name_suffix=".tfrecord")
    rejects = done["rejects"] | beam.Map(lambda r: r[0] + "\t" + r[1]) | beam.io.WriteToText(str(out / "rejects"), file_name_suffix=".tsv", shard_name_template="", num_shards=1)
    return written, rejects
"""),
        # Distinct
        Wrong(
            r"""
def add_steps(pipeline, csv_file, to_example, output, shards):
    results = pipeline | beam.io.ReadFromText(str(csv_file)) | beam.Distinct() | beam.ParDo(to_example).with_outputs("rejects", main="examples")
    results.examples | beam.io.WriteToTFRecord(f"{output}/train", file_name_suffix=".tfrecord", num_shards=shards)
    results.rejects | beam.Map("\t".join) | beam.io.WriteToText(f"{output}/rejects.tsv", shard_name_template="")
""",
            "a row that stands twice is two examples",
        ),
        # Distinct rejects
        Wrong(
            r"""
def add_steps(pipeline, csv_file, to_example, output, shards):
    results = pipeline | beam.io.ReadFromText(str(csv_file)) | beam.ParDo(to_example).with_outputs("rejects", main="examples")
    results.examples | beam.io.WriteToTFRecord(f"{output}/train", file_name_suffix=".tfrecord", num_shards=shards)
    results.rejects | beam.Map("\t".join) | beam.Distinct() | beam.io.WriteToText(f"{output}/rejects.tsv", shard_name_template="")
""",
            "None may be lost",
        ),
        # Skips a header that is not there
        Wrong(
            r"""
def add_steps(pipeline, csv_file, to_example, output, shards):
    results = pipeline | beam.io.ReadFromText(str(csv_file), skip_header_lines=1) | beam.ParDo(to_example).with_outputs("rejects", main="examples")
    results.examples | beam.io.WriteToTFRecord(f"{output}/train", file_name_suffix=".tfrecord", num_shards=shards)
    results.rejects | beam.Map("\t".join) | beam.io.WriteToText(f"{output}/rejects.tsv", shard_name_template="")
""",
            "no header is skipped",
        ),
        # Number of shards forgotten
        Wrong(
            r"""
def add_steps(pipeline, csv_file, to_example, output, shards):
    results = pipeline | beam.io.ReadFromText(str(csv_file)) | beam.ParDo(to_example).with_outputs("rejects", main="examples")
    results.examples | beam.io.WriteToTFRecord(f"{output}/train", file_name_suffix=".tfrecord")
    results.rejects | beam.Map("\t".join) | beam.io.WriteToText(f"{output}/rejects.tsv", shard_name_template="")
""",
            "asked for 3 files of examples",
        ),
        # Four shards always
        Wrong(
            r"""
def add_steps(pipeline, csv_file, to_example, output, shards):
    results = pipeline | beam.io.ReadFromText(str(csv_file)) | beam.ParDo(to_example).with_outputs("rejects", main="examples")
    results.examples | beam.io.WriteToTFRecord(f"{output}/train", file_name_suffix=".tfrecord", num_shards=4)
    results.rejects | beam.Map("\t".join) | beam.io.WriteToText(f"{output}/rejects.tsv", shard_name_template="")
""",
            "asked for 3 files of examples",
        ),
        # Suffix forgotten
        Wrong(
            r"""
def add_steps(pipeline, csv_file, to_example, output, shards):
    results = pipeline | beam.io.ReadFromText(str(csv_file)) | beam.ParDo(to_example).with_outputs("rejects", main="examples")
    results.examples | beam.io.WriteToTFRecord(f"{output}/train", num_shards=shards)
    results.rejects | beam.Map("\t".join) | beam.io.WriteToText(f"{output}/rejects.tsv", shard_name_template="")
""",
            "expected 'train-00000-of-00003.tfrecord', yours gives 'train-00000-of-00003'",
        ),
        # Pairs as Python writes them
        Wrong(
            r"""
def add_steps(pipeline, csv_file, to_example, output, shards):
    results = pipeline | beam.io.ReadFromText(str(csv_file)) | beam.ParDo(to_example).with_outputs("rejects", main="examples")
    results.examples | beam.io.WriteToTFRecord(f"{output}/train", file_name_suffix=".tfrecord", num_shards=shards)
    results.rejects | beam.io.WriteToText(f"{output}/rejects.tsv", shard_name_template="")
""",
            "each the row, a tab and the reason",
        ),
    ],
    "5f": [
        # Ends the kernel instead of raising
        Wrong(
            """
def publish(staging, output, rows):
    examples = sum(1 for p in sorted(Path(staging).glob("train-*.tfrecord")) for _ in tf.data.TFRecordDataset(str(p)))
    rejects = len((Path(staging) / "rejects.tsv").read_text().splitlines())
    if examples + rejects != rows:
        raise SystemExit(f"{examples} examples + {rejects} rejects != {rows} rows")
    os.rename(staging, output)
    return examples, rejects
""",
            "ends the process",
        ),
        Mutant("if examples + rejects != rows:", "if False:", "12 rows"),
        Mutant("if examples + rejects != rows:", "if examples != rows:", "make 10 rows"),
        Mutant("os.rename(staging, output)", "shutil.move(staging, output)", "into"),
        Mutant("os.rename(staging, output)", "shutil.copytree(staging, output)", "copy"),
        Mutant(
            "os.rename(staging, output)",
            "shutil.rmtree(output, ignore_errors=True)\n    os.rename(staging, output)",
            "deleted",
        ),
        Mutant("return examples, rejects", "return examples", re.compile("pair|both")),
        Mutant(
            "    if examples + rejects != rows:",
            "    os.rename(staging, output)\n    if examples + rejects != rows:",
            re.compile("as it is|FileNotFound"),
        ),
        # List comprehension, glob, Path
        Right(r"""
def publish(staging, output, rows):
    staging = Path(staging)
    files = [str(file) for file in sorted(staging.glob("train-*.tfrecord"))]
    examples = sum(1 for _ in tf.data.TFRecordDataset(files))
    rejects = len((staging / "rejects.tsv").read_text().splitlines())
    if examples + rejects != rows:
        raise ValueError(f"{examples} examples + {rejects} rejects, but {rows} rows")
    os.rename(staging, output)
    return examples, rejects
"""),
        # Reduce, gfile, RuntimeError, helper
        Right(r"""
def count_records(pattern):
    dataset = tf.data.TFRecordDataset(tf.io.gfile.glob(pattern))
    return int(dataset.reduce(np.int64(0), lambda n, _: n + 1))

def publish(staging, output, rows):
    examples = count_records(f"{staging}/train-*.tfrecord")
    with open(os.path.join(staging, "rejects.tsv")) as f:
        rejects = sum(1 for line in f)
    if (total := examples + rejects) == rows:
        os.replace(staging, output)
        return (examples, rejects)
    raise RuntimeError("examples: %d, rejects: %d, rows: %d (%d missing)" % (examples, rejects, rows, rows - total))
"""),
        # Assert, Path.rename, per file
        Right(r"""
def publish(staging, output, rows):
    counts = {"examples": 0, "rejects": 0}
    for file in Path(staging).iterdir():
        if file.match("train-*.tfrecord"):
            for _ in v1.io.tf_record_iterator(str(file)):
                counts["examples"] += 1
        elif file.name == "rejects.tsv":
            counts["rejects"] = file.read_bytes().count(b"\n")
    assert sum(counts.values()) == rows, f"{counts} do not add up to {rows}"
    Path(staging).rename(output)
    return tuple(counts.values())
"""),
        # Counts files
        Wrong(
            r"""
def publish(staging, output, rows):
    examples = len(list(Path(staging).glob("train-*.tfrecord")))
    rejects = len((Path(staging) / "rejects.tsv").read_text().splitlines())
    if examples + rejects != rows:
        raise ValueError(f"{examples} + {rejects} != {rows}")
    os.rename(staging, output)
    return examples, rejects
""",
            "raise an error that gives the three numbers",
        ),
        # Too few alone is an error
        Wrong(
            r"""
def publish(staging, output, rows):
    files = [str(f) for f in Path(staging).glob("train-*.tfrecord")]
    examples = sum(1 for _ in tf.data.TFRecordDataset(files))
    rejects = len((Path(staging) / "rejects.tsv").read_text().splitlines())
    if examples + rejects < rows:
        raise ValueError(f"{examples} + {rejects} != {rows}")
    os.rename(staging, output)
    return examples, rejects
""",
            "for 8 rows (raise an error",
        ),
        # Too many alone is an error
        Wrong(
            r"""
def publish(staging, output, rows):
    files = [str(f) for f in Path(staging).glob("train-*.tfrecord")]
    examples = sum(1 for _ in tf.data.TFRecordDataset(files))
    rejects = len((Path(staging) / "rejects.tsv").read_text().splitlines())
    if examples + rejects > rows:
        raise ValueError(f"{examples} + {rejects} != {rows}")
    os.rename(staging, output)
    return examples, rejects
""",
            "for 12 rows (raise an error",
        ),
        # Error without the numbers
        Wrong(
            r"""
def publish(staging, output, rows):
    files = [str(f) for f in Path(staging).glob("train-*.tfrecord")]
    examples = sum(1 for _ in tf.data.TFRecordDataset(files))
    rejects = len((Path(staging) / "rejects.tsv").read_text().splitlines())
    if examples + rejects != rows:
        raise ValueError("some rows are missing")
    os.rename(staging, output)
    return examples, rejects
""",
            "raise an error that gives the three numbers",
        ),
        # Error with the sum in place of the three
        Wrong(
            r"""
def publish(staging, output, rows):
    files = [str(f) for f in Path(staging).glob("train-*.tfrecord")]
    examples = sum(1 for _ in tf.data.TFRecordDataset(files))
    rejects = len((Path(staging) / "rejects.tsv").read_text().splitlines())
    if examples + rejects != rows:
        raise ValueError(f"{examples + rejects} of {rows} rows are there")
    os.rename(staging, output)
    return examples, rejects
""",
            "raise an error that gives the three numbers",
        ),
        # Stripped before it is split: one of an empty list
        Wrong(
            r"""
def publish(staging, output, rows):
    files = [str(f) for f in Path(staging).glob("train-*.tfrecord")]
    examples = sum(1 for _ in tf.data.TFRecordDataset(files))
    rejects = len((Path(staging) / "rejects.tsv").read_text().strip().split("\n"))
    if examples + rejects != rows:
        raise ValueError(f"{examples} + {rejects} != {rows}")
    os.rename(staging, output)
    return examples, rejects
""",
            "examples and an empty rejects.tsv make",
        ),
        # All records of the folder, eval too
        Wrong(
            r"""
def publish(staging, output, rows):
    files = [str(f) for f in Path(staging).glob("*")if f.suffix == ".tfrecord"]
    examples = sum(1 for _ in tf.data.TFRecordDataset(files))
    rejects = len((Path(staging) / "rejects.tsv").read_text().splitlines())
    if examples + rejects != rows:
        raise ValueError(f"{examples} + {rejects} != {rows}")
    os.rename(staging, output)
    return examples, rejects
""",
            "for 12 rows (raise an error",
        ),
    ],
    "5g": [
        # The number instead of its name
        Wrong(
            """
def parse(record):
    features = tf.io.parse_single_example(record, {"image/encoded": tf.io.FixedLenFeature([], tf.string), "image/class/label": tf.io.FixedLenFeature([], tf.int64)})
    image = tf.io.decode_jpeg(features["image/encoded"], channels=3)
    image = tf.image.resize(image, [96, 96])
    return tf.cast(tf.round(image), tf.uint8), tf.cast(features["image/class/label"], tf.int32) - 1
""",
            "take SIZE, not its value",
        ),
        # Cuts from what is larger
        Wrong(
            """
def parse(record):
    features = tf.io.parse_single_example(record, {"image/encoded": tf.io.FixedLenFeature([], tf.string), "image/class/label": tf.io.FixedLenFeature([], tf.int64)})
    image = tf.io.decode_jpeg(features["image/encoded"], channels=3)
    image = tf.image.resize(image[:SIZE], [SIZE, SIZE])
    return tf.cast(tf.round(image), tf.uint8), tf.cast(features["image/class/label"], tf.int32) - 1
""",
            "the whole of it squeezed into 24 x 24",
        ),
        # Augments while it parses
        Wrong(
            """
def parse(record):
    features = tf.io.parse_single_example(record, {"image/encoded": tf.io.FixedLenFeature([], tf.string), "image/class/label": tf.io.FixedLenFeature([], tf.int64)})
    image = tf.io.decode_jpeg(features["image/encoded"], channels=3)
    image = tf.image.resize(tf.image.random_flip_left_right(image), [SIZE, SIZE])
    return tf.cast(tf.round(image), tf.uint8), tf.cast(features["image/class/label"], tf.int32) - 1
""",
            "another picture each time",
        ),
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
        # Label from 1
        Wrong(
            r"""
def parse(record):
    e = tf.io.parse_single_example(record, {"image/encoded": tf.io.FixedLenFeature([], tf.string), "image/class/label": tf.io.FixedLenFeature([], tf.int64)})
    image = tf.image.resize(tf.io.decode_jpeg(e["image/encoded"], channels=3), [SIZE, SIZE])
    return tf.cast(image, tf.uint8), tf.cast(e["image/class/label"], tf.int32)
""",
            "counted from 1 (from 0 is asked for)",
        ),
        # Label int64
        Wrong(
            r"""
def parse(record):
    e = tf.io.parse_single_example(record, {"image/encoded": tf.io.FixedLenFeature([], tf.string), "image/class/label": tf.io.FixedLenFeature([], tf.int64)})
    image = tf.image.resize(tf.io.decode_jpeg(e["image/encoded"], channels=3), [SIZE, SIZE])
    return tf.cast(image, tf.uint8), e["image/class/label"] - 1
""",
            "the type of the class: expected 'int32'",
        ),
        # FixedLenFeature of int32
        Wrong(
            r"""
def parse(record):
    e = tf.io.parse_single_example(record, {"image/encoded": tf.io.FixedLenFeature([], tf.string), "image/class/label": tf.io.FixedLenFeature([], tf.int32)})
    image = tf.image.resize(tf.io.decode_jpeg(e["image/encoded"], channels=3), [SIZE, SIZE])
    return tf.cast(image, tf.uint8), e["image/class/label"] - 1
""",
            "Your code raised TypeError: Value passed to parameter",
        ),
        # Float picture
        Wrong(
            r"""
def parse(record):
    e = tf.io.parse_single_example(record, {"image/encoded": tf.io.FixedLenFeature([], tf.string), "image/class/label": tf.io.FixedLenFeature([], tf.int64)})
    image = tf.image.resize(tf.io.decode_jpeg(e["image/encoded"], channels=3), [SIZE, SIZE])
    return image, tf.cast(e["image/class/label"], tf.int32) - 1
""",
            "expected ['uint8', [96, 96, 3]], yours gives ['float32'",
        ),
        # Crops to a square before
        Wrong(
            r"""
def parse(record):
    e = tf.io.parse_single_example(record, {"image/encoded": tf.io.FixedLenFeature([], tf.string), "image/class/label": tf.io.FixedLenFeature([], tf.int64)})
    image = tf.io.decode_jpeg(e["image/encoded"], channels=3)
    side = tf.minimum(tf.shape(image)[0], tf.shape(image)[1])
    image = tf.image.resize(tf.image.resize_with_crop_or_pad(image, side, side), [SIZE, SIZE])
    return tf.cast(image, tf.uint8), tf.cast(e["image/class/label"], tf.int32) - 1
""",
            "the whole of it squeezed into",
        ),
        # Central crop before
        Wrong(
            r"""
def parse(record):
    e = tf.io.parse_single_example(record, {"image/encoded": tf.io.FixedLenFeature([], tf.string), "image/class/label": tf.io.FixedLenFeature([], tf.int64)})
    image = tf.image.central_crop(tf.io.decode_jpeg(e["image/encoded"], channels=3), 0.8)
    return tf.cast(tf.image.resize(image, [SIZE, SIZE]), tf.uint8), tf.cast(e["image/class/label"], tf.int32) - 1
""",
            "the whole of it squeezed into",
        ),
        # Wrong size
        Wrong(
            r"""
def parse(record):
    e = tf.io.parse_single_example(record, {"image/encoded": tf.io.FixedLenFeature([], tf.string), "image/class/label": tf.io.FixedLenFeature([], tf.int64)})
    image = tf.image.resize(tf.io.decode_jpeg(e["image/encoded"], channels=3), [224, 224])
    return tf.cast(image, tf.uint8), tf.cast(e["image/class/label"], tf.int32) - 1
""",
            "the picture's type and static shape",
        ),
    ],
    "5h": [
        # Every piece as large as the buffer
        Wrong(
            r"""
import math
def bucket_seconds(files, file_bytes, buffer_size, streams, latency=0.03, bandwidth=50e6):
    requests = math.ceil(file_bytes / buffer_size)
    return math.ceil(files / streams) * requests * (latency + buffer_size / bandwidth)
""",
            "The last piece has 200 bytes",
        ),
        # Integers alone
        Right(
            r"""
def bucket_seconds(files, file_bytes, buffer_size, streams, latency=0.03, bandwidth=50e6):
    most = -(-files // streams)
    return most * (-(-file_bytes // buffer_size) * latency + file_bytes / bandwidth)
"""
        ),
        # Stream by stream
        Right(
            r"""
import math
def bucket_seconds(files, file_bytes, buffer_size, streams, latency=0.03, bandwidth=50e6):
    shares = [len(range(stream, files, streams)) for stream in range(streams)]
    each = math.ceil(file_bytes / buffer_size) * latency + file_bytes / bandwidth
    return max(share * each for share in shares)
"""
        ),
        # The files of a stream as one long file
        Wrong(
            """
def bucket_seconds(files, file_bytes, buffer_size, streams, latency=0.03, bandwidth=50e6):
    in_a_row = math.ceil(files / streams) * file_bytes
    return math.ceil(in_a_row / buffer_size) * latency + in_a_row / bandwidth
""",
            "no request reads from two files",
        ),
    ],
}
