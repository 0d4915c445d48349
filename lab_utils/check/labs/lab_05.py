"""The checks of lab 05, TFRecords with Apache Beam."""

import contextlib
import itertools
import logging
import tempfile
from collections.abc import Callable, Iterator
from numbers import Integral
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

from lab_utils.check.labs.decisions import pairs
from lab_utils.check.labs.pictures import picture
from lab_utils.check.outcome import Wrong
from lab_utils.check.same import show
from lab_utils.check.todos import Cases, Slip, todo
from lab_utils.check.tools import a, as_wrong, expect, other_names, reason, same
from lab_utils.common.figures import counted, scaled
from lab_utils.convert.images import to_rgb_jpeg
from lab_utils.convert.logs import quiet
from lab_utils.convert.plain_beam import beam
from lab_utils.convert.records import encode_example
from lab_utils.estimator import tf

# isort: split
from apache_beam.runners.direct.direct_runner import SwitchingDirectRunner
from apache_beam.runners.portability.fn_api_runner import FnApiRunner

_CORNERS = ("top left", "top right", "bottom left", "bottom right")
_LABELS = "tulips\noxeye daisy\nRosa\n"
_GOOD = {
    "IMG 1.JPG,oxeye daisy": "with the label of line 2 (number 2, as lines count from 1; strip the line break)",
    "IMG 1.JPG,Rosa": "with the label of line 3 (number 3, as lines count from 1; strip the line break)",
}
_BAD = {
    "IMG 1.JPG,rosses": "with an unknown label",
    "missing.jpg,Rosa": "with a missing file",
    "notes.jpg,Rosa": "with a file that is not a picture",
    "IMG 1.JPG": "without a label",
}
_FEATURES = (
    *("encoded", "format", "height", "width", "channels", "colorspace", "filename"),
    *("class/label", "class/text"),
)


def _write_pictures(folder: str) -> None:
    """Writes the pictures that the rows name into a folder."""
    Path(folder, "IMG 1.JPG").write_bytes(picture(40, 60))
    Path(folder, "b.jpg").write_bytes(picture(60, 40))
    Path(folder, "notes.jpg").write_text("yellow, April")


@todo(
    "5a",
    hints=(
        "What is the same for all rows, and comes from a file? Read it in setup.",
        "enumerate can start at 1. If the label has no number, what should happen before make_example is called?",
        "Which lines does `except RejectError` guard? After such an error, what does `process` yield, and under which tag?",
    ),
    why="A reject is data, so it goes out under its tag. Any exception other than RejectError is a bug, and ends the job.",
    slips=(
        Slip(
            "read_text().splitlines()",
            "read_text().split()",
            "A class name may hold spaces, as in `oxeye daisy`. Your code makes a class of each word, so all later "
            "numbers are wrong.",
        ),
        Slip(
            "make_example(data, path,",
            "make_example(data, path.lower(),",
            "The file's name should stay as it is in the list: a bucket distinguishes small and capital letters.",
        ),
        Slip(
            "read_row(line,",
            "read_row(line.lower(),",
            "The row should be read as it is: buckets and labels distinguish small and capital letters.",
        ),
    ),
)
def dofn(ToExample: type) -> Cases:
    """An example or a reject for each row; the table of labels is made once."""
    early = (
        "__init__ reads the labels file, but it runs where the pipeline is built. The workers, which may be other "
        "machines, get a pickled copy of the object. Read the file in setup."
    )
    again = "process reads the labels file again for every row: read it once, in setup."
    with tempfile.TemporaryDirectory() as folder:
        labels_file = Path(folder, "labels.txt")
        _write_pictures(folder)
        with as_wrong("labels.txt", early, (FileNotFoundError,)):
            to_example = ToExample(folder, labels_file)
        labels_file.write_text(_LABELS)
        to_example.setup()
        labels_file.unlink()
        with as_wrong("labels.txt", again, (FileNotFoundError,)):
            for line, label in (_GOOD | _BAD).items():
                yield f"For a row {label}, {line!r}, process yields", _outputs(to_example, line)
    for bug in (_Bug("a bug"), OSError("a bug")):
        failure = mock.Mock(side_effect=bug)
        row = mock.Mock(return_value=("b.jpg", "Rosa", b""))
        with other_names(ToExample.process, make_example=failure, read_row=row):
            outputs = _outputs(to_example, "b.jpg,Rosa")
        became = ", ".join(map(str, outputs)) if isinstance(outputs, list) else outputs
        expect(
            str(outputs).startswith(type(bug).__name__),
            f"A bug in make_example (an exception other than RejectError) becomes {became}: a whole data set could become "
            "rejects without an error. Catch only RejectError. (If you catch the KeyError of an unknown label, put nothing "
            "but the look-up into that try block.)",
        )
    return (
        "Every row becomes an example or a reject, and each worker makes the table of labels once."
    )


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
        text = f"{type(error).__name__}: {error}. One such row would end the whole job"
        return f"{text}; it should be a reject" if line in _BAD else f"{text}; it is a good row"
    return [_summary(output, line) for output in outputs] or "nothing: the row would be lost without a trace"  # fmt: skip


