"""The job: TODO 5c, a row of the list, 5d, the runner, 5e, the steps, and 5f, publishing."""

import re
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

from lab_utils.check.labs.lab_05.records import picture
from lab_utils.check.todos import Cases, todo
from lab_utils.check.tools import a, expect, other_names, returns, same, translated
from lab_utils.convert.logs import quiet
from lab_utils.convert.plain_beam import beam
from lab_utils.estimator import tf

# isort: split
from apache_beam.options.pipeline_options import DirectOptions, PipelineOptions


@todo(
    "5c",
    hints=(
        "What is the same for all rows, and needs a file? It belongs into setup.",
        "enumerate can start at 1. What should happen before make_example, if the label has no number?",
        "Around which lines does the `except Reject` go? What comes out of process then, under which tag?",
    ),
    why="A reject is data and goes out under its tag; any other exception is a bug and ends the job.",
)
def dofn(ToExample: type) -> Cases:
    """An example or a reject for each row; the table of labels is made once."""
    with tempfile.TemporaryDirectory() as folder:
        labels_file = Path(folder, "labels.txt")
        Path(folder, "a.jpg").write_bytes(picture())
        Path(folder, "png.jpg").write_bytes(picture("PNG"))
        with translated(
            "labels.txt",
            "__init__ reads the labels file. It runs where the pipeline is built; the workers, which may be other "
            "machines, get a pickled copy. Read it in setup.",
            (FileNotFoundError,),
        ):
            made = ToExample(folder, labels_file)
        labels_file.write_text("tulips\ndaisy\nroses\n")
        made.setup()
        labels_file.unlink()
        again = "process reads the labels file again, for every row: do so in setup."
        with translated("labels.txt", again, (FileNotFoundError,)):
            for line, told in (
                (
                    "a.jpg,daisy",
                    "with the label of line 2 (the first is number 1; each ends in a line break)",
                ),
                (
                    "a.jpg,roses",
                    "with the label of line 3 (the first is number 1; each ends in a line break)",
                ),
                ("a.jpg,rosses", "with an unknown label"),
                ("missing.jpg,roses", "with a missing file"),
                ("png.jpg,roses", "with a PNG"),
                ("a.jpg", "without a label"),
            ):
                yield f"For a row {told}, {line!r}, process yields", _outputs(made, line)
    for bug in (_Bug("a bug"), OSError("a bug")):
        broken = mock.Mock(side_effect=bug)
        with other_names(
            ToExample.process,
            make_example=broken,
            read_row=lambda *_, **__: ("a.jpg", "roses", b""),
        ):
            found = _outputs(made, "a.jpg,roses")
        expect(
            str(found).startswith(type(bug).__name__),
            f"A bug in make_example, which raises another exception than Reject, becomes {found}: a whole data set "
            "could go to the rejects unseen. Catch Reject alone, and keep other excepts to the line that they are for.",
        )
    return (
        "Every row becomes an example or a reject, and the table of labels is made once a worker."
    )


class _Bug(KeyError, ValueError, TypeError, RuntimeError):
    """What a bug of ours may raise."""


def _outputs(made: beam.DoFn, line: str) -> Any:
    """What process yields for a row, with the essentials of examples and rejects."""
    try:
        outputs = list(made.process(line) or [])
    except NotImplementedError:
        raise
    except Exception as error:
        if "labels.txt" in str(error):
            raise
        return f"{type(error).__name__}: {error}. One such row would end the whole job; it should be a reject"
    return [
        _told(each, line) for each in outputs
    ] or "nothing: the row would be lost without a trace"


def _told(output: Any, line: str) -> Any:
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
    pair = isinstance(value, tuple | list) and [type(each) for each in value] == [str, str]
    if not pair or value[0] != line or not value[1]:
        return f"a reject that is not the pair (line, reason), both text: {value!r}"
    return f'a reject under the tag "{output.tag}"'


@todo(
    "5d",
    hints=(
        "PipelineOptions takes a list of flags, and beam.Pipeline takes the options.",
        "Two flags go into the list only where workers is above 1; the number goes in with an f-string.",
    ),
    why="A runner that is named behaves the same in a script and in a notebook; one worker needs no other process.",
    slips={
        ("mode=multi_processing", "mode=multi_threading"): "multi_threading makes threads of one "
        "process, which Python runs one at a time.",
        ("if workers > 1:", "if True:"): "One worker should stay in this process: starting another "
        "costs seconds and wins nothing.",
    },
)
def runner(make_pipeline: Callable) -> Cases:
    """FnApiRunner by name, and as many processes as are asked for."""
    with quiet(), mock.patch.object(sys, "argv", ["notebook", "--direct_num_workers=7"]):
        for workers in (1, 2, 3):
            made = make_pipeline(workers)
            returns(made, beam.Pipeline, "make_pipeline", "a beam.Pipeline")
            told = "The runner (one that is not named may choose, and download, Prism: name FnApiRunner)"
            yield f"{told} of a pipeline with {workers} workers", type(made.runner).__name__
            direct = made.options.view_as(DirectOptions)  # which Beam reads late
            expect(
                direct.direct_num_workers != 7,
                "PipelineOptions takes the flags of this process, those of the notebook's kernel: give it a list.",
            )
            flags = [direct.direct_running_mode, direct.direct_num_workers]
            yield (
                f"The mode (--direct_running_mode) and number (--direct_num_workers) of {workers} workers",
                flags,
            )
    return "FnApiRunner, in one process or in several."


