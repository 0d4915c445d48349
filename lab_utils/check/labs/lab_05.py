"""The checks of lab 05, TFRecords with Apache Beam."""

import itertools
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest import mock

import numpy as np

from lab_utils.check.labs.decisions import pairs
from lab_utils.check.labs.pictures import picture
from lab_utils.check.labs.treatment import enter_patient
from lab_utils.check.outcome import Wrong
from lab_utils.check.todos import Cases, Slip, todo
from lab_utils.check.tools import a, as_wrong, expect, other_names, same
from lab_utils.convert.logs import quiet
from lab_utils.convert.plain_beam import beam
from lab_utils.estimator import tf

_CORNERS = ("top left", "top right", "bottom left", "bottom right")
_ROWS = {
    "a.jpg,daisy": "with the label of line 2 (number 2, as lines count from 1; strip the line break)",
    "a.jpg,roses": "with the label of line 3 (number 3, as lines count from 1; strip the line break)",
    "a.jpg,rosses": "with an unknown label",
    "missing.jpg,roses": "with a missing file",
    "png.jpg,roses": "with a PNG",
    "a.jpg": "without a label",
}


@todo(
    "5a",
    hints=(
        "What is the same for all rows, and comes from a file? Read it in setup.",
        "enumerate can start at 1. What should happen before make_example, if the label has no number?",
        "Which lines does `except Reject` guard? What does process yield then, under which tag?",
    ),
    why="A reject is data and goes out under its tag; any other exception is a bug and ends the job.",
)
def dofn(ToExample: type) -> Cases:
    """An example or a reject for each row; the table of labels is made once."""
    early = (
        "__init__ reads the labels file. It runs where the pipeline is built; the workers, which may be other "
        "machines, get a pickled copy. Read it in setup."
    )
    again = "process reads the labels file again for every row: read it once, in setup."
    with tempfile.TemporaryDirectory() as folder:
        labels_file = Path(folder, "labels.txt")
        Path(folder, "a.jpg").write_bytes(picture(40, 60))
        Path(folder, "png.jpg").write_bytes(picture(40, 60, "PNG"))
        with as_wrong("labels.txt", early, (FileNotFoundError,)):
            to_example = ToExample(folder, labels_file)
        labels_file.write_text("tulips\ndaisy\nroses\n")
        to_example.setup()
        labels_file.unlink()
        with as_wrong("labels.txt", again, (FileNotFoundError,)):
            for line, label in _ROWS.items():
                yield f"For a row {label}, {line!r}, process yields", _outputs(to_example, line)
    for bug in (_Bug("a bug"), OSError("a bug")):
        failure = mock.Mock(side_effect=bug)
        row = mock.Mock(return_value=("a.jpg", "roses", b""))
        with other_names(ToExample.process, make_example=failure, read_row=row):
            outputs = _outputs(to_example, "a.jpg,roses")
        message = (
            f"A bug in make_example, an exception other than Reject, becomes {outputs}: a whole data set could become "
            "rejects without an error. Catch Reject only, and put any other except around a single line."
        )
        expect(str(outputs).startswith(type(bug).__name__), message)
    return "Every row becomes an example or a reject, and the table of labels is made once a worker."  # fmt: skip


class _Bug(KeyError, ValueError, TypeError, RuntimeError):
    """What a bug of ours may raise."""


def _outputs(to_example: beam.DoFn, line: str) -> Any:
    """What process yields for a row, with the essentials of examples and rejects."""
    try:
        outputs = list(to_example.process(line) or [])
    except NotImplementedError:
        raise
    except Exception as error:
        if "labels.txt" in str(error):
            raise
        return f"{type(error).__name__}: {error}. One such row would end the whole job; it should be a reject"
    return [_summary(output, line) for output in outputs] or "nothing: the row would be lost without a trace"  # fmt: skip