def _summary(output: Any, line: str) -> Any:
    """An example as its class and file, a reject as its tag, its row and whether it has a reason."""
    if isinstance(output, bytes):
        feature = tf.train.Example.FromString(output).features.feature
        names = {f"image/{name}" for name in _FEATURES}
        if lacking := sorted(names - set(feature)):
            return f"an example without the features {', '.join(lacking)}, which the ImageNet readers expect"
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


@todo(
    "5b",
    hints=(
        "A pipeline is a context manager: it runs where its with block ends. "
        "What does `pipeline | transform` give, and what do you join the next transform to?",
        "help(beam.ParDo.with_outputs): how do you name the main output, and how do you get one output of several?",
        "help(beam.io.WriteToTFRecord): file_name_suffix, num_shards. help(beam.io.WriteToText): which "
        "shard_name_template gives a file of exactly the name that you state?",
        'A reject is a pair, and WriteToText writes lines. What does "\\t".join do to a pair of strings?',
    ),
    why="Each output of the DoFn has its own sink. Nothing runs before the end of the with block.",
)
def pipeline(convert: Callable) -> str:
    """Every row in exactly one place: a record that a reader can read, or a line with its reason."""
    good = ["blüte 1.jpg,Rosa", "a.jpg,tulips", "B.JPG,oxeye daisy", "a.jpg,tulips", "c.jpg,tulips"]
    bad = ["a.jpg,rosses", "a.jpg", "a.jpg"]
    with tempfile.TemporaryDirectory() as folder:
        rows = Path(folder, "the rows.csv")
        rows.write_text("\n".join([*bad, *good]) + "\n", encoding="utf-8")
        for shards in (3, 1):
            output = Path(folder, f"out {shards}")
            output.mkdir()
            with _outputs_asked_for():
                with _own_runner(), quiet(logging.CRITICAL):
                    convert(str(rows), _Marked(), str(output), shards)
                _expect_records(output, shards, [_Marked.example(row) for row in good])
                _expect_rejects(output, [f"{row}\t{_Marked.reason(row)}" for row in bad])
    return "Every row is in exactly one place: a record in one of the shards, or a line with its reason."


class _Marked(beam.DoFn):
    """What the pipeline of 5b is tried with: examples and rejects by which a row is recognised."""

    @staticmethod
    def example(row: str) -> bytes:
        """An example that holds the row."""
        example = tf.train.Example()
        example.features.feature["image/filename"].bytes_list.value.append(row.encode())
        return example.SerializeToString()

    @staticmethod
    def reason(row: str) -> str:
        """Why a row is rejected."""
        return f"the reason of {len(row)} letters"

    def process(self, line: str) -> Iterator[Any]:
        """Yields an example for a row whose label is a class, else a reject."""
        if line.partition(",")[2] in _LABELS.splitlines():
            yield self.example(line)
        else:
            yield beam.pvalue.TaggedOutput("rejects", (line, self.reason(line)))


