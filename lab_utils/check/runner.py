"""Runs a check on the learner's objects, and turns all that can happen into an outcome."""

import os
import re
from pathlib import Path
from typing import Any

from lab_utils import source
from lab_utils.check import progress, todos
from lab_utils.check.outcome import CannotCheck, Outcome, Status, Wrong

_CHECKS = str(Path(__file__).parent)
_LONGEST = 400  # characters of an exception's message

# What the checks said in this process: `working` asks.
said: dict[str, Status] = {}


def check(todo: str, *attempts: Any) -> Outcome:
    """Checks what the learner wrote for a TODO.

    Args:
        todo: its id, as "1a".
        attempts: the functions or values that the TODO asks for, in the order in which it names them.

    Returns:
        The outcome, which shows itself as the last line of a cell. The learner's exceptions become
        outcomes too.

    Raises:
        ValueError: there is no such TODO.
        TypeError: it asks for another number of objects.
        AssertionError: anything but correct while nbgrader grades, which goes by exceptions.
    """
    entry = todos.find(todo)
    if len(attempts) != len(entry.names):
        raise TypeError(f"write: check({todo!r}, {', '.join(entry.names)})")
    status, why = _judge(entry, attempts)
    said[todo] = status
    if status is Status.CORRECT:
        progress.record(todo)
    lab = todos.of_lab(todos.lab_of(todo))
    done = sum(each.id in progress.done() for each in lab)
    outcome = Outcome(todo, status, why, done, len(lab))
    if os.environ.get("NBGRADER_EXECUTION") and status is not Status.CORRECT:
        raise AssertionError(str(outcome))
    return outcome


def _judge(entry: todos.Todo, attempts: tuple) -> tuple[Status, str]:
    if any(attempt is ... for attempt in attempts):
        return Status.NOT_ATTEMPTED, "Put your code in the place of the dots."
    try:
        return Status.CORRECT, entry.function(*attempts)
    except Wrong as wrong:
        return Status.INCORRECT, str(wrong)
    except CannotCheck as lacking:
        return Status.CANNOT_CHECK, str(lacking)
    except NotImplementedError as error:
        return _open(entry.id, error)
    except Exception as error:
        return Status.INCORRECT, _told(error)


def _open(id: str, error: NotImplementedError) -> tuple[Status, str]:
    """A starter was met: this TODO's own, or another's that it builds on."""
    named = re.search(r"TODO (\d+[a-z])", str(error))
    if named is None and str(error):
        return Status.INCORRECT, _told(error)
    if named is None or named[1] == id:  # nbgrader's own starter says nothing
        return Status.NOT_ATTEMPTED, "Put your code in the place of `raise NotImplementedError`."
    return Status.NOT_ATTEMPTED, f"It calls on TODO {named[1]}, which is open."


def _told(error: Exception) -> str:
    """An exception of the learner's code: its last words, and the line that raised it."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    if lines and lines[0].startswith("in user code"):  # AutoGraph puts the message last
        lines = lines[-1:]
    kind = type(error).__name__
    message = " ".join(lines).removeprefix(f"{kind}: ")  # AutoGraph puts the kind into the message
    message = re.sub(r"\{\{function_node [^}]*\}\} ?", "", message)
    if len(message) > _LONGEST:
        message = f"{message[:_LONGEST]} ..."
    traceback = error.__traceback__
    while traceback and traceback.tb_frame.f_code.co_filename.startswith(_CHECKS):
        traceback = traceback.tb_next
    place = source.place(error.with_traceback(traceback))
    if place:
        return f"Your code raised {kind}: {message}\nAt {place}"
    return f"What you gave could not be used. {kind}: {message}"
