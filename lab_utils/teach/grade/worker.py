"""Runs one learner's cells and our checks in a process: `python -P -m lab_utils.teach.grade.worker FD`.

The job comes as JSON on standard input, and what happens goes as lines of JSON to the descriptor FD, each
with the job's token. The process above (`runs`) sets the limits, and starts another one where this
one ends early.
"""

import builtins
import importlib
import json
import os
import re
import select
import signal
import sys
import threading
import types
from collections.abc import Callable
from functools import partial
from typing import Any

from lab_utils.teach.grade.foreign import Places
from lab_utils.teach.grade.kept import Kept
from lab_utils.teach.grade.watch import Watch

_LONGEST_MESSAGE = 4000  # characters
_MOST_PREDICTIONS = 100
_MOST_QUESTIONS = 100
_MOST_ATTEMPTS = 10  # to run a cell, with something more standing in each time


class _NoSolutions:
    """A finder that hides our solutions from the learner's code."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        if name.startswith("lab_utils.check.solved.") and not _asked_by_the_package():
            raise ImportError("our solutions cannot be used while this is graded")


def _asked_by_the_package() -> bool:
    """Whether the module that imports is one of ours; importlib stands between."""
    frame = sys._getframe(2)
    while frame and "importlib" in frame.f_code.co_filename:
        frame = frame.f_back
    return frame is not None and frame.f_globals.get("__name__", "").startswith("lab_utils.")


def _inert(predictions: dict[str, float], remark: Callable[[str], None]) -> dict[str, Callable]:
    """What stands under the names of lab_utils.check, and for input(), while the learner's cells run."""
    asked = []

    def predict(name: str, value: Any, unit: str = "") -> None:
        fits = len(predictions) < _MOST_PREDICTIONS
        if fits and isinstance(value, int | float) and not isinstance(value, bool):
            predictions[str(name)[:200]] = float(value)

    def nothing(*arguments: Any, **named: Any) -> None:
        return None

    def working(attempt: Any, *needs: str) -> Any:
        return attempt

    def nobody_types(prompt: Any = "") -> str:
        asked.append(prompt)
        remark("asks for input; nobody types while this is graded, so each answer is empty")
        if len(asked) > _MOST_QUESTIONS:  # `while input() != "y":`
            raise EOFError("it asks for input again and again, and nobody types")
        return ""

    names = dict.fromkeys(("check", "compare", "hint", "ready", "solution"), nothing)
    return names | {"predict": predict, "working": working, "input": nobody_types}


def _checks() -> types.ModuleType:
    """The checks, read from the package again; nobody has their objects yet."""
    for name in list(sys.modules):
        if name == "lab_utils.check" or name.startswith("lab_utils.check."):
            del sys.modules[name]
    importlib.invalidate_caches()
    return importlib.import_module("lab_utils.check.runner")


def _end_with_grader(descriptor: int) -> None:
    """Waits until nobody reads what is told here; then this process and all that it has started end."""
    channel = select.poll()
    channel.register(descriptor, 0)  # its errors alone
    channel.poll()
    os.killpg(0, signal.SIGKILL)