@contextlib.contextmanager
def _outputs_asked_for() -> Iterator[None]:
    """Context manager: what fails after a ParDo without with_outputs is told with that reason."""
    made, asked = [], []
    make, ask = beam.ParDo.__init__, beam.ParDo.with_outputs

    def noted_make(self: beam.ParDo, fn: Any, *arguments: Any, **options: Any) -> None:
        made.append(isinstance(fn, _Marked))
        make(self, fn, *arguments, **options)

    def noted_ask(self: beam.ParDo, *arguments: Any, **options: Any) -> Any:
        asked.append(arguments)
        return ask(self, *arguments, **options)

    with (
        mock.patch.object(beam.ParDo, "__init__", noted_make),
        mock.patch.object(beam.ParDo, "with_outputs", noted_ask),
    ):
        try:
            yield
        except NotImplementedError:
            raise
        except Exception as error:
            if asked or not any(made):
                raise
            message = (
                "beam.ParDo(to_example) has one output, the examples: results with a tag are dropped without a message. "
                "with_outputs gives you the other output, too."
            )
            then = str(error) if isinstance(error, Wrong) else reason(error)
            raise Wrong(f"{message}\nThen: {then}") from None


def _own_runner() -> contextlib.AbstractContextManager:
    """Context manager: Beam's default runner is the FnApiRunner, which needs nothing from the network."""
    return mock.patch.object(
        SwitchingDirectRunner,
        "run_pipeline",
        lambda _, pipeline, options: FnApiRunner().run_pipeline(pipeline, options),
    )


def _names(output: Path) -> str:
    """The files of a folder in a message."""
    names = sorted(path.name for path in output.rglob("*") if path.is_file())
    return ", ".join(names[:6]) + (" ..." if len(names) > 6 else "") or "nothing"


def _expect_records(output: Path, shards: int, examples: list[bytes]) -> None:
    """Raises Wrong unless `output` holds these examples in so many TFRecord files, in any order."""
    written = _names(output)
    expect(
        written != "nothing",
        "Nothing was written: has the pipeline run? It runs at the end of its with block, or with run().",
    )
    expected = [f"train-{n:05d}-of-{shards:05d}.tfrecord" for n in range(shards)]
    files = sorted(path.name for path in output.glob("train*"))
    expect(
        files == expected,
        f"With shards={shards} the files of examples should be {', '.join(expected)}; yours wrote {written}.",
    )
    try:
        records = list(
            tf.data.TFRecordDataset([str(output / name) for name in files]).as_numpy_iterator()
        )
    except tf.errors.DataLossError as error:
        message = f"tf.data.TFRecordDataset cannot read the files of examples. {reason(error)}"
        raise Wrong(
            f"{message.split(' [Op:')[0]}. WriteToTFRecord without compression writes files that it can read."
        ) from None
    expect(bool(records), "No example was written: does ParDo run the DoFn `to_example`?")
    odd = [record for record in records if record not in examples]
    expect(
        not odd, f"A record is not one of the examples that the DoFn yields, but {show(odd[:1])}."
    )
    label = "The number of examples written for each good row (the list has one row twice)"
    counts = {row: records.count(row) for row in examples}
    same(list(counts.values()), [examples.count(row) for row in counts], label)


def _expect_rejects(output: Path, lines: list[str]) -> None:
    """Raises Wrong unless `output` holds these lines in rejects.tsv, in any order."""
    file = output / "rejects.tsv"
    expect(
        file.is_file(),
        f"The rejects should be in one file named rejects.tsv; yours wrote {_names(output)}.",
    )
    written = file.read_text(encoding="utf-8").splitlines()
    expect(
        all(line.count("\t") == 1 for line in written),
        f"A line of rejects.tsv should be the row, a tab and the reason; yours has {written[:1]}.",
    )
    same(
        sorted(written), sorted(lines), "The lines of rejects.tsv (the list has one bad row twice)"
    )


