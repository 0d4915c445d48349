"""The whole conversion: check, plan, deal, run, account, publish."""

import contextlib
import errno
import itertools
import logging
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Sequence

from lab_utils.common import files, names, scratch
from lab_utils.common.figures import counted
from lab_utils.convert import publishing, repeats, storage
from lab_utils.convert.accounting import SUMMARY, account, failures
from lab_utils.convert.arguments import check_list, check_numbers, check_paths
from lab_utils.convert.dealing import deal_rows
from lab_utils.convert.errors import ConversionError
from lab_utils.convert.logs import quiet
from lab_utils.convert.manifest import Manifest
from lab_utils.convert.plan import check_sample, plan_split, shared
from lab_utils.convert.rows import not_utf8, read_labels
from lab_utils.convert.text import printable

_LIST_SECONDS = (
    2  # between two looks for finished shards; a bucket's list is a request that is paid for
)

# Packages of the clients of buckets: what they raise is told in one line.
_CLIENTS = {"google", "requests", "urllib3", "botocore", "boto3", "azure", "hdfs"}


def convert(
    train_csv: str | os.PathLike[str],
    eval_csv: str | os.PathLike[str],
    labels_file: str | os.PathLike[str],
    output_dir: str | os.PathLike[str],
    *,
    shard_mb: float = 100,
    train_shards: int | None = None,
    eval_shards: int | None = None,
    shorter_side: int | None = None,
    max_reject_share: float = 0.01,
    overwrite: bool = False,
    workers: int | None = None,
    stall_minutes: float = 30,
    beam_flags: Sequence[str] = (),
) -> Manifest:
    """Converts images named in CSV files into TFRecord shards, and returns the manifest.

    The folder gets `train-00000-of-00008.tfrecord` and so on, rejects.csv (rows that gave no example, and
    why) and manifest.json, which comes last: without it, nothing in the folder is to be trusted. The same
    input and number of shards give the same bytes, whatever the number of workers.

    Args:
        train_csv: rows `path,label` without a header; paths are absolute, relative to the CSV, or gs://...
        eval_csv: the same, for evaluation.
        labels_file: one class a line; the first has id 1 in the records, 0 being the background.
        output_dir: a new or empty folder, local or gs://...
        shard_mb: size of a shard to aim at, in millions of bytes; up to 1,000 images are asked for theirs.
        train_shards: number of training shards, instead.
        eval_shards: number of evaluation shards, instead.
        shorter_side: pixels; larger images are scaled down to it and compressed again, which makes records
            that hold less and are decoded faster. None stores every image as it is.
        max_reject_share: the conversion fails if more than this share of a split's rows gave no example.
        overwrite: replace an earlier result; it stays until the new one is complete.
        workers: processes on this machine; 0 for one a core. Starting them takes seconds, so one, the
            default, is faster for some thousands of images.
        stall_minutes: the job is ended after so long without another image converted.
        beam_flags: Beam's own, for example ["--runner=DataflowRunner", "--project=...", "--region=..."].

    Raises:
        ConversionError: if it cannot start or did not finish; the output folder then has no new manifest.
    """
    try:
        paths = {
            "train_csv": files.expanded(train_csv),
            "eval_csv": files.expanded(eval_csv),
            "labels_file": files.expanded(labels_file),
            "output_dir": files.expanded(output_dir),
        }
    except ValueError as error:
        raise ConversionError(str(error)) from None
    check_paths(paths)
    check_numbers(shard_mb, shorter_side, max_reject_share, workers, stall_minutes)
    for path in list(paths.values())[:3]:
        check_list(path)
    with quiet(), contextlib.ExitStack() as stack, _system_errors(paths["output_dir"]):
        publishing.check_output(paths["output_dir"], overwrite=overwrite)
        labels = read_labels(paths["labels_file"])
        if odd := not_utf8(paths["labels_file"]):
            _note(
                "the labels file is not text in UTF-8. It was read as Windows's cp1252, which gives the "
                f"class {odd!r}. If that is wrong, save it and the lists as UTF-8"
            )
        for note in names.notes(labels):
            _note(note)
        if len(labels) == 1:
            _note("the labels file has one class: a model cannot learn to tell it from others")

        # Imported here: Beam takes two seconds, and the mistakes above can be told at once.
        from lab_utils.convert import engines, pipeline, running

        engine = engines.find_engine(list(beam_flags), workers, paths)
        if engine.remote:  # a worker may be in another folder
            paths = {name: storage.absolute(path) for name, path in paths.items()}
        output = paths["output_dir"]
        splits = [
            plan_split("train", paths["train_csv"], train_shards, shard_mb),
            plan_split("eval", paths["eval_csv"], eval_shards, shard_mb),
        ]
        for split in splits:
            check_sample(split, labels)
        for note in itertools.chain.from_iterable(map(repeats.notes, splits)):
            _note(note)
        if share := shared(*splits):
            _note(
                f"{max(share, 0.001):.1%} of the images of --eval_csv are in --train_csv, too: on these the "
                "evaluation says nothing about new images"
            )
        for folder in [*scratch.remove_dead(), *publishing.remove_dead(output)]:
            _note(f"removed {folder}, which a killed run had left")
        own = stack.enter_context(scratch.folder())
        rows = {name: split_rows for split in splits for name, split_rows in split.shard_rows()}
        beam_pipeline = engine.pipeline(len(rows), workers, own)
        if engine.local:
            # What goes wrong here comes back as an exception; Beam's log tells it once a thread and process.
            stack.enter_context(quiet(logging.CRITICAL))
        progress_file = os.path.join(own, "progress") if engine.local else None
        staging = stack.enter_context(publishing.staging(output))
        try:
            deal_rows(splits, staging, own)
            pipeline.add_steps(beam_pipeline, splits, labels, staging, progress_file, shorter_side)
            done = _bytes_of(progress_file) if engine.local else _rows_of_shards(staging, rows)
            try:
                running.run(
                    beam_pipeline,
                    engine,
                    rows=sum(rows.values()),
                    done=done,
                    stall_minutes=stall_minutes,
                    scratch=own,
                )
            except ConversionError:
                told = failures(splits, staging)
                if told:
                    more = (
                        f" ({counted(len(told) - 1, 'shard')} more failed)" if len(told) > 1 else ""
                    )
                    problem = f"{told[0]}{more}; nothing was published"
                    raise ConversionError(problem + _room(problem, output)) from None
                raise
            manifest = account(splits, labels, staging, output, max_reject_share, shorter_side)
            _note_absent(manifest)
        except BaseException:
            storage.remove_folder(staging)
            raise
        # From here on the staging folder stays if this is struck: the next run learns from it what was moved.
        publishing.publish(staging, output, overwrite=overwrite)
        for folder in publishing.remove_dead(output):
            _note(f"removed {folder}, which a killed run had left")
        return manifest