class _Halves(beam.DoFn):
    """Stands for ToExample: odd numbers are examples, even ones rejects."""

    def process(self, line: str):
        if int(line) % 2:
            yield line.encode()
        else:
            yield beam.pvalue.TaggedOutput("rejects", (line, "even"))


@todo(
    "5e",
    hints=(
        "ReadFromText wants a text, not a Path. What does ParDo with two outputs return?",
        "Follow .examples to WriteToTFRecord: which prefix, which suffix, how many files?",
        "A reject is a pair: what makes one line with a tab of it? shard_name_template says how the file is named.",
    ),
    why="Each row takes one of two ways, and both end in files, so nothing is lost without a trace.",
)
def steps(add_steps: Callable) -> str:
    """Lines in; TFRecord files and a list of rejects out, every line in one of them."""
    lines = [*map(str, range(11)), "3", "4"]  # a list may name a row twice
    with tempfile.TemporaryDirectory() as folder, quiet():
        rows, output = Path(folder, "rows.csv"), Path(folder, "output")
        rows.write_text("\n".join(lines) + "\n")
        pipeline = beam.Pipeline(options=PipelineOptions(["--runner=FnApiRunner"]))
        add_steps(pipeline, rows, _Halves(), output, 3)
        expect(
            not output.exists(),
            "add_steps has run the pipeline, and its caller runs it again: only add the steps, and leave run() out.",
        )
        pipeline.run().wait_until_finish()
        written = sorted(path.name for path in output.glob("*"))
        wanted = ["rejects.tsv", *(f"train-0000{shard}-of-00003.tfrecord" for shard in range(3))]
        same(
            [name for name in written if name in wanted or name.startswith("train")],
            wanted,
            "The folder, asked for 3 files of examples, train-*.tfrecord, and rejects.tsv",
        )
        not_records = "The examples are not written as TFRecord files: WriteToTFRecord."
        with translated("", not_records, (tf.errors.DataLossError,)):
            dataset = tf.data.TFRecordDataset([str(output / name) for name in wanted[1:]])
            examples = sorted(record.decode() for record in dataset.as_numpy_iterator())
        rejects = (output / "rejects.tsv").read_text().splitlines()
    good, bad = ([line for line in lines if int(line) % 2 == odd] for odd in (1, 0))
    rows = f"for the rows {', '.join(lines)} (None may be lost: no header is skipped, and a row that stands twice"
    same(examples, sorted(good), f"The records of the TFRecord files, {rows} is two examples)")
    told = f"The lines of rejects.tsv, each the row, a tab and the reason, {rows} is two rejects)"
    same(sorted(rejects), sorted(f"{line}\teven" for line in bad), told)
    return "Every row ends in a TFRecord file or in rejects.tsv."


@todo(
    "5f",
    hints=(
        "How do you count the records of several files? A TFRecordDataset can be iterated over.",
        "Compare before anything moves. Which three numbers does a colleague need in the error?",
        "What moves a folder in one step, and refuses where there is one already?",
    ),
    why="A folder that is renamed when it is complete is never half there.",
)
def publishing(publish: Callable) -> Cases:
    """A whole set is renamed; anything else raises and leaves all as it was."""
    told = "7 examples and 3 rejects"
    for rows in (12, 8):
        label = f"{told} for {rows} rows (raise an error that gives the three numbers, and leave all as it is)"
        yield label, _published(publish, rows)
    label = (
        f"{told} make 10 rows (return both counts, and rename: half of a copy looks like a result)"
    )
    yield label, _published(publish, 10)
    label = "7 examples and an empty rejects.tsv make 7 rows"
    yield label, _published(publish, 7, rejects=0)
    label = "An earlier result in output (it is not deleted, and staging not moved into it: refuse, as os.rename does)"
    yield label, _published(publish, 10, earlier=True)
    return "Counted, complete, and renamed in one step; an earlier result is left alone."


def _published(
    publish: Callable, rows: int, rejects: int = 3, earlier: bool = False
) -> tuple[Any, str]:
    """What publish returned or raised for 7 examples, and where the files are now."""
    with tempfile.TemporaryDirectory() as folder:
        staging, output = Path(folder, "set.part"), Path(folder, "set")
        staging.mkdir()
        for name, count in (("train-0", 4), ("train-1", 3), ("eval-0", 2)):
            with tf.io.TFRecordWriter(str(staging / f"{name}.tfrecord")) as writer:
                for _ in range(count):
                    writer.write(b"record")
        (staging / "rejects.tsv").write_text("row\treason\n" * rejects)
        if earlier:
            output.mkdir()
            (output / "manifest.json").write_text("an earlier result")
        try:
            found = publish(staging, output, rows)
        except NotImplementedError:
            raise
        except Exception as error:
            found = f"{type(error).__name__}: {error}"
            if earlier or {"7", str(rejects), str(rows)} <= set(re.findall(r"\d+", str(error))):
                found = "an error"
        files = {
            "the files in staging": staging / "rejects.tsv",
            "the files in output": output / "rejects.tsv",
            "the earlier result": output / "manifest.json",
        }
        return found, ", ".join(name for name, path in files.items() if path.exists())
