"""The job: TODO 5d, the runner, 5e, the steps, and 5f, publishing."""

import os
import re
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from unittest import mock

from lab_utils.check.outcome import Wrong
from lab_utils.check.todos import todo
from lab_utils.check.tools import a, expect
from lab_utils.convert.logs import quiet
from lab_utils.convert.plain_beam import beam
from lab_utils.estimator import tf

# isort: split
from apache_beam.options.pipeline_options import DirectOptions, PipelineOptions
from apache_beam.runners.portability.fn_api_runner import FnApiRunner


@todo(
    "5d",
    hints=(
        'PipelineOptions takes a list of flags, and beam.Pipeline takes the options.',
        'Two flags go into the list only where workers is above 1; the number goes in with an f-string.',
    ),
    why='A runner that is named behaves the same in a script and in a notebook; one worker needs no other process.',
)
def runner(make_pipeline: Callable) -> str:
    """FnApiRunner by name, and as many processes as are asked for."""
    of_this_process = ["notebook", "--direct_num_workers=7"]
    with quiet(), mock.patch.object(sys, "argv", of_this_process):
        alone, *several = (make_pipeline(workers) for workers in (1, 2, 3))
    for made in (alone, *several):
        expect(
            isinstance(made, beam.Pipeline),
            f"make_pipeline should return a beam.Pipeline; yours returns {a(made)}.",
        )
        expect(
            isinstance(made.runner, FnApiRunner),
            f"The runner is {type(made.runner).__name__}, which may choose, and download, Prism: name "
            "FnApiRunner.",
        )
    with mock.patch.object(sys, "argv", of_this_process):  # Beam reads them late
        workers_alone = alone.options.view_as(DirectOptions).direct_num_workers
    expect(
        workers_alone != 7,
        "PipelineOptions takes the flags of this process, those of the notebook's kernel: give it a list.",
    )
    for workers, made in enumerate(several, 2):
        direct = made.options.view_as(DirectOptions)
        mode = direct.direct_running_mode
        expect(
            mode != "multi_threading",
            "multi_threading makes threads of one process, which Python runs one at a time.",
        )
        expect(
            mode == "multi_processing",
            f"For {workers} workers the mode should be multi_processing; it is {mode}, one process.",
        )
        expect(
            direct.direct_num_workers == workers,
            f"Asked for {workers} workers, the pipeline has {direct.direct_num_workers} "
            "(--direct_num_workers).",
        )
    expect(
        alone.options.view_as(DirectOptions).direct_running_mode != "multi_processing",
        "One worker should stay in this process: starting another costs seconds and wins nothing.",
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
        'ReadFromText wants a text, not a Path. What does ParDo with two outputs return?',
        'Follow .examples to WriteToTFRecord: which prefix, which suffix, how many files?',
        'A reject is a pair: what makes one line with a tab of it? shard_name_template says how the file is named.',
    ),
    why='Each row takes one of two ways, and both end in files, so nothing is lost without a trace.',
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
        written = sorted(path.name for path in output.iterdir()) if output.is_dir() else []
        examples = _records([output / name for name in written if name.startswith("train")])
        rejects_file = output / "rejects.tsv"
        rejects = rejects_file.read_text().splitlines() if rejects_file.is_file() else None
    told = f"The folder holds: {', '.join(written) or 'nothing'}."
    files = [name for name in written if name.startswith("train")]
    expect(bool(files), f"There is no file train-*.tfrecord in output. {told}")
    expect(
        all(name.startswith("train-") and name.endswith(".tfrecord") for name in files),
        f"The examples should be in train-*.tfrecord. {told}",
    )
    expect(len(files) == 3, f"Asked for 3 shards, there should be 3 files of examples. {told}")
    wanted = sorted(line for line in lines if int(line) % 2)
    expect(
        set(examples) != set(wanted) or len(examples) == len(wanted),
        f"A row that stands in the list twice should be two examples: {len(wanted)} rows are good, and the "
        f"TFRecord files hold {len(examples)} records.",
    )
    expect(
        examples == wanted,
        f"Of the lines {', '.join(lines)} the odd ones are good; the TFRecord files hold {examples}.",
    )
    expect(rejects is not None, f"The rejects should be in the one file rejects.tsv. {told}")
    bad = sorted(f"{line}\teven" for line in lines if not int(line) % 2)
    expect(
        set(rejects) <= set(bad),
        "A line of rejects.tsv should be the row, a tab and the reason, '0\\teven'; there is "
        f"{next((line for line in rejects if line not in bad), None)!r}.",
    )
    expect(
        sorted(rejects) == bad,
        f"{len(bad)} rows are rejects, one of them twice; rejects.tsv has {len(rejects)} lines. None may be "
        "lost: no header is skipped, and no row taken out.",
    )
    return "Every row ends in a TFRecord file or in rejects.tsv."


