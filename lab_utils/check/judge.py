"""What is to be said of a learner's objects: cases beside those of our solution, known slips, exceptions."""

import contextlib
import functools
import io
import itertools
import os
import re
from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lab_utils.check import returns, sources, todos
from lab_utils.check.outcome import CannotCheck, NotAttempted, Status, Wrong
from lab_utils.check.same import a, difference
from lab_utils.check.tools import reason
from lab_utils.common import source

_CHECKS = str(Path(__file__).parent)
_PATIENCE = 10.0  # seconds of CPU time in which slips are tried, on a busy machine as many as on an idle one


@dataclass
class Results:
    """What a check found: cases with the tolerance of their numbers, and its sentence or exception."""

    cases: dict[str, tuple[Any, float]] = field(default_factory=dict)
    end: str | BaseException = ""


def judge(entry: todos.Todo, attempts: Sequence[Any]) -> tuple[Status, str]:
    """The verdict on the learner's objects, and the reason."""
    values = [attempt.values() if isinstance(attempt, dict) else [attempt] for attempt in attempts]
    if any(value is ... for value in itertools.chain(*values)):  # those of the starter
        return Status.NOT_ATTEMPTED, "Replace the dots with your code."
    results = _results(entry, attempts)
    why = _apart(entry, results)
    verdict = None if why else _verdict_on_end(entry, results.end)
    if verdict is not None:
        return verdict
    if not_function := _not_function(entry, attempts):
        return Status.INCORRECT, not_function
    why = why or _exception(results.end)
    sentences = [_slip(entry, results), why]
    if "return missing" not in "\n".join(sentences):
        sentences = [*_missing_returns(entry, attempts), *sentences]
    return Status.INCORRECT, "\n".join(filter(None, sentences))


def _verdict_on_end(entry: todos.Todo, end: str | BaseException) -> tuple[Status, str] | None:
    """The verdict where all cases are right and the check came to an end of these kinds; else None."""
    if isinstance(end, CannotCheck):
        return Status.CANNOT_CHECK, str(end)
    if isinstance(end, NotAttempted):
        return Status.NOT_ATTEMPTED, str(end)
    if starter := _open(entry.id, end):
        return Status.NOT_ATTEMPTED, starter
    return (Status.CORRECT, end) if isinstance(end, str) else None


def _missing_returns(entry: todos.Todo, attempts: Sequence[Any]) -> list[str]:
    """Sentences on functions that return nothing, the last one's first."""
    whole = sources.text(entry.lab)
    sentences = (
        returns.missing_return(attempt, name, whole)
        for name, attempt in zip(entry.names, attempts, strict=True)
    )
    return [sentence for sentence in sentences if sentence][::-1]


def _not_function(entry: todos.Todo, attempts: Sequence[Any]) -> str:
    """A sentence on a value in the place of the function that a TODO asks for; "" where there is none."""
    for name, attempt in zip(entry.names, attempts, strict=True):
        function = re.search(rf"^def {re.escape(name)}\b", sources.text(entry.lab), re.M)
        if function and not callable(attempt) and attempt is not None:
            found = f"{name} should be a function; this is {a(attempt)}."
            return f"{found} Hand over the function itself, without calling it: {todos.call(entry)}"
    return ""


def _results(entry: todos.Todo, objects: Sequence[Any], like: Results | None = None) -> Results:
    """Runs a check to its end, also where a case is wrong; no further than it agrees with `like`."""
    results = Results()
    try:
        running = entry.function(*objects)
        results.end = running if isinstance(running, str) else _drain(running, results, like)
    except (Exception, SystemExit) as error:
        # Python turns a StopIteration of the learner's within a generator into a RuntimeError.
        ended = isinstance(error.__cause__, StopIteration)
        results.end = error.__cause__ if ended else error
    return results


def _drain(running: Generator, results: Results, like: Results | None) -> str:
    """Adds the cases of a check to `results`, as far as they agree with `like`; returns its sentence."""
    while True:
        try:
            label, result, *tolerance = next(running)
        except StopIteration as stop:
            return stop.value
        assert label not in results.cases, f"two cases have one label: {label}"
        results.cases[label] = result, *(tolerance or [1e-6])
        if like and (label not in like.cases or _differs(label, results, like)):
            return ""


@functools.cache
def _of_solution(entry: todos.Todo) -> Results:
    """Runs a check on the objects of our solution, once in a process."""
    return _of_module(entry, sources.solved(entry.lab))


def _of_module(entry: todos.Todo, module: Any, like: Results | None = None) -> Results:
    """Runs a check on the objects of a solution, or of one with a slip, and hides what they print."""
    with contextlib.redirect_stdout(io.StringIO()):
        return _results(entry, [getattr(module, name) for name in entry.names], like)


def _differs(label: str, expected: Results, actual: Results) -> str:
    """How one case differs; "" where it does not."""
    result, tolerance = expected.cases[label]
    return difference(result, actual.cases[label][0], tolerance)


def _apart(entry: todos.Todo, results: Results) -> str:
    """The first case in which the learner's result is not that of our solution; "" where there is none."""
    ours = _of_solution(entry) if results.cases else results
    for label in results.cases:
        if apart := _differs(label, ours, results):
            return f"{label}: {apart}."
    return ""


def _slip(entry: todos.Todo, results: Results) -> str:
    """What is said of the slip that gives the same results as the learner's objects; "" if none does."""
    end = _cpu_time() + _PATIENCE
    for number, slip in enumerate(entry.slips, 1):
        if _cpu_time() > end:
            break
        with contextlib.suppress(Exception):
            text = sources.with_slip(entry.id, slip.old, slip.new)
            module = sources.load(text, f"TODO {entry.id}, with slip {number}")
            theirs = _of_module(entry, module, like=results)
            ends = [(type(run.end), str(run.end)) for run in (theirs, results)]
            if theirs.cases.keys() == results.cases.keys() and ends[0] == ends[1]:
                return slip.says
    return ""


def _cpu_time() -> float:
    """Seconds that this process, and its children that have ended, computed."""
    return sum(os.times()[:4])


def _open(id: str, error: str | BaseException) -> str:
    """What is to be said of a starter: this TODO's own, or another's that it builds on; "" of all else."""
    if not isinstance(error, NotImplementedError):
        return ""
    match = re.search(r"TODO (\d+[a-z])", str(error))
    if match is None and str(error):
        return ""
    if match is None or match[1] == id:  # nbgrader's own starter says nothing
        return "Replace `raise NotImplementedError` with your code."
    first = f"This TODO uses TODO {match[1]}, which is not solved yet."
    return f"{first} Solve that one first and run its cell, then run this check again."


def _exception(end: BaseException) -> str:
    """What an exception of a check, or of the learner's code, says, with its line."""
    if isinstance(end, Wrong):
        return str(end)
    if isinstance(end, SystemExit):
        return "Your code ends the process (sys.exit, exit or quit): raise an exception instead."
    traceback = end.__traceback__
    while traceback and traceback.tb_frame.f_code.co_filename.startswith(_CHECKS):
        traceback = traceback.tb_next
    place = source.place(end.with_traceback(traceback))
    if place:
        return f"Your code raised {reason(end)}\nAt {place}"
    return f"The check could not use your answer. {reason(end)}"