def _summary(output: Any, line: str) -> Any:
    """An example as its class and file, a reject as its tag, its row and whether it has a reason."""
    if isinstance(output, bytes):
        feature = tf.train.Example.FromString(output).features.feature
        text, name = (
            feature[f"image/{key}"].bytes_list.value[0].decode()
            for key in ("class/text", "filename")
        )
        number = feature["image/class/label"].int64_list.value[0]
        return {"label": number, "text": text, "filename": Path(name).name}
    if not isinstance(output, beam.pvalue.TaggedOutput):
        return f"{a(output)}, not a beam.pvalue.TaggedOutput"
    value = output.value
    pair = isinstance(value, tuple | list) and [type(part) for part in value] == [str, str]
    if not pair or value[0] != line or not value[1]:
        return f"a reject that is not the pair (line, reason), both strings: {value!r}"
    return f'a reject under the tag "{output.tag}"'


def _rows_arrive(program: ModuleType) -> str:
    """Runs the colleague's job on eight rows: each must be where it belongs."""
    good, bad = ["a.jpg,daisy", "b.jpg,roses", "a.jpg,roses"], [*list(_ROWS)[2:], "b.jpg,"]
    with tempfile.TemporaryDirectory() as folder, quiet():
        for name, format in (("a.jpg", "JPEG"), ("b.jpg", "JPEG"), ("png.jpg", "PNG")):
            Path(folder, name).write_bytes(picture(40, 60, format))
        rows, labels = Path(folder, "rows.csv"), Path(folder, "labels.txt")
        rows.write_text("\n".join(good + bad) + "\n")
        labels.write_text("tulips\ndaisy\nroses\n")
        program.convert(str(rows), folder, str(labels), f"{folder}/out")
        rejects = Path(folder, "out/rejects.tsv").read_text().splitlines()
        files = sorted(map(str, Path(folder, "out").glob("train-*.tfrecord")))
        records = list(tf.data.TFRecordDataset(files).as_numpy_iterator())
    texts = []
    for record in records:
        feature = tf.train.Example.FromString(record).features.feature
        name = feature["image/filename"].bytes_list.value[0].decode()
        texts.append(f"{name} {feature['image/class/label'].int64_list.value[0]}")
    label = "The lines of rejects.tsv, up to the tab, of a list with four bad rows and one with an empty label"
    same(sorted(line.partition("\t")[0] for line in rejects), sorted(bad), label)
    expect(all(line.partition("\t")[2] for line in rejects), "A reject has lost its reason.")
    same(sorted(texts), ["a.jpg 2", "a.jpg 3", "b.jpg 3"], "The files and classes of the examples")
    return "Now every row becomes an example or a reject."


enter_patient(
    "5b",
    "rows",
    (
        "Which rows of the list are neither among the examples nor among the rejects? What do they have in common?",
        "Which line should send them to the rejects? Compare it with the lines that send the others there.",
        "After the reject, process must not go on with the same row. That takes two lines.",
    ),
    "`yield` outputs a value and goes on; `return` ends a generator, and its value is lost.",
    _rows_arrive,
)


