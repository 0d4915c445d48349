"""A plan carried out under limits: worker after worker, until each TODO has its result."""

import contextlib
import json
import os
import secrets
import selectors
import subprocess
import threading
import time
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from lab_utils.check import todos
from lab_utils.common import scratch
from lab_utils.teach.grade import processes
from lab_utils.teach.grade.cells import Cell, Plan, definitions

_LAST_WORD = 5  # seconds that a process has to end
_TICK = 0.25  # seconds between two looks at the memory
_LONGEST_LINE = 2**20  # bytes of one event
_DEFINITIONS = ": its definitions"  # behind a cell's label
TIMED_OUT, ENDED, MEMORY = "timed out", "ended its process", "out of memory"


class Stopped(Exception):
    """Grading was interrupted."""


@dataclass(frozen=True)
class Limits:
    """Seconds for a cell or a check, seconds for a notebook, bytes of memory of its processes.

    What sets `stop` ends all that runs.
    """

    step: float = 180
    total: float = 1200
    memory: int = 6 * 2**30
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
        """One phrase: graded, could not be read, or which limit was met where."""
        if self.problem:
            return f"could not be graded: {self.problem}"
        limits = {
            kind: [id for id, result in self.results.items() if result.status == kind]
            for kind in (TIMED_OUT, ENDED, MEMORY, "cannot be checked here")
        }
        told = [f"{kind} in {', '.join(ids)}" for kind, ids in limits.items() if ids]
        return f"graded; {'; '.join(told)}" if told else "graded"


def grade(plan: Plan, limits: Limits) -> Graded:
    """Runs a plan's cells and checks. What ends a worker is left out in the next one.

    Raises:
        Stopped: so it was asked.
    """
    graded = Graded(plan.lab, remarks=list(plan.remarks))
    asked = [todo.id for todo in todos.of_lab(plan.lab)]
    skipped: dict[str, Result] = {}
    errors: dict[str, str] = {}
    end = time.monotonic() + limits.total
    while len(graded.results) < len(asked):
        open_todos = [id for id in asked if id not in graded.results]
        cells = [each for cell in plan.cells if (each := _left_of(cell, skipped))]
        job = {
            "lab": plan.lab,
            "given": plan.given,
            "todos": open_todos,
            "cells": [asdict(each) | {"defines": definitions(each.source)} for each in cells],
            "beside": plan.beside,
            "called": plan.called,
        }
        last, broken = _round(job, limits, end, graded, errors)
        if broken is None:
            break
        kind, _, name = last.partition(" ")
        if kind == "lab":
            graded.problem = f"the lab's own cells do not run here ({broken.why})"
            return graded
        if kind == "cell":
            skipped[name] = broken
            label, defined, _ = name.partition(_DEFINITIONS)
            kept = "" if defined else ", but for what it defines"
            graded.remarks.append(f"cell {label} was left out{kept}: {broken.why}")
        else:  # a thread of the learner's may end the process when this check has its result
            still_open = [id for id in open_todos if id not in graded.results]
            for id in [name] if name in still_open else still_open[:1]:
                graded.results[id] = broken
        if time.monotonic() >= end:
            rest = Result(TIMED_OUT, f"The notebook took longer than {limits.total:.0f} s.")
            graded.results = {id: graded.results.get(id, rest) for id in asked}
    lost = Result(ENDED, "Its check gave no result.")
    graded.results = {id: graded.results.get(id, lost) for id in asked}
    _explain(graded, plan, skipped, errors)
    return graded


def _left_of(cell: Cell, skipped: dict[str, Result]) -> Cell | None:
    """The cell; what it defines, where all of it has met a limit; None where that has, too."""
    if cell.label not in skipped:
        return cell
    kept = replace(cell, label=f"{cell.label}{_DEFINITIONS}", source=definitions(cell.source))
    more = kept.source not in ("", cell.source)
    return kept if more and kept.label not in skipped else None


def _explain(
    graded: Graded, plan: Plan, skipped: dict[str, Result], errors: dict[str, str]
) -> None:
    """A TODO whose cell did not run says why, rather than that it was not attempted."""
    for cell in plan.cells:
        for id in cell.todos:
            if graded.results[id].status != "not attempted":
                continue
            if cell.label in skipped:
                graded.results[id] = skipped[cell.label]
            elif errors.get(cell.label):
                graded.results[id] = Result("incorrect", errors[cell.label])


def _round(
    job: dict[str, Any], limits: Limits, end: float, graded: Graded, errors: dict[str, str]
) -> tuple[str, Result | None]:
    """One worker's life: what it was at when it ended, and why it ended early, or None."""
    token, at, started = secrets.token_hex(16), "lab", time.monotonic()
    with contextlib.ExitStack() as stack:
        home = os.path.join(stack.enter_context(scratch.folder()), "home")
        os.mkdir(home)
        reader, writer = os.pipe()
        stack.callback(os.close, reader)
        worker = processes.start(home, writer, job | {"token": token})
        stack.callback(processes.end, worker, home)
        os.close(writer)
        selector = stack.enter_context(selectors.DefaultSelector())
        selector.register(reader, selectors.EVENT_READ)
        waiting = b""
        while True:
            if limits.stop.is_set():
                raise Stopped
            now = time.monotonic()
            if now > started + limits.step or now > end:
                seconds = min(limits.step, limits.total)
                return at, Result(TIMED_OUT, f"It took longer than {seconds:.0f} s.")
            if processes.memory(worker.pid) > limits.memory:
                return at, Result(
                    MEMORY, f"It took more than {limits.memory / 2**30:.3g} GiB of memory."
                )
            if not selector.select(_TICK):
                continue
            data = os.read(reader, 2**16)
            if not data:
                with contextlib.suppress(subprocess.TimeoutExpired):  # the channel was closed
                    worker.wait(_LAST_WORD)
                return at, Result(ENDED, f"The process ended{_told(worker.returncode)}.")
            *lines, waiting = (waiting + data)[-_LONGEST_LINE:].split(b"\n")
            for event in filter(None, (_event(line, token) for line in lines)):
                if "begin" in event:
                    at, started = event["begin"], time.monotonic()
                if event.get("end"):
                    return "end", None
                if "lacking" in event:
                    return at, Result(ENDED, event["lacking"])
                _note(event, graded, errors)


def _note(event: dict[str, Any], graded: Graded, errors: dict[str, str]) -> None:
    if "todo" in event:
        graded.results[event["todo"]] = Result(event["status"], event["why"])
    if "cell" in event:
        errors[event["cell"]] = event["error"]
    graded.predictions |= event.get("predictions", {})
    told = [event["remark"]] if "remark" in event else []
    if event.get("changed"):
        told.append(f"replaced {', '.join(event['changed'][:5])}; they were put back")
    graded.remarks += [each for each in told if each not in graded.remarks]


def _event(line: bytes, token: str) -> dict[str, Any] | None:
    """A line of the worker's; None for what bears another token, or is damaged."""
    try:
        event = json.loads(line)
        return event if secrets.compare_digest(event["token"], token) else None
    except (ValueError, KeyError, TypeError, RecursionError):
        return None


def _told(status: int | None) -> str:
    """How a process has ended, after "The process ended"."""
    if status is None:
        return " its connection to the grader"
    return f", with status {status}" if status >= 0 else f" by signal {-status}"
