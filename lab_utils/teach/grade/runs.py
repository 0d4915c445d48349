"""A plan carried out under limits: worker after worker, until each TODO has its result."""

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import psutil

from lab_utils.check import todos
from lab_utils.check.setup import SILENCE
from lab_utils.common import scratch
from lab_utils.dry_run import cache
from lab_utils.teach.grade.cells import Plan, answers

_TICK = 0.5  # seconds between two looks at the memory
_FOLDERS = ("HOME", "TMPDIR", "IPYTHONDIR", "XDG_STATE_HOME", "XDG_CACHE_HOME", "KERAS_HOME")
_QUIET = {"MPLBACKEND": "Agg", "TF_CPP_MIN_LOG_LEVEL": "3", SILENCE: "1"}
MARKS = {
    "correct": ("✓", "right"),
    "incorrect": ("✗", "wrong"),
    "not attempted": ("○", "soft"),
    "cannot be checked here": ("?", "unsure"),
}
OUTCOMES = tuple(MARKS)
TIMED_OUT, ENDED, MEMORY = "timed out", "ended its process", "out of memory"


@dataclass(frozen=True)
class Limits:
    """Seconds for a cell or a check, seconds for a notebook, bytes of memory of its processes."""

    step: float = 60
    total: float = 600
    memory: int = 4 * 2**30


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
    """A notebook's results by TODO; `problem` says why there are none."""

    lab: int | None
    results: dict[str, Result] = field(default_factory=dict)
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


def grade(plan: Plan, limits: Limits) -> Graded:
    """Runs a plan's cells and checks. What ends a worker is left out in the next one."""
    graded = Graded(plan.lab, remarks=list(plan.remarks))
    by_check = {f"check {todo.id}": todo for todo in todos.of_lab(plan.lab)}
    cells = {cell.label: cell for cell in plan.cells}
    outcomes: dict[str, Result] = {}  # of cells and checks, by label
    limits_met: dict[str, Result] = {}  # by cell
    end = time.monotonic() + limits.total
    while unchecked := [todo.id for check, todo in by_check.items() if check not in outcomes]:
        job = asdict(replace(plan, cells=list(cells.values()))) | {"todos": unchecked}
        label = ""
        with _worker(job) as worker:
            for event in _events(worker, limits, end):
                match event:
                    case {"begin": label}:
                        pass
                    case {"end": name, "status": status, "why": why}:
                        outcomes[name] = Result(status, why)
                    case Result() as limit:
                        pass
        if not label:
            why = outcomes.get("", limit).why
            graded.problem = f"the lab's own cells do not run here ({why})"
            return graded
        if time.monotonic() >= end:
            rest = Result(TIMED_OUT, f"The notebook took longer than {limits.total:.0f} s.")
            outcomes = dict.fromkeys(by_check, rest) | outcomes
        elif label in by_check:
            outcomes.setdefault(label, limit)
        elif cells[label].whole:
            limits_met[label], cells[label] = limit, replace(cells[label], whole=False)
            graded.remarks.append(f"of {label} only what it defines was run: {limit.why}")
        else:
            limits_met[label] = limit
            del cells[label]
    outcomes |= limits_met
    for check, todo in by_check.items():
        graded.results[todo.id] = outcomes[check]
        if outcomes[check].status == "not attempted":  # a cell that failed says why
            failed = [outcomes[c.label] for c in plan.cells if answers(todo, c.source)]
            graded.results[todo.id] = next(filter(lambda o: o.why, failed), outcomes[check])
    return graded


def _events(worker: subprocess.Popen, limits: Limits, end: float) -> Iterator[dict | Result]:
    """What a worker says; the last event is the limit that it met, in words of our own."""
    started, text = time.monotonic(), b""
    while True:
        now = time.monotonic()
        if now > min(started + limits.step, end):
            limit = Result(TIMED_OUT, f"It took longer than {limits.step:.0f} s.")
            break
        if _memory(worker) > limits.memory:
            size = f"{limits.memory / 2**30:.3g} GiB"
            limit = Result(MEMORY, f"It took more than {size} of memory.")
            break
        if not select.select([worker.stdout], [], [], _TICK)[0]:
            continue
        data = os.read(worker.stdout.fileno(), 2**16)
        if not data:
            limit = Result(ENDED, f"The process ended, with status {worker.wait()}.")
            break
        *lines, text = (text + data).split(b"\n")
        for event in map(json.loads, lines):
            started = now if "begin" in event else started
            yield event
    yield limit


@contextlib.contextmanager
def _worker(job: dict[str, Any]) -> Iterator[subprocess.Popen]:
    """Context manager: a worker at its job, in a folder that is its home, too."""
    with scratch.folder() as home:
        environment = os.environ | dict.fromkeys(_FOLDERS, home) | _QUIET
        with contextlib.suppress(OSError):  # what was compiled need not be compiled again
            environment[cache.SHARED] = str(cache.folder().parents[1])
        with subprocess.Popen(
            [sys.executable, "-P", "-m", "lab_utils.teach.grade.worker"],
            bufsize=0,
            cwd=home,
            env=environment,
            stdin=subprocess.PIPE,  # stays open: its end tells the worker that this process died
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        ) as worker:
            try:
                with contextlib.suppress(OSError):  # it has ended at once
                    worker.stdin.write(json.dumps(job).encode() + b"\n")
                yield worker
            finally:
                with contextlib.suppress(OSError):
                    os.killpg(worker.pid, signal.SIGKILL)


def _memory(worker: subprocess.Popen) -> int:
    """Bytes of a worker and of all that it has started."""
    with contextlib.suppress(psutil.Error):
        process = psutil.Process(worker.pid)
        return sum(p.memory_info().rss for p in (process, *process.children(recursive=True)))
    return 0