@todo(
    "5c",
    hints=(
        "FixedLenFeature states the shape and type of a feature; integers are int64 in a record.",
        "channels=3 fixes the last axis; tf.image.resize fixes the other two and returns float32.",
        "Which types does the TODO ask for, and from which number does it count classes?",
        "What does parse_single_example do with a record that lacks a feature? FixedLenFeature has an argument for "
        "that. Which class would label 0 become, and does the loss accept that class?",
    ),
    why="Every picture has the same shape and type, so all batches have the same shape. A missing label is read as 0, "
    "and label 0 becomes class 0 with weight 0: class -1 would make the loss NaN on a TPU, and NaN times 0 is NaN.",
    slips=(
        Slip(
            "[SIZE, SIZE])",
            "[SIZE, SIZE]) / 255",
            "The picture comes out black: uint8 goes from 0 to 255, so do not scale it before the cast.",
        ),
        Slip(
            "tf.image.resize(image,",
            "tf.image.resize(tf.transpose(image, [1, 0, 2]),",
            "The picture's rows have become columns: its height should stay the first axis.",
        ),
        Slip(
            "tf.image.resize(image,",
            "tf.image.resize(image[..., ::-1],",
            "Red and blue are swapped: decode_jpeg gives red, green, blue, and this order should stay.",
        ),
        Slip(
            "tf.image.resize(image, [SIZE, SIZE])",
            "tf.image.resize_with_pad(image, SIZE, SIZE)",
            "There are black bars at two edges: the picture was padded. Squeeze it into the square instead.",
        ),
        Slip(
            "tf.image.resize(image, [SIZE, SIZE])",
            "tf.image.resize_with_crop_or_pad(image, SIZE, SIZE)",
            "The picture is not resized, but cut where it is larger than SIZE, and padded with black where it "
            "is smaller.",
        ),
    ),
)
def reading(parse: Callable) -> Cases:
    """From a record to uint8 of a static shape, a class from 0, and a weight."""
    records = tf.data.Dataset.from_tensors(_record(3))
    for side, edge in ((96, 12), (24, 3)):  # larger than the picture, and smaller: shows a crop
        with other_names(parse, SIZE=side):
            dataset = records.map(parse)
        spec = dataset.element_spec
        three = isinstance(spec, tuple) and len(spec) == 3
        expect(three, "parse should return three things: the picture, its class and its weight.")
        where = f"With SIZE = {side} (use SIZE, not its value)"
        yield f"{where}, the picture's type and static shape", [spec[0].dtype.name, spec[0].shape]
        yield f"{where}, the type of the class", spec[1].dtype.name
        yield f"{where}, the weight's type and static shape", [spec[2].dtype.name, spec[2].shape]
        (image, number, _), *others = dataset.repeat(16).as_numpy_iterator()
        expect(
            all(np.array_equal(other, image) for other, *_ in others),
            "The same record gives a different picture each time: random crops and flips belong in the transform for training.",
        )
        yield f"{where}, the class, counted from 0, of a record of class 3, counted from 1", number
        square = f"the whole of it squeezed into {side} x {side}, as red, green, blue (0 to 1)"
        whole = f"of a picture whose red grows to the right and green downwards, {square}"
        ends = (slice(edge), slice(-edge, None))
        for corner, (rows, columns) in zip(_CORNERS, itertools.product(ends, ends), strict=True):
            yield f"The {corner} {whole}", _colour(image[rows, columns]), 0.06
        middle = slice(side // 3, -(side // 3))
        yield f"The middle {whole}", _colour(image[middle, middle]), 0.06
    yield "The class and the weight of a record of class 1", _class_and_weight(parse, 1)
    for label, words in ((0, "with the label 0"), (None, "without image/class/label")):
        number, weight = _class_and_weight(parse, label)
        expect(
            0 <= number < 5,  # the kinds of flowers
            f"A record {words} becomes class {number}, which the loss cannot use: on a TPU its loss is NaN, and NaN "
            "times a weight of 0 is NaN. Give it a class that exists.",
        )
        yield f"The weight of a record {words}", weight
    return "All pictures have the same static shape, classes count from 0, and pictures without a class do not count."


def _record(label: int | None) -> bytes:
    """A record of a picture of that class, counted from 1; None for one without the feature."""
    record = encode_example(to_rgb_jpeg(picture(40, 60)), b"IMG 1.JPG", label or 0, "Rosa")
    example = tf.train.Example.FromString(record)
    if label is None:
        del example.features.feature["image/class/label"]
    return example.SerializeToString()


def _class_and_weight(parse: Callable, label: int | None) -> list[float]:
    """What `parse` makes of such a record, besides the picture."""
    lacking = (
        "A record without image/class/label ends the job: FixedLenFeature raises an error for a missing feature, "
        "unless it has a default_value."
    )
    records = tf.data.Dataset.from_tensors(_record(label)).map(parse)
    with as_wrong(
        "is required but could not be found|Key: ", lacking, (tf.errors.InvalidArgumentError,)
    ):
        (_, number, weight) = next(records.as_numpy_iterator())
    return [int(number), float(weight)]


def _colour(pixels: np.ndarray) -> np.ndarray:
    """The mean colour of a part of a picture, from 0 to 1."""
    mean = (
        pixels.mean(axis=(0, 1)) if pixels.size else np.zeros(3)
    )  # it may be smaller than asked for
    return (mean / 255).astype(np.float32)


_SETS = {  # megabytes, hosts, the rules that may be said to set the number
    "ImageNet": (148_000, 64, "AB"),  # B makes it a multiple of 64, and A allows several of them
    "x-rays": (3_000, 32, "B"),
    "sounds": (2_000, 128, "C"),
}
_SMALLEST = 10  # MB, of rule C


@todo(
    "5d",
    hints=(
        "For each set: how many files does each of the three rules ask for? Can all of them be met?",
        "If 3 GB are split into files of 100 MB, how many of 32 hosts get a file?",
        "If 2 GB are split into two files for each of 128 hosts, how large is a file? Which part of rule B is still "
        "possible?",
    ),
    why="All hosts get equally many files, and each file is large enough that opening it costs little.",
)
def deciding(decisions: dict) -> str:
    """A number of files that the hosts can share, of a size that is worth opening, and the rule behind it."""
    for name, files, letter in pairs(decisions, _SETS, "files"):
        megabytes, hosts, rules = _SETS[name]
        whole = isinstance(files, Integral) and files > 0
        expect(whole, f"{name}: {files!r} is not a number of files.")
        size = f"{name}: {counted(files, 'file')} of {scaled(1e6 * megabytes / files, 'B')}"
        expect(
            files % hosts == 0,
            f"{size} cannot be shared evenly by {hosts} hosts: in every pass some hosts wait for the others.",
        )
        expect(
            megabytes / files >= _SMALLEST,
            f"{size} are so small that opening them costs more than reading.",
        )
        message = f"{size}: each host reads a single file. Give it several to read at once."
        possible = megabytes / (2 * hosts) >= _SMALLEST
        expect(not possible or files >= 2 * hosts, message)
        if "A" in rules and not 100 <= megabytes / files <= 200:
            raise Wrong(f"{size}: files of 100 to 200 MB are possible here.")
        expect(
            str(letter).strip().upper() in list(rules),
            f"{name}: rule {letter} does not set the number. Which rule cannot be met, and which one sets the number?",
        )
    return "Each host has the same number of files, and each file is large enough to read fast."
