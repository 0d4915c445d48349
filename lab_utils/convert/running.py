"""Run a Beam pipeline to its end: with a progress bar, and without hanging on what died or does not move."""

import contextlib
import os
import re
import socket
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
from lab_utils.convert import jobs
from lab_utils.convert.engines import WORKERS_LOG, Engine
from lab_utils.convert.errors import ConversionError
from lab_utils.convert.plain_beam import beam
from lab_utils.convert.text import shortened

_POLL_SECONDS = 0.1
_LIST_SECONDS = (
    2  # between two looks for finished shards; a bucket's list is a request that is paid for
)
_SUBMIT_SECONDS = 60
_KEEPER = "run_worker"  # Beam's name for a thread that starts a worker and waits for its end
_GIVEN_UP = re.compile(r"shard \S+ failed \d+ times on .*?(?= \[while running|$)", re.MULTILINE)
_READERS = ("beam_control_read", "read_grpc_client_inputs")  # and for those that hear what it says


def run(
    pipeline: beam.Pipeline,
    engine: Engine,
    *,
    rows: int,
    done: Callable[[], int],
    stall_minutes: float,
    scratch: str,
) -> None:
    """Runs the pipeline, showing a bar of `rows` images.

    It runs in a thread, which leaves this one free to draw the bar, to hear Ctrl-C, and to notice that
    nothing moves any more: for a worker process that died Beam's own runner would wait for ever.

    Args:
        pipeline: the pipeline.
        engine: what it was made with.
        rows: how many there are.
        done: returns how many of them are done.
        stall_minutes: after so long without another row done the job is cancelled.
        scratch: where the workers' log is.

    Raises:
        ConversionError: if it failed.
    """
    proxies.spare_local()
    job = _Job(pipeline)
    others = set(psutil.Process().children())
    every = _POLL_SECONDS if engine.local else _LIST_SECONDS
    with _dead_workers() as dead, _bar(rows, done, every, stall_minutes * 60) as update:
        try:
            job.start()
            while not (job.ended.wait(_POLL_SECONDS) or dead):
                job.tell_once(engine)
                update()
            job.ended.wait(1 if dead else None)
            job.tell_once(engine)
        except BaseException:
            job.cancel(engine)
            raise
        finally:
            if job.result is not None:
                jobs.close(job.result)
            if not engine.remote:  # none is left unless this ends early
                _kill(set(psutil.Process().children()) - others)
    if dead and job.end != PipelineState.DONE:
        raise ConversionError(
            f"a worker process died ({_last_words(scratch) or dead[0]}), perhaps because memory ran out; "
            "nothing was published: run the same command again, with fewer --workers if it repeats"
        )
    if isinstance(job.end, BaseException):
        raise _explained(job.end, submitted=not engine.remote or job.result is not None)
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
        self._told = False

    def start(self) -> None:
        threading.Thread(target=self._work, daemon=True).start()

    def _work(self) -> None:
        try:
            self.result = self._pipeline.run()
            self.started.set()
            self.end = self.result.wait_until_finish() or PipelineState.DONE
        except BaseException as error:
            self.end = error
        finally:
            self.started.set()
            self.ended.set()

    def tell_once(self, engine: Engine) -> None:
        """Says where to watch a job that runs elsewhere, once it has started."""
        if engine.remote and self.result is not None and not self._told:
            what = jobs.describe(self.result, engine.options)
            if what:
                tqdm.write(f"{engine.name}: {what}", file=sys.stderr)
            self._told = True  # not sooner: Ctrl-C may come in between, and `cancel` tells it then

    def cancel(self, engine: Engine) -> None:
        """Ends a job that runs elsewhere, where it would go on, and be paid for, without this process."""
        if not engine.remote or self.ended.is_set():
            return
        tqdm.write("cancelling the job ...", file=sys.stderr)
        self.started.wait(_SUBMIT_SECONDS)
        if self.ended.is_set():
            return
        self.tell_once(engine)
        problem = "it is still being submitted"
        if self.result is not None:
            problem = jobs.cancel(self.result)
        if problem:
            tqdm.write(
                f"it may still run ({problem}): look for it on the engine's page", file=sys.stderr
            )


def _explained(error: BaseException, submitted: bool) -> ConversionError:
    text = str(error).strip() or type(error).__name__
    told = _GIVEN_UP.search(text)
    if told:
        return ConversionError(f"{told[0]}; nothing was published")
    if "No module named 'lab_utils" in text:
        return ConversionError(
            "the workers cannot import lab_utils: install the same version of this package where they run "
            "(on Dataflow with --extra_package and its wheel), in the same version of Python"
        )
    if text.endswith(grpc.FutureTimeoutError.__name__) and (name := _unknown_name()):
        return ConversionError(
            f"the workers did not reach the engine: it looks for this machine by its name, {name!r}, and "
            f"that leads nowhere: write `127.0.0.1 {name}` into /etc/hosts; nothing was published"
        )
    if not submitted:
        return ConversionError(f"the job could not be started: {text.splitlines()[-1]}")
    problem = ConversionError(f"the pipeline failed: {shortened(text.splitlines()[-1])}")
    problem.__cause__ = error
    return problem


def _unknown_name() -> str:
    """This machine's name if no address is known for it, else an empty string."""
    name = socket.getfqdn()
    try:
        socket.gethostbyname(name)
    except OSError:
        return name
    return ""


@contextlib.contextmanager
def _dead_workers() -> Iterator[list[BaseException]]:
    """Collect what Beam's worker-keeping threads raise: that their process ended with an error.

    Those of an earlier run in this process are no news: on a busy machine they end only now.
    """
    dead: list[BaseException] = []
    before = threading.excepthook
    earlier = set(threading.enumerate())

    def hook(args: threading.ExceptHookArgs) -> None:
        if args.thread is not None and args.thread.name == _KEEPER:
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
    rows: int, done: Callable[[], int], every: float, patience: float
) -> Iterator[Callable[[], None]]:
    """Shows a bar; what is yielded looks how far things are, every so many seconds, and loses patience."""
    with tqdm(total=rows, unit=" images", desc="converting") as bar:
        looked = moved = time.monotonic()

        def look() -> None:
            nonlocal looked, moved
            looked = time.monotonic()
            try:
                now = min(done(), rows)  # a shard that is tried again counts again
            except OSError:  # the job goes on though its bucket does not answer now
                return
            if now > bar.n:
                bar.update(now - bar.n)
                moved = looked

        def update() -> None:
            if time.monotonic() - looked >= every:
                look()
            if time.monotonic() - moved > patience:
                raise ConversionError(
                    f"nothing was converted for {patience / 60:g} minutes, after {bar.n:,} of "
                    f"{counted(rows, 'image')}; nothing was published. Look at the engine's page or "
                    "its workers' logs; --stall_minutes sets the limit"
                )

        yield update
        look()


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
    """Returns the last line of the workers' log that is more than a remark; "" where there is none."""
    with (
        contextlib.suppress(FileNotFoundError),
        open(os.path.join(scratch, WORKERS_LOG), errors="replace") as file,
    ):
        lines = [line.strip() for line in file if not line.startswith(("INFO:", "WARNING:"))]
        return shortened(lines[-1]) if lines else ""
    return ""
