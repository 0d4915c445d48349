"""A plan carried out under limits: worker after worker, until each TODO has its result."""

import contextlib
import json
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import psutil

from lab_utils.check import life, todos
from lab_utils.dry_run import cache
from lab_utils.teach.grade.cells import Plan, answers

_TICK = 0.5  # seconds between two looks at the memory
_FOLDERS = ("HOME", "TMPDIR", "IPYTHONDIR", "XDG_STATE_HOME", "XDG_CACHE_HOME", "KERAS_HOME")
_QUIET = {"MPLBACKEND": "Agg", "TF_CPP_MIN_LOG_LEVEL": "3", life.SILENCE: "1"}
MARKS = {
    "correct": ("✓", "right"),
    "incorrect": ("✗", "wrong"),
    "not attempted": ("○", "soft"),
    "cannot be checked here": ("?", "unsure"),
}
OUTCOMES = tuple(MARKS)
TIMED_OUT, ENDED, MEMORY = "timed out", "ended its process", "out of memory"


class Stopped(Exception):
    """Grading was interrupted."""


@dataclass(frozen=True)
class Limits:
    """Seconds for a cell or a check, seconds for a notebook, bytes of memory of its processes.

    What sets `stop` ends all that runs.
    """

    step: float = 60
    total: float = 600
    memory: int = 4 * 2**30
    stop: threading.Event = field(default_factory=threading.Event)


@dataclass(frozen=True)
class Result:
    """What became of a TODO: an outcome of `check`, or the limit that it met; and the message."""

    status: str
    why: str

    @property
    def points(self) -> int:
        """1 for a correct answer, else 0."""
        return int(self.status == "correct")

    @property
    def mark(self) -> tuple[str, str]:
        """A sign for the status, and the class of its colour; ! for what met a limit."""
        return MARKS.get(self.status, ("!", "unsure"))


@dataclass
class Graded:
    """A notebook's results by TODO, its predictions by name; `problem` says why there are none."""

    lab: int | None
    results: dict[str, Result] = field(default_factory=dict)
    predictions: dict[str, float] = field(default_factory=dict)
    remarks: list[str] = field(default_factory=list)
    problem: str = ""

    @property
    def points(self) -> int:
        """The sum over the TODOs."""
        return sum(result.points for result in self.results.values())

    @property
    def status(self) -> str:
        """One phrase: graded, could not be graded, or which limit was met where."""
        if self.problem:
            return f"could not be graded: {self.problem}"
        parts = ["graded"]
        for kind in (TIMED_OUT, ENDED, MEMORY, "cannot be checked here"):
            if ids := [id for id, result in self.results.items() if result.status == kind]:
                parts.append(f"{kind} in {', '.join(ids)}")
        return "; ".join(parts)


def grade(plan: Plan, limits: Limits, show: Callable[[str], None] = lambda at: None) -> Graded:
    """Runs a plan's cells and checks. What ends a worker is left out in the next one.

    `show` hears what is run, as "cell 3" or "check 2a".

    Raises:
        Stopped: so it was asked.
    """
    graded = Graded(plan.lab, remarks=list(plan.remarks))
    asked = {todo.id: todo for todo in todos.of_lab(plan.lab)}
    cells = {cell.label: cell for cell in plan.cells}
    errors: dict[str, Result | None] = {}
    met: dict[str, Result] = {}  # limits, by cell
    end = time.monotonic() + limits.total
    while left := [id for id in asked if id not in graded.results]:
        job = asdict(replace(plan, cells=list(cells.values()))) | {"todos": left}
        with _worker(job) as (worker, events):
            at, limit = _follow(worker, events, limits, end, show, graded, errors)
        kind, _, name = at.partition(" ")
        if kind == "lab":
            graded.problem = f"the lab's own cells do not run here ({limit.why})"
            return graded
        if time.monotonic() >= end:
            rest = Result(TIMED_OUT, f"The notebook took longer than {limits.total:.0f} s.")
            graded.results = dict.fromkeys(asked, rest) | graded.results
        elif kind == "check":
            graded.results.setdefault(name, limit)
        elif cells[name].whole:
            met[name], cells[name] = limit, replace(cells[name], whole=False)
            graded.remarks.append(f"of cell {name} only what it defines was run: {limit.why}")
        else:
            met[name] = limit
            del cells[name]
    graded.results = {id: graded.results[id] for id in asked}
    for cell in plan.cells:  # it says why, rather than that it was not attempted
        error = met.get(cell.label) or errors.get(cell.label)
        for id, todo in asked.items():
            if (
                error
                and graded.results[id].status == "not attempted"
                and answers(todo, cell.source)
            ):
                graded.results[id] = error
    return graded