def main(descriptor: int) -> None:
    """Does the job of standard input."""
    threading.Thread(target=_end_with_grader, args=(descriptor,), daemon=True).start()
    job = json.loads(sys.stdin.read())
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    token = job["token"]

    def tell(**event: Any) -> None:
        os.write(descriptor, (json.dumps(event | {"token": token}) + "\n").encode())

    module = types.ModuleType("__main__")
    module.__dict__["__builtins__"] = builtins
    tell(begin="lab")
    try:
        from IPython.core.interactiveshell import InteractiveShell

        shell = InteractiveShell.instance(user_module=module)
        for source in job["given"]:
            shell.run_cell(source, store_history=False).raise_error()
    except Exception as error:
        tell(lacking=f"{type(error).__name__}: {error}"[:_LONGEST_MESSAGE])
        return
    _checks().todos.of_lab(job["lab"])  # so that all they import is kept
    kept = Kept()
    sys.path.append(os.getcwd())  # for what a learner has, or writes, beside the notebook
    for name, text in job["beside"].items():
        with open(os.path.basename(name), "w", encoding="utf-8") as file:
            file.write(text)
    predictions: dict[str, float] = {}
    watch = Watch(lambda told: tell(remark=told))
    inert = _inert(predictions, lambda told: tell(remark=f"{watch.at} {told}"))
    _stand_in(inert)
    places = Places(shell)
    module.__dict__.update(inert)
    finder = _NoSolutions()
    sys.meta_path.insert(0, finder)
    run = partial(_run, shell, places, watch, tell)
    again = [cell for cell in job["cells"] if run(cell)]
    for cell in again:  # names of cells that stand further down
        run(cell)
    tell(predictions=predictions)
    for todo in job["todos"]:
        changed = kept.restore()
        runner = _checks()
        todos = runner.todos.of_lab(job["lab"])
        entry = next(each for each in todos if each.id == todo)
        names, called = entry.names, job["called"].get(todo)
        missing = [name for name in names if name not in module.__dict__]
        if missing and called and all(name in module.__dict__ for name in called):
            names, missing = called, []
            tell(
                remark=f"TODO {todo} is judged by {', '.join(called)}, which its check is called with"
            )
        if missing:
            tell(todo=todo, status="not attempted", why=f"No cell defines {', '.join(missing)}.")
            continue
        sys.meta_path.insert(0, finder)
        runner.progress.record = lambda id: None
        checks = Kept(checks=True)
        watch.at = f"check {todo}"
        tell(begin=watch.at, changed=sorted(changed))
        outcome = runner.check(todo, *(module.__dict__[name] for name in names))
        status, why = str(outcome.status), outcome.why
        # What it changed just now is older than the outcome, and would be the way of telling it, too.
        if (changed := sorted(kept.restore() | checks.restore())) and status == "correct":
            status, why = (
                "incorrect",
                f"Your code replaced {', '.join(changed[:5])} during its check.",
            )
        tell(todo=todo, status=status, why=why[:_LONGEST_MESSAGE], changed=changed)
    tell(end=True)
    os._exit(0)  # threads that a learner's code has started are not waited for


def _stand_in(inert: dict[str, Callable]) -> None:
    """`from lab_utils.check import check`, in a learner's cell, gives what does nothing."""
    vars(sys.modules["lab_utils.check"]).update(inert)


def _run(shell: Any, places: Places, watch: Watch, tell: Callable, cell: dict[str, Any]) -> bool:
    """Runs a cell; returns whether it asked for a name that there is not yet."""
    watch.at = f"cell {cell['label']}"
    tell(begin=watch.at)
    shell.execution_count = int(re.match(r"\d+", cell["label"])[0])
    for _ in range(_MOST_ATTEMPTS):
        result = shell.run_cell(cell["source"], store_history=False)
        error = result.error_before_exec or result.error_in_exec
        if not (lacked := places.stood_in(error)):
            break
        tell(remark=f"{watch.at} {lacked}")
    if error is not None:
        line = getattr(error, "lineno", None)
        traceback = error.__traceback__
        while traceback is not None:
            line = traceback.tb_lineno if traceback.tb_frame.f_globals is shell.user_ns else line
            traceback = traceback.tb_next
        where = f", line {line}" if line else ""
        try:
            message = str(error)[:400]
        except Exception:  # a class of the learner's own
            message = "(its text cannot be made)"
        told = f"Cell {cell['label']}{where} raised {type(error).__name__}: {message}"
        if cell["defines"]:  # what stands below the line that raised
            shell.run_cell(cell["defines"], store_history=False)
        tell(cell=cell["label"], error=told)
    else:
        tell(cell=cell["label"], error="")
    return isinstance(error, NameError)


if __name__ == "__main__":
    main(int(sys.argv[1]))
