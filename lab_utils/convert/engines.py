"""Beam's engine: which one runs the pipeline, and its run to the end, with a progress bar.

Its flags are Beam's own, and go to Beam.
"""

import contextlib
import io
import logging
import os
import shutil
import sys
import tempfile
import threading
from argparse import ArgumentParser
from collections.abc import Callable
from concurrent import futures
from concurrent.futures import Future
from dataclasses import dataclass

from apache_beam.options.pipeline_options import PipelineOptions, StandardOptions, WorkerOptions
from apache_beam.runners.runner import (
    PipelineResult,
    PipelineRunner,
    PipelineState,
    create_runner,
)
from tqdm import tqdm

from lab_utils.common import proxies
from lab_utils.common.notices import in_notebook
from lab_utils.convert import storage
from lab_utils.convert.errors import ConversionError, printable
from lab_utils.convert.logs import quiet
from lab_utils.convert.manifest import SUMMARY
from lab_utils.convert.pipeline import WriteShard
from lab_utils.convert.plain_beam import beam
from lab_utils.convert.plan import SplitPlan

# DirectRunner would look for another runner to download, and pick differently in a notebook than in a script.
LOCAL_RUNNER = "FnApiRunner"
_LOOK_SECONDS = 0.1
_LIST_SECONDS = 2  # between two lists of a bucket, which are paid for
_SUBMIT_SECONDS = 60


@dataclass(frozen=True)
class Engine:
    """A runner of Beam's, with its name and flags."""

    name: str
    runner: PipelineRunner
    flags: list[str]

    @property
    def remote(self) -> bool:
        """Whether workers may be on other machines, or in other folders."""
        return self.name not in StandardOptions.LOCAL_RUNNERS

    def pipeline(self) -> beam.Pipeline:
        """Returns an empty pipeline."""
        try:
            return beam.Pipeline(runner=self.runner, options=PipelineOptions(self.flags))
        except ValueError as error:  # Beam's own checks of its flags
            raise ConversionError(" ".join(str(error).split())) from None


def find_engine(flags: list[str]) -> Engine:
    """Returns the engine that Beam's flags ask for.

    Args:
        flags: Beam's own, such as ["--runner=DataflowRunner", "--project=..."]. The runner is one of Beam's
            by its short name, or any by its full one (package.module.Class); it may have flags of its own.

    Raises:
        ConversionError: for a runner that is not there, and a flag that nobody obeys.
    """
    name = PipelineOptions(flags).view_as(StandardOptions).runner or LOCAL_RUNNER
    try:
        # A runner's own flags are known once its module is imported.
        runner = create_runner(name)
    except (ValueError, ImportError, AttributeError, TypeError) as error:
        raise ConversionError(
            f"--runner {name} cannot be used here: {' '.join(str(error).split())}"
        ) from None
    parsers: list[ArgumentParser] = []
    message = io.StringIO()
    try:
        with contextlib.redirect_stderr(message):
            options = PipelineOptions(flags)
            options.get_all_options(add_extra_args_fn=parsers.append)
            # What Beam's own parser does not know, stray words included, it would hand over to nobody.
            _, unknown = parsers[0].parse_known_args(flags)
    except SystemExit:  # argparse's way, after Beam's whole usage
        raise ConversionError(message.getvalue().strip().rpartition("error: ")[2]) from None
    if unknown:
        raise ConversionError(
            f"{' '.join(unknown)}: neither a flag of the converter nor one of Beam's"
        )
    engine = Engine(type(runner).__name__, runner, flags)
    if not engine.remote and options.view_as(WorkerOptions).num_workers is not None:
        raise ConversionError("--num_workers is a flag of Dataflow; on this machine, use --workers")
    return engine