def _records(files: list[Path]) -> list[str]:
    try:
        return sorted(
            record.decode()
            for file in files
            for record in tf.data.TFRecordDataset(str(file)).as_numpy_iterator()
        )
    except tf.errors.DataLossError:
        raise Wrong("The examples are not written as TFRecord files: WriteToTFRecord.") from None


@todo(
    "5f",
    hints=(
        'How do you count the records of several files? A TFRecordDataset can be iterated over.',
        'Compare before anything moves. Which three numbers does a colleague need in the error?',
        'What moves a folder in one step, and refuses where there is one already?',
    ),
    why='A folder that is renamed when it is complete is never half there.',
)
def publishing(publish: Callable) -> str:
    """A whole set is renamed; anything else raises and leaves all as it was."""
    with tempfile.TemporaryDirectory() as folder:
        staging, output = _staged(folder, "one.part"), Path(folder, "one")
        for rows in (12, 8):
            _refused(publish, staging, output, rows)

        try:
            counts = publish(staging, output, 10)
        except NotImplementedError:
            raise
        except (RuntimeError, ValueError, AssertionError) as error:
            raise Wrong(
                f"7 examples and 3 rejects make 10 rows, and publish raises {type(error).__name__}: {error}"
            ) from None
        expect(
            counts is not None and not isinstance(counts, int) and tuple(counts) == (7, 3),
            f"publish should return both counts, (7, 3) here; it returns {counts!r}.",
        )
        expect(
            len(list(output.glob("train-*.tfrecord"))) == 2 and (output / "rejects.tsv").exists(),
            "After publish the files should lie in output.",
        )
        expect(
            not staging.exists(),
            "staging is still there: a copy takes time, and half of it looks like a result. Rename.",
        )

        clean = _staged(folder, "clean.part", rejects=0)
        try:
            counts = publish(clean, Path(folder, "clean"), 7)
        except (RuntimeError, ValueError, AssertionError) as error:
            raise Wrong(
                "7 examples and an empty rejects.tsv make 7 rows, and publish raises "
                f"{type(error).__name__}: {error}"
            ) from None
        expect(tuple(counts) == (7, 0), f"An empty rejects.tsv holds no reject; publish says {counts}.")

        again, kept = _staged(folder, "two.part"), Path(folder, "two")
        kept.mkdir()
        (kept / "manifest.json").write_text("an earlier result")
        try:
            publish(again, kept, 10)
        except NotImplementedError:
            raise
        except Exception:
            expect(again.is_dir(), "Where output is taken, the new files should stay in staging.")
        expect((kept / "manifest.json").exists(), "An earlier result in output was deleted.")
        expect(
            again.is_dir(),
            "output held an earlier result, and staging was moved into it; refuse, as os.rename does.",
        )
    return "Counted, complete, and renamed in one step; an earlier result is left alone."


def _refused(publish: Callable, staging: Path, output: Path, rows: int) -> None:
    """Raises Wrong unless 7 examples and 3 rejects are refused for another number of rows."""
    try:
        publish(staging, output, rows)
    except NotImplementedError:
        raise
    except Exception as error:
        expect(
            staging.is_dir() and not output.exists(),
            "Where the rows do not add up, publish should leave all as it is; something was moved or deleted.",
        )
        expect(
            isinstance(error, RuntimeError | ValueError | AssertionError) or str(rows) in str(error),
            f"With rows={rows} publish raises {type(error).__name__}: {error}",
        )
        missing = {"7", "3", str(rows)} - set(re.findall(r"\d+", str(error)))
        expect(
            not missing,
            f"7 examples and 3 rejects of {rows} rows: the error should give the three numbers, and reads "
            f"{str(error)!r}.",
        )
    else:
        raise Wrong(
            f"7 examples and 3 rejects were written for {rows} rows, and publish raises nothing."
        )


def _staged(folder: str, name: str, rejects: int = 3) -> Path:
    """7 records in two files of train, 2 in one that is not, and a list of rejects."""
    staging = Path(folder, name)
    staging.mkdir()
    for shard, count in enumerate((4, 3)):
        path = os.path.join(staging, f"train-{shard:05d}-of-00002.tfrecord")
        with tf.io.TFRecordWriter(path) as writer:
            for _ in range(count):
                writer.write(b"record")
    with tf.io.TFRecordWriter(os.path.join(staging, "eval-00000-of-00001.tfrecord")) as writer:
        for _ in range(2):
            writer.write(b"record")
    (staging / "rejects.tsv").write_text("row\treason\n" * rejects)
    return staging
