"""One notebook graded: in a process of its own (`worker`), which nothing that happens there outlives."""

import contextlib
import json
import os
import signal
import subprocess
import sys
from dataclasses import asdict, dataclass, field
from typing import Any

import psutil

from lab_utils.check.setup import SILENCE
from lab_utils.common import scratch
from lab_utils.dry_run import cache
from lab_utils.teach.grade.submissions import Submission, handed_out, writes

_FOLDERS = ("HOME", "TMPDIR", "IPYTHONDIR", "XDG_STATE_HOME", "XDG_CACHE_HOME", "KERAS_HOME")
_QUIET = {"MPLBACKEND": "Agg", "TF_CPP_MIN_LOG_LEVEL": "3", SILENCE: "1"}
_GRACE = 60  # seconds after the total in which a worker should have ended by itself
MARKS = {
    "correct": ("✓", "right"),
    "incorrect": ("✗", "wrong"),
    "not attempted": ("○", "soft"),
    "cannot be checked here": ("?", "unsure"),
}
OUTCOMES = tuple(MARKS)
CORRECT, INCORRECT, NOT_ATTEMPTED, CANNOT_CHECK = OUTCOMES
LIMITS = TIMED_OUT, ENDED, MEMORY = "timed out", "ended its process", "out of memory"


@dataclass(frozen=True)
class Limits:
    """Seconds for a learner's cell or a check, seconds for a notebook, bytes of memory of its processes."""

    step: float = 120
    total: float = 600
    memory: int = 4 * 2**30


@dataclass(frozen=True)
class Result:
    """What became of a TODO: an outcome of `check`, or the limit that it met; the message; the place."""

    status: str
    why: str
    place: str = ""

    @property
    def points(self) -> int:
        """1 for a correct answer, else 0."""
        return int(self.status == CORRECT)

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
        for kind in (*LIMITS, CANNOT_CHECK):
            if ids := [id for id, result in self.results.items() if result.status == kind]:
                parts.append(f"{kind} in {', '.join(ids)}")
        return "; ".join(parts)


def grade(submission: Submission, limits: Limits) -> Graded:
    """Runs a notebook from its first cell to its last, then our checks, and says what came of each TODO.

    Where a learner has deleted a cell that answers need, the lab's own cells of that kind are run first.
    """
    if submission.lab is None:
        return Graded(None, problem=submission.problem)
    lab = handed_out(submission.lab)
    deleted = {cell.words for cell in lab.given} - {cell.words for cell in submission.cells}
    told = _work(
        {
            "given": [cell.source for cell in lab.given if deleted],
            "cells": [asdict(cell) for cell in submission.cells],
            "checks": lab.checks,
            "limits": asdict(limits),
        },
        limits.total + _GRACE,
    )
    graded = Graded(submission.lab, problem=told["problem"])
    if graded.problem:
        return graded
    ended = {label: Result(**result) for label, result in told["cells"].items()}
    for cell in submission.cells:
        result = ended.get(cell.label)
        if result and result.status in LIMITS:
            graded.remarks.append(f"{cell.label}: {result.why}")
    for id in lab.checks:
        result = graded.results[id] = Result(**told["results"][id])
        answers = [each for each in submission.cells if each.own and writes(each.source, id)]
        if result.status == NOT_ATTEMPTED:  # a cell that failed, or met a limit, says why
            failed = (ended[cell.label] for cell in answers if cell.label in ended)
            graded.results[id] = next(failed, result)
        elif result.points and id in told["ours"]:
            graded.remarks.append(f"TODO {id} is correct with the course's own object")
        elif result.points and not answers:
            graded.remarks.append(
                f"TODO {id} is correct, although no cell of the learner answers it"
            )
    return graded


def _work(job: dict[str, Any], seconds: float) -> dict[str, Any]:
    """What a worker tells of its job, in a folder that is its home, too; `problem` where it ended before."""
    with scratch.folder() as home:
        environment = os.environ | dict.fromkeys(_FOLDERS, home) | _QUIET
        environment.pop("NBGRADER_EXECUTION", None)  # checks then speak as in a learner's notebook
        with contextlib.suppress(OSError):  # what was compiled need not be compiled again
            environment[cache.SHARED] = str(cache.folder().parents[1])
        with subprocess.Popen(
            [sys.executable, "-P", "-m", "lab_utils.teach.grade.worker"],
            cwd=home,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        ) as worker:
            try:
                told, _ = worker.communicate(json.dumps(job).encode(), timeout=seconds)
                return json.loads(told)
            except subprocess.TimeoutExpired:
                return {"problem": f"it took longer than {seconds:.0f} s, and did not end"}
            except ValueError:
                status = worker.wait()
                how = signal.Signals(-status).name if status < 0 else f"status {status}"
                return {"problem": f"the process that ran it was ended, perhaps by it ({how})"}
            finally:
                worker.kill()
                _end_all(home)


def _end_all(home: str) -> None:
    """Ends what a notebook has started and left running, wherever it has moved to."""
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            if process.environ().get("HOME") == home:
                process.kill()
