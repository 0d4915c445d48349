"""The job: TODO 5d, the runner, 5e, the steps, and 5f, publishing."""

import os
import tempfile
from collections.abc import Callable
from pathlib import Path

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
        'beam.Pipeline(options=PipelineOptions(["--runner=FnApiRunner"]))',
        "Where workers is above 1, add two flags to the list; the number goes in with an f-string.",
    ),
)
def runner(make_pipeline: Callable) -> str:
    """FnApiRunner by name, and as many processes as are asked for."""
    with quiet():
        alone, three = make_pipeline(workers=1), make_pipeline(workers=3)
    for made in (alone, three):
        expect(
            isinstance(made, beam.Pipeline),
            f"make_pipeline should return a beam.Pipeline; yours returns {a(made)}.",
        )
        expect(
            isinstance(made.runner, FnApiRunner),
            f"The runner is {type(made.runner).__name__}, which may choose, and download, Prism: name "
            "FnApiRunner.",
        )
    direct = three.options.view_as(DirectOptions)
    mode = direct.direct_running_mode
    expect(
        mode != "multi_threading",
        "multi_threading makes threads of one process, which Python runs one at a time.",
    )
    expect(
        mode == "multi_processing",
        f"For several workers the mode should be multi_processing; it is {mode}, one process.",
    )
    expect(
        direct.direct_num_workers == 3,
        f"Asked for 3 workers, the pipeline has {direct.direct_num_workers} (--direct_num_workers).",
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
        "made = pipeline | beam.io.ReadFromText(str(csv_file)) | beam.ParDo(to_example)"
        '.with_outputs("rejects", main="examples")',
        'made.examples | beam.io.WriteToTFRecord(f"{output}/train", file_name_suffix=".tfrecord", '
        "num_shards=shards)",
        'made.rejects | beam.Map("\\t".join) | beam.io.WriteToText(f"{output}/rejects.tsv", '
        'shard_name_template="")',
    ),
)
def steps(add_steps: Callable) -> str:
    """Lines in; TFRecord files and a list of rejects out, every line in one of them."""
    lines = [str(number) for number in range(11)]
    with tempfile.TemporaryDirectory() as folder, quiet():
        rows, output = Path(folder, "rows.csv"), Path(folder, "output")
        rows.write_text("\n".join(lines) + "\n")
        pipeline = beam.Pipeline(options=PipelineOptions(["--runner=FnApiRunner"]))
        add_steps(pipeline, rows, _Halves(), output, 3)
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
        examples == wanted,
        f"Of {len(lines)} lines {len(wanted)} are good; the TFRecord files hold {examples}.",
    )
    expect(rejects is not None, f"The rejects should be in the one file rejects.tsv. {told}")
    expect(
        sorted(rejects) == sorted(f"{line}\teven" for line in lines if not int(line) % 2),
        f"A line of rejects.tsv should be the row, a tab and the reason; the first one is {rejects[:1]}.",
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
        'tf.io.gfile.glob(f"{staging}/train-*.tfrecord") gives the files; iterate over a '
        "tf.data.TFRecordDataset of them to count.",
        "if examples + rejects != rows: raise RuntimeError(...), before anything is moved.",
        "os.rename(staging, output); return examples, rejects",
    ),
)
def publishing(publish: Callable) -> str:
    """A whole set is renamed; anything else raises and leaves all as it was."""
    with tempfile.TemporaryDirectory() as folder:
        staging, output = _staged(folder, "one.part"), Path(folder, "one")
        try:
            publish(staging, output, 12)
        except NotImplementedError:
            raise
        except Exception:
            expect(
                staging.is_dir() and not output.exists(),
                "Where rows are missing, publish should leave all as it is; something was moved.",
            )
        else:
            raise Wrong(
                "7 examples and 3 rejects were written for 12 rows, and publish says nothing."
            )

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


def _staged(folder: str, name: str) -> Path:
    """7 records in two files, and 3 rejects."""
    staging = Path(folder, name)
    staging.mkdir()
    for shard, count in enumerate((4, 3)):
        path = os.path.join(staging, f"train-{shard:05d}-of-00002.tfrecord")
        with tf.io.TFRecordWriter(path) as writer:
            for _ in range(count):
                writer.write(b"record")
    (staging / "rejects.tsv").write_text("row\treason\n" * 3)
    return staging