def _note_absent(manifest: Manifest) -> None:
    absent = [name for name, count in manifest.splits["train"].per_class.items() if not count]
    if absent:
        more = f" and {len(absent) - 3} more" if len(absent) > 3 else ""
        names = ", ".join(repr(name[:50]) for name in absent[:3])
        _note(
            f"no training example of {names}{more}: is that a class, or a line that does not belong in the "
            "labels file?"
        )


@contextlib.contextmanager
def _system_errors(output: str):
    """Tells what the operating system or a bucket refuses, such as a full disk, as a conversion's error."""
    try:
        yield
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        problem = f"{where}{error.strerror or error}; nothing was published"
        raise ConversionError(problem + _room(problem, output)) from None
    except Exception as error:
        if type(error).__module__.split(".")[0] not in _CLIENTS:
            raise
        said = " ".join(str(error).split())
        raise ConversionError(
            f"a bucket did not answer as it should: {said[:400]}; nothing was published. Is its name right, "
            "is this account allowed to use it (gcloud auth application-default login), is there a network?"
        ) from None


def _room(problem: str, output: str) -> str:
    """Says, of a full disk, how much room there is where a conversion writes; else ""."""
    if os.strerror(errno.ENOSPC) not in problem:
        return ""
    places = [tempfile.gettempdir()]
    if not storage.is_remote(output):
        place = os.path.abspath(output)
        while not os.path.exists(place):
            place = os.path.dirname(place)
        places.insert(0, place)
    free = [f"{shutil.disk_usage(each).free / 1e6:,.1f} MB in {each}" for each in places]
    return f". Free are {' and '.join(free)}"


def _note(text: str) -> None:
    print(f"note: {printable(text)}", file=sys.stderr)


def _bytes_of(progress_file: str) -> Callable[[], int]:
    open(progress_file, "wb").close()
    return lambda: os.path.getsize(progress_file)


def _rows_of_shards(staging: str, rows: dict[str, int]) -> Callable[[], int]:
    """Counts the rows of the shards that lie finished in the staging folder."""

    def done() -> int:
        names = storage.list_names(staging)
        return sum(count for name, count in rows.items() if name + SUMMARY in names)

    return done
