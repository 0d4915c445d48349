"""What learners get wrong in lab 05, and the words that they must hear."""

import re

from wrong_answers import Mutant

ANSWERS = {
    "5a": [
        Mutant("return image.height, image.width", "return image.size", "width first"),
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
            re.compile("no image at all.*returns None"),
        ),
        Mutant('raise Reject("not an image") from None', "raise", "raises UnidentifiedImageError"),
        Mutant(
            'raise Reject(f"a {image.format}, not a JPEG")', "raise Reject()", "without a reason"
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
            "integer",
        ),
        Mutant(
            '"image/encoded": bytes_feature(data)',
            '"image/encoded": bytes_feature(tf.io.decode_jpeg(data).numpy().tobytes())',
            "byte for byte",
        ),
        Mutant("bytes_feature(text.encode())", "bytes_feature(text)", "TypeError"),
    ],
    "5c": [
        Mutant("enumerate(labels, 1)", "enumerate(labels)", "number 1"),
        Mutant(".splitlines()\n        self", ".split()\n        self", "one a line"),
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
    ],
    "5d": [
        Mutant('"--runner=FnApiRunner"', '"--runner=DirectRunner"', "Prism"),
        Mutant('flags = ["--runner=FnApiRunner"]', "flags = []", "Prism"),
        Mutant('flags += ["--direct_running_mode=multi_processing", ', "flags += [", "in_memory"),
        Mutant(', f"--direct_num_workers={workers}"', "", "3 workers"),
        Mutant("mode=multi_processing", "mode=multi_threading", "threads"),
        Mutant("if workers > 1:", "if True:", "One worker"),
    ],
    "5e": [
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
    ],
    "5f": [
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
    ],
    "5g": [
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
    ],
}
