"""Runs a check on the learner's objects, and turns all that can happen into an outcome."""

import os
import re
from pathlib import Path
from typing import Any

from lab_utils.check import life, progress, returns, shown, todos
from lab_utils.check.outcome import CannotCheck, Outcome, Status, Wrong
from lab_utils.common import source

_CHECKS = str(Path(__file__).parent)
_LONGEST = 400  # characters of an exception's message

# What the checks said in this process: `working` asks.
said: dict[str, Status] = {}


class Failed(AssertionError):
    """A check that gives no point, for nbgrader; a notebook shows its message without a stack."""

    def _render_traceback_(self) -> list[str]:
        return [str(self)]


def check(todo: str, *attempts: Any) -> Outcome | None:
    """Checks what the learner wrote for a TODO.

    Args:
        todo: its id, as "1a".
        attempts: the functions or values that the TODO asks for, in the order in which it names them.

    Returns:
        The outcome, which shows itself as the last line of a cell, and also where a hint or another check
        follows in it. The learner's exceptions become outcomes too. None while nbgrader executes the
        notebook: it takes a returned value for points.

    Raises:
        ValueError: there is no such TODO.
        TypeError: it asks for another number of objects.
        Failed: anything but correct while nbgrader executes the notebook, which goes by exceptions.
    """
    entry = todos.find(todo)
    if len(attempts) != len(entry.names):
        raise TypeError(f"write: check({todo!r}, {', '.join(entry.names)})")
    with life.shown(f"Checking TODO {todo}"):
        status, why = _judge(entry, attempts)
    if status is Status.INCORRECT:
        why = _with_return(entry, attempts, why)
    said[todo] = status
    if os.environ.get("NBGRADER_EXECUTION"):
        return _for_nbgrader(Outcome(todo, status, why, 0, 0))
    if status is Status.CORRECT:
        progress.record(todo)
    lab = todos.of_lab(todos.lab_of(todo))
    done = sum(each.id in progress.done() for each in lab)
    seen = sum(each.id in progress.shown() for each in lab)
    outcome = Outcome(todo, status, why, done, len(lab), seen)
    return shown.in_turn(outcome)


def _for_nbgrader(outcome: Outcome) -> None:
    """Shows an outcome. The progress of the person who grades stays as it is."""
    if outcome.status is not Status.CORRECT:
        raise Failed(str(outcome))
    print(outcome)


def _judge(entry: todos.Todo, attempts: tuple) -> tuple[Status, str]:
    if any(attempt is ... for attempt in attempts):
        return Status.NOT_ATTEMPTED, "Replace the dots by your code."
    try:
        return Status.CORRECT, entry.function(*attempts)
    except Wrong as wrong:
        return Status.INCORRECT, str(wrong)
    except CannotCheck as lacking:
        return Status.CANNOT_CHECK, str(lacking)
    except NotImplementedError as error:
        return _open(entry.id, error)
    except SystemExit:
        return (
            Status.INCORRECT,
            "Your code ends the process (sys.exit, exit or quit): raise an error of its own instead.",
        )
    except Exception as error:
        return Status.INCORRECT, _told(error)


def _with_return(entry: todos.Todo, attempts: tuple, why: str) -> str:
    """`why`, after a word on a return that is missing."""
    solution = todos.source(todos.lab_of(entry.id))
    for name, attempt in zip(entry.names, attempts, strict=True):
        told = returns.forgotten(attempt, name, solution)
        if told and "return missing" not in why:
            return f"{told}\n{why}"
    return why


def _open(id: str, error: NotImplementedError) -> tuple[Status, str]:
    """A starter was met: this TODO's own, or another's that it builds on."""
    named = re.search(r"TODO (\d+[a-z])", str(error))
    if named is None and str(error):
        return Status.INCORRECT, _told(error)
    if named is None or named[1] == id:  # nbgrader's own starter says nothing
        return Status.NOT_ATTEMPTED, "Replace `raise NotImplementedError` by your code."
    return Status.NOT_ATTEMPTED, f"It uses TODO {named[1]}, which is not solved yet."


def _told(error: Exception) -> str:
    """An exception of the learner's code: what it says, and the line that raised it."""
    kind = type(error).__name__
    message = _shortened(
        _reason(str(error)).removeprefix(f"{kind}: ")
    )  # AutoGraph repeats the kind
    traceback = error.__traceback__
    while traceback and traceback.tb_frame.f_code.co_filename.startswith(_CHECKS):
        traceback = traceback.tb_next
    place = source.place(error.with_traceback(traceback))
    if place:
        return f"Your code raised {kind}: {message}\nAt {place}"
    return f"The check could not run on what you gave. {kind}: {message}"


def _reason(text: str) -> str:
    """What an exception says without the stacks that TensorFlow puts before and after it, on one line."""
    text = re.split(r"\n *Original stack trace for ", text)[0]
    if "Detected at node" in text:
        text = re.split(r"\nNode: .*\n", text)[-1]
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if lines and lines[0].startswith("in user code"):  # AutoGraph puts the message last
        lines = lines[-1:]
    text = " ".join(line for line in lines if not line.startswith("[[{{node"))
    text = re.sub(r"\{\{function_node [^}]*\}\} ?", "", text)
    return re.sub(r" ?\[Op:[^\]]*\]( name: .*)?$", "", text)


def _shortened(text: str) -> str:
    """The beginning and the end of a long text: either may hold the reason."""
    if len(text) <= _LONGEST:
        return text
    return f"{text[: _LONGEST // 3]} ... {text[-2 * _LONGEST // 3 :]}"
