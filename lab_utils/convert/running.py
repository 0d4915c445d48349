"""Run a Beam pipeline to its end: with a progress bar, and without hanging on what died or does not move."""

import contextlib
import sys
import threading
import time
from collections.abc import Callable, Iterator

import grpc
import psutil
from apache_beam.runners.runner import PipelineResult, PipelineState
from tqdm import tqdm

from lab_utils.common import proxies
from lab_utils.common.figures import counted
from lab_utils.convert.engines import Engine
from lab_utils.convert.errors import ConversionError
from lab_utils.convert.plain_beam import beam
from lab_utils.convert.text import printable

_POLL_SECONDS = 0.1
_LIST_SECONDS = 2  # between two lists of a bucket, which are paid for
_SUBMIT_SECONDS = 60
_WORKER_THREAD = "run_worker"  # Beam's name for a thread that starts a worker and waits for its end


def run(
    pipeline: beam.Pipeline,
    engine: Engine,
    *,
    rows: int,
    done: Callable[[], int],
    stall_minutes: float,
) -> None:
    """Runs the pipeline, showing a bar of `rows` images.

    It runs in a thread, which leaves this one free to draw the bar, to hear Ctrl-C, and to notice that
    nothing moves any more: for a worker process that died Beam's own runner would wait for ever.

    Args:
        pipeline: made with `engine`.
        engine: what runs it.
        rows: how many there are.
        done: returns how many of them are done.
        stall_minutes: after so long without another row done the job is cancelled.

    Raises:
        ConversionError: if it failed.
    """
    proxies.spare_local()
    job = _Job(pipeline)
    others = set(psutil.Process().children())
    interval = _POLL_SECONDS if engine.local else _LIST_SECONDS
    with _dead_workers() as dead, _bar(rows, done, interval, stall_minutes * 60) as update:
        try:
            threading.Thread(target=job.work, daemon=True).start()
            while not (job.ended.wait(_POLL_SECONDS) or dead):
                update()
        except BaseException:
            if engine.remote and not job.ended.is_set():
                job.cancel(engine.name)
            raise
        finally:
            with contextlib.suppress(Exception):
                job.result.client.close()  # Dask's connection
            if not engine.remote:  # none is left unless this ends early
                _kill(set(psutil.Process().children()) - others)
    if dead and job.end != PipelineState.DONE:
        raise ConversionError(
            f"a worker process died ({dead[0]}), perhaps because memory ran out; nothing was published: run "
            "the same command again, with fewer --workers if it repeats"
        )
    if isinstance(job.end, BaseException):
        last = (str(job.end).strip() or type(job.end).__name__).splitlines()[-1]
        started = job.result is not None or not engine.remote
        problem = "the pipeline failed" if started else "the job could not be started"
        raise ConversionError(f"{problem}: {printable(last[:1000])}")
    if job.end != PipelineState.DONE:
        raise ConversionError(f"the pipeline ended in the state {job.end}")


class _Job:
    """A pipeline that runs in a thread: its result once it has started, and its end.

    Waiting for its events can be interrupted; a thread's `join` that is, has it look as if it had ended.
    """

    def __init__(self, pipeline: beam.Pipeline):
        self.result: PipelineResult | None = None
        self.end: BaseException | str | None = None
        self.started, self.ended = threading.Event(), threading.Event()
        self._pipeline = pipeline

    def work(self) -> None:
        try:
            self.result = self._pipeline.run()
            self.started.set()
            self.end = self.result.wait_until_finish() or PipelineState.DONE
        except BaseException as error:
            self.end = error
        finally:
            self.started.set()
            self.ended.set()

    def cancel(self, engine: str) -> None:
        """Ends a job that runs elsewhere, where it would go on, and be paid for, without this process."""
        tqdm.write("cancelling the job ...", file=sys.stderr)
        self.started.wait(_SUBMIT_SECONDS)
        try:
            self.result.cancel()
        except Exception as error:
            tqdm.write(
                f"it may still run ({error}): look for it on {engine}'s page", file=sys.stderr
            )


@contextlib.contextmanager
def _dead_workers() -> Iterator[list[BaseException]]:
    """Collects what Beam's threads raise whose worker process ended with an error.

    Those of an earlier run in this process are no news: on a busy machine they end only now.
    """
    dead: list[BaseException] = []
    before = threading.excepthook
    earlier = set(threading.enumerate())

    def hook(args: threading.ExceptHookArgs) -> None:
        if args.thread is not None and args.thread.name == _WORKER_THREAD:
            if args.thread not in earlier:
                dead.append(args.exc_value)
        elif not issubclass(args.exc_type, grpc.RpcError):  # those say that its connection broke
            before(args)

    threading.excepthook = hook
    try:
        yield dead
    finally:
        threading.excepthook = before


@contextlib.contextmanager
def _bar(
    rows: int, done: Callable[[], int], interval: float, patience: float
) -> Iterator[Callable[[], None]]:
    """Shows a bar; what is yielded updates it, every so many seconds, and loses patience."""
    with tqdm(total=rows, unit=" images", desc="converting") as bar:
        looked = moved = time.monotonic()

        def update(interval: float = interval) -> None:
            nonlocal looked, moved
            if time.monotonic() - looked < interval:
                return
            looked = time.monotonic()
            with contextlib.suppress(OSError):  # a bucket that does not answer now ends no job
                now = min(done(), rows)  # a shard that is tried again counts again
                if now > bar.n:
                    bar.update(now - bar.n)
                    moved = looked
            if looked - moved > patience:
                raise ConversionError(
                    f"nothing was converted for {patience / 60:g} minutes, after {bar.n:,} of "
                    f"{counted(rows, 'image')}; nothing was published. Look at the engine's page or "
                    "its workers' logs; --stall_minutes sets the limit"
                )

        yield update
        moved = time.monotonic()
        update(0)


def _kill(processes: set[psutil.Process]) -> None:
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
    # The threads of a killed worker say that its connection broke: to `_dead_workers`, if waited for.
    names = (_WORKER_THREAD, *(("beam_control_read", "read_grpc_client_inputs") * bool(processes)))
    for thread in threading.enumerate():
        if thread.name in names:
            thread.join(timeout=5)