@todo(
    "5c",
    hints=(
        "FixedLenFeature states the shape and type of a feature; integers are int64 in a record.",
        "channels=3 fixes the last axis; tf.image.resize fixes the other two and returns float32.",
        "Which types does the TODO ask for, and from which number do its classes count?",
    ),
    why="Every picture has the same shape and type, so all batches have one shape.",
    slips=(
        Slip(
            "[SIZE, SIZE])",
            "[SIZE, SIZE]) / 255",
            "The picture comes out black: uint8 goes from 0 to 255, so do not "
            "scale it before the cast.",
        ),
        Slip(
            "tf.image.resize(image,",
            "tf.image.resize(tf.transpose(image, [1, 0, 2]),",
            "The picture's rows have become columns: its height should stay the first axis.",
        ),
        Slip(
            "tf.image.resize(image,",
            "tf.image.resize(image[..., ::-1],",
            "Red and blue are swapped: decode_jpeg gives "
            "red, green, blue, and this order should stay.",
        ),
        Slip(
            "tf.image.resize(",
            "tf.image.resize_with_pad(",
            "There are black bars at the edges: the picture was "
            "padded, not squeezed into the square.",
        ),
    ),
)
def reading(parse: Callable) -> Cases:
    """From a record to uint8 of a static shape, and a class from 0."""
    example = tf.train.Example()
    feature = example.features.feature
    feature["image/encoded"].bytes_list.value.append(picture(40, 60))
    for name in ("class/label", "height", "width", "channels"):
        feature[f"image/{name}"].int64_list.value.append(3)
    for name in ("class/text", "format", "colorspace", "filename"):
        feature[f"image/{name}"].bytes_list.value.append(b"RGB")
    records = tf.data.Dataset.from_tensors(example.SerializeToString())
    for side, edge in ((96, 12), (24, 3)):  # larger than the picture, and smaller: shows a crop
        with other_names(parse, SIZE=side):
            dataset = records.map(parse)
        spec = dataset.element_spec
        pair = isinstance(spec, tuple) and len(spec) == 2
        expect(pair, "parse should return a pair: the picture and its class.")
        where = f"With SIZE = {side} (use SIZE, not its value)"
        yield f"{where}, the picture's type and static shape", [spec[0].dtype.name, spec[0].shape]
        yield f"{where}, the type of the class", spec[1].dtype.name
        (image, number), *others = dataset.repeat(16).as_numpy_iterator()
        message = "The same record gives another picture each time: random views belong in the transform for training."
        expect(all(np.array_equal(other, image) for other, _ in others), message)
        yield f"{where}, the class, counted from 0, of a record of class 3, counted from 1", number
        square = f"the whole of it squeezed into {side} x {side}, as red, green, blue (0 to 1)"
        whole = f"of a picture whose red grows to the right and green downwards, {square}"
        ends = (slice(edge), slice(-edge, None))
        for corner, (rows, columns) in zip(_CORNERS, itertools.product(ends, ends), strict=True):
            colour = (image[rows, columns].mean(axis=(0, 1)) / 255).astype(np.float32)
            yield f"The {corner} {whole}", colour, 0.06
    return "The pictures have one static shape, and the classes count from 0."


_SETS = {"ImageNet": (148_000, 64, "A"), "x-rays": (3_000, 32, "B"), "flowers": (4, 1, "C")}


@todo(
    "5d",
    hints=(
        "For each set: how many files does each of the three rules ask for? Can all of them be met?",
        "If 3 GB are split into files of 100 MB, how many of 32 hosts have a file?",
        "What does one host gain from a second file of 2 MB?",
    ),
    why="Equal shares for all hosts come first. Then a file should be large enough that opening it costs little.",
)
def deciding(decisions: dict) -> str:
    """A number of files that the hosts can share, of a size that is worth opening, and the rule behind it."""
    for name, files, letter in pairs(decisions, _SETS, "files"):
        megabytes, hosts, rule = _SETS[name]
        whole = isinstance(files, int) and files > 0
        expect(whole, f"{name}: {files!r} is not a number of files.")
        size = f"{name}: {files:,} files of {megabytes / files:,.3g} MB"
        message = f"{size} cannot be shared evenly by {hosts} hosts: in every pass some hosts wait for the others."
        expect(files % hosts == 0, message)
        message = f"{size} are so small that opening them costs more than reading."
        expect(files == 1 or megabytes / files >= 10, message)
        message = f"{size}: each host reads a single file. Give it several to read at once."
        expect(hosts == 1 or files >= 2 * hosts, message)
        if rule == "A" and not 100 <= megabytes / files <= 200:
            raise Wrong(f"{size}: files of 100 to 200 MB are possible here.")
        message = f"{name}: rule {letter} does not set the number. Which rule cannot be met, and which one sets it?"
        expect(str(letter).strip().upper() == rule, message)
    return "Each host has the same number of files, and each file is large enough to read fast."