def run(
    engine: Engine,
    splits: list[SplitPlan],
    labels: list[str],
    staging: str,
    *,
    shorter_side: int | None,
    workers: int | None,
) -> None:
    """Has the engine write all shards into the staging folder, where `plan.write_rows` left their rows.

    The arguments are those of `convert`. The pipeline runs in a thread, which leaves this one free to draw
    the bar and to hear Ctrl-C.

    Raises:
        ConversionError: if it failed.
    """
    proxies.spare_local()
    names = [name for split in splits for name in split.shard_names]
    rows = sum(split.rows for split in splits)
    with contextlib.ExitStack() as stack:
        progress_file = None
        if not engine.remote:
            folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
            progress_file = os.path.join(stack.enter_context(folder), "progress")
            open(progress_file, "wb").close()
            # What goes wrong comes back as an exception; Beam's log tells it once a thread.
            stack.enter_context(quiet(logging.CRITICAL))
        pipeline = engine.pipeline()
        # Beam removes this folder itself, unless it is interrupted or runs in a notebook.
        stack.callback(shutil.rmtree, pipeline.local_tempdir, ignore_errors=True)
        write = WriteShard(
            csv_paths={split.name: split.csv_path for split in splits},
            ids={label: number for number, label in enumerate(labels, 1)},
            staging=staging,
            shorter_side=shorter_side,
            threads=workers or (1 if engine.remote else os.cpu_count() or 1),
            progress_file=progress_file,
        )
        _ = pipeline | "Shards" >> beam.Create(names) | "Write shards" >> beam.ParDo(write)

        def rows_written() -> int:
            if progress_file:
                return os.path.getsize(progress_file)
            files = storage.list_names(staging)
            return rows * sum(name + SUMMARY in files for name in names) // len(names)

        job, end = _start(pipeline)
        try:
            interval = _LIST_SECONDS if engine.remote else _LOOK_SECONDS
            _watch(end, rows, rows_written, interval)
        except BaseException:
            if engine.remote and not end.done():
                _cancel(job, end, engine.name)
            raise
    if error := end.exception():
        last = (str(error).strip() or type(error).__name__).splitlines()[-1]
        raise ConversionError(f"the pipeline failed: {printable(last[:1000])}")
    if end.result() != PipelineState.DONE:
        raise ConversionError(f"the pipeline ended in the state {end.result()}")


def _start(pipeline: beam.Pipeline) -> tuple[Future[PipelineResult], Future[str]]:
    """Runs a pipeline in a thread: its job, once it is submitted, and the state in which it ends.

    Waiting for them can be interrupted; a thread's `join` that is, has it look as if it had ended.
    """
    job, end = Future(), Future()

    def work() -> None:
        try:
            job.set_result(pipeline.run())
            end.set_result(job.result().wait_until_finish() or PipelineState.DONE)
        except BaseException as error:
            end.set_exception(error)

    threading.Thread(target=work, daemon=True).start()
    return job, end


def _cancel(job: Future[PipelineResult], end: Future[str], engine: str) -> None:
    """Ends a job that runs elsewhere, where it would go on, and be paid for, without this process."""
    tqdm.write("cancelling the job ...", file=sys.stderr)
    futures.wait([job, end], _SUBMIT_SECONDS, futures.FIRST_COMPLETED)
    try:
        job.result(0).cancel()
    except Exception as error:
        tqdm.write(f"the job may still run ({error!r}): look at {engine}'s page", file=sys.stderr)


def _watch(end: Future, rows: int, rows_written: Callable[[], int], interval: float) -> None:
    """Shows a bar until the job ends; looks every `interval` seconds."""
    # A notebook shows each state of a bar on stderr as a line of its own.
    file = io.StringIO() if in_notebook() else sys.stderr
    with tqdm(total=rows, unit=" images", desc="converting", file=file) as bar:
        ended = False
        while not ended:
            ended = bool(futures.wait([end], interval).done)
            with contextlib.suppress(OSError):  # a bucket that does not answer now ends no job
                # A shard that is tried again counts again.
                bar.update(max(0, min(rows_written(), rows) - bar.n))
