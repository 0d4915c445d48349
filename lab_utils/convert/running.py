"""Run a Beam pipeline to its end: quietly, with a progress bar, and never hanging on a worker that died."""

import contextlib
import os
import shlex
import sys
import threading
from collections.abc import Callable, Iterator

import grpc
import psutil
from apache_beam.options.pipeline_options import DirectOptions, PipelineOptions, StandardOptions
from apache_beam.runners.portability.fn_api_runner import FnApiRunner
from apache_beam.runners.runner import PipelineState
from apache_beam.transforms.environments import SubprocessSDKEnvironment
from tqdm import tqdm

from lab_utils.convert.errors import ConversionError
from lab_utils.convert.plain_beam import beam

# DirectRunner would look for another runner to download, and pick differently in a notebook than in a script.
LOCAL_RUNNER = "FnApiRunner"
_POLL_SECONDS = 0.1
_LOG = "workers.log"
_KEEPER = "run_worker"  # Beam's name for a thread that starts a worker and waits for its end
_READERS = ("beam_control_read", "read_grpc_client_inputs")  # and for those that hear what it says


def make_pipeline(
    flags: list[str], workers: int | None, scratch: str
) -> tuple[beam.Pipeline, bool]:
    """Return an empty pipeline, and whether it will run on this machine.

    Args:
        flags: Beam's own, such as ["--runner=DataflowRunner", "--project=..."].
        workers: processes to use on this machine, 0 for one a core, None for what Beam's flags say.
        scratch: a local folder for the workers' log.

    Raises:
        ConversionError: for a flag that Beam does not know, or workers with another runner.
    """
    options = PipelineOptions(flags)
    known = options.get_all_options(retain_unknown_options=False)
    unknown = options.get_all_options(retain_unknown_options=True).keys() - known.keys()
    if unknown:
        names = ", ".join(f"--{name}" for name in sorted(unknown))
        raise ConversionError(f"{names}: neither a flag of the converter nor one of Beam's")
    runner = options.view_as(StandardOptions).runner or LOCAL_RUNNER
    if runner != LOCAL_RUNNER:
        if workers is not None:
            raise ConversionError(
                f"--workers is for {LOCAL_RUNNER} only; {runner} has options of its own "
                "(--num_workers on Dataflow)"
            )
        return beam.Pipeline(options=options), False
    if workers in (None, 1):
        return beam.Pipeline(runner=FnApiRunner(), options=options), True
    options.view_as(DirectOptions).direct_num_workers = workers
    # As direct_running_mode=multi_processing does, but what the workers say stays off the terminal.
    command = (
        f"exec {shlex.quote(sys.executable)} -m apache_beam.runners.worker.sdk_worker_main "
        f"2>> {shlex.quote(os.path.join(scratch, _LOG))}"
    )
    environment = SubprocessSDKEnvironment.from_command_string(command)
    return beam.Pipeline(runner=FnApiRunner(default_environment=environment), options=options), True


def run(pipeline: beam.Pipeline, *, rows: int, progress_file: str | None, scratch: str) -> None:
    """Run the pipeline, showing a bar of `rows` images where there is a progress file.

    It runs in a thread, which leaves this one free to draw the bar, to hear Ctrl-C, and to notice that a
    worker process died, for which Beam's own runner would wait for ever.

    Raises:
        ConversionError: if it failed.
    """
    outcome: list[BaseException | str] = []

    def work() -> None:
        try:
            outcome.append(pipeline.run().wait_until_finish() or PipelineState.DONE)
        except BaseException as error:
            outcome.append(error)

    thread = threading.Thread(target=work, daemon=True)
    others = set(psutil.Process().children())
    with _dead_workers() as dead, _bar(rows, progress_file) as update:
        try:
            thread.start()
            while thread.is_alive() and not dead:
                thread.join(_POLL_SECONDS)
                update()
            thread.join(1 if dead else None)
        finally:
            _kill(set(psutil.Process().children()) - others)  # none is left unless this ends early
    if dead and outcome != [PipelineState.DONE]:
        raise ConversionError(
            f"a worker process died ({_last_words(scratch) or dead[0]}), perhaps for want of memory; nothing "
            "was published: run the same command again, with fewer --workers if it repeats"
        )
    (end,) = outcome
    if isinstance(end, BaseException):
        raise ConversionError(f"the pipeline failed: {str(end).strip().splitlines()[-1]}") from end
    if end != PipelineState.DONE:
        raise ConversionError(f"the pipeline ended as {end}")


@contextlib.contextmanager
def _dead_workers() -> Iterator[list[BaseException]]:
    """Collect what Beam's worker-keeping threads raise: that their process ended with an error."""
    dead: list[BaseException] = []
    before = threading.excepthook

    def hook(args: threading.ExceptHookArgs) -> None:
        if args.thread is not None and args.thread.name == _KEEPER:
            dead.append(args.exc_value)
        elif not issubclass(args.exc_type, grpc.RpcError):  # those say that its connection broke
            before(args)

    threading.excepthook = hook
    try:
        yield dead
    finally:
        threading.excepthook = before


@contextlib.contextmanager
def _bar(rows: int, progress_file: str | None) -> Iterator[Callable[[], None]]:
    if progress_file is None:
        yield lambda: None
        return
    open(progress_file, "wb").close()
    with tqdm(total=rows, unit=" images", desc="converting") as bar:

        def update() -> None:
            done = os.path.getsize(progress_file)
            if done > bar.n:
                bar.update(done - bar.n)

        yield update
        update()


def _kill(processes: set[psutil.Process]) -> None:
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
    # Whose worker was killed says that its connection broke: to `_dead_workers`, if waited for.
    ending = (_KEEPER, *_READERS) if processes else (_KEEPER,)
    for thread in threading.enumerate():
        if thread.name in ending:
            thread.join(timeout=5)


def _last_words(scratch: str) -> str:
    """Return the last line of the workers' log that is more than a remark; "" where there is none."""
    with contextlib.suppress(FileNotFoundError), open(os.path.join(scratch, _LOG)) as file:
        lines = [line.strip() for line in file if not line.startswith(("INFO:", "WARNING:"))]
        return lines[-1] if lines else ""
    return ""