def _follow(
    worker: subprocess.Popen,
    events: queue.Queue[bytes],
    limits: Limits,
    end: float,
    show: Callable[[str], None],
    graded: Graded,
    errors: dict[str, Result | None],
) -> tuple[str, Result]:
    """Notes what a worker says, in words of our own; what it was at when it ended, and why it did."""
    at, started = "lab", time.monotonic()
    while True:
        now = time.monotonic()
        if limits.stop.is_set():
            raise Stopped
        if now > min(started + limits.step, end):
            return at, Result(TIMED_OUT, f"It took longer than {limits.step:.0f} s.")
        if sum(_memory(process) for process in _processes(worker)) > limits.memory:
            size = f"{limits.memory / 2**30:.3g} GiB"
            return at, Result(MEMORY, f"It took more than {size} of memory.")
        try:
            line = events.get(timeout=_TICK)
        except queue.Empty:
            continue
        if not line:
            return at, Result(ENDED, f"The process ended, with status {worker.wait()}.")
        event = json.loads(line)
        if "begin" in event:
            at, started = event["begin"], now
            show(at)
        elif "lacking" in event:
            return at, Result(ENDED, event["lacking"])
        elif event.get("status") in OUTCOMES:
            graded.results[event["todo"]] = Result(event["status"], event["why"])
        elif "cell" in event:
            errors[event["cell"]] = _error(event["cell"], *event["error"])
        else:
            graded.predictions |= event["predictions"]


def _error(cell: str, kind: str = "", line: int | None = None, message: str = "") -> Result | None:
    where = f", line {line}" if line else ""
    return Result("incorrect", f"Cell {cell}{where} raised {kind}: {message}") if kind else None


@contextlib.contextmanager
def _worker(job: dict[str, Any]):
    """Context manager: a worker in a folder that is its home, too, and the lines that it writes."""
    with tempfile.TemporaryDirectory(prefix="grade-", ignore_cleanup_errors=True) as home:
        environment = os.environ | dict.fromkeys(_FOLDERS, home) | _QUIET
        environment.pop("NBGRADER_EXECUTION", None)
        with contextlib.suppress(
            OSError
        ):  # what the grader has compiled need not be compiled again
            environment[cache.SHARED] = str(cache.folder().parents[1])
        worker = subprocess.Popen(
            [sys.executable, "-P", "-m", "lab_utils.teach.grade.worker"],
            cwd=home,
            env=environment,
            stdin=subprocess.PIPE,  # stays open: its end tells the worker that this process died
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        events: queue.Queue[bytes] = queue.Queue()

        def listen() -> None:
            for line in worker.stdout:
                events.put(line)
            events.put(b"")

        try:
            with contextlib.suppress(OSError):  # it has ended at once
                worker.stdin.write(json.dumps(job).encode() + b"\n")
                worker.stdin.flush()
            threading.Thread(target=listen, daemon=True).start()
            yield worker, events
        finally:
            for process in _processes(worker):
                with contextlib.suppress(psutil.Error):
                    process.kill()
            with contextlib.suppress(OSError):
                os.killpg(worker.pid, signal.SIGKILL)
            worker.wait()


def _processes(worker: subprocess.Popen) -> list[psutil.Process]:
    """A worker and all that it has started."""
    with contextlib.suppress(psutil.Error):
        process = psutil.Process(worker.pid)
        return [process, *process.children(recursive=True)]
    return []


def _memory(process: psutil.Process) -> int:
    with contextlib.suppress(psutil.Error):
        return process.memory_info().rss
    return 0
