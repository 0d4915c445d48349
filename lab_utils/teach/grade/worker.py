"""Runs one learner's cells and our checks in a process: `python -P -m lab_utils.teach.grade.worker`.

The job comes as a line of JSON on standard input, and what happens goes as lines of JSON to standard output.
The process above (`runs`) sets the limits, and starts another worker where this one ends early.
"""

import ast
import builtins
import importlib
import os
import signal
import sys
import threading
import types
from collections.abc import Callable
from json import dumps, loads
from traceback import walk_tb
from typing import Any
from unittest.mock import MagicMock

_MOST = 4000  # characters of a message
_MOST_MISSING = 10  # modules of another place that one cell may import
_INERT = ("check", "compare", "hint", "predict", "ready", "solution", "input")
_MAGICS = ("pip", "conda", "mamba", "uv", "tensorflow_version", "tensorboard", "matplotlib")
_DEFINING = ast.Import | ast.ImportFrom | ast.FunctionDef | ast.ClassDef


def main() -> None:
    """Does the job of standard input."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    jobs, channel = os.fdopen(os.dup(0)), os.dup(1)
    for stream in (0, 1, 2):
        os.dup2(nowhere, stream)
    job = loads(jobs.readline())

    def end_with_grader() -> None:
        jobs.read()
        os.killpg(0, signal.SIGKILL)

    threading.Thread(target=end_with_grader, daemon=True).start()

    def tell(**event: Any) -> None:
        os.write(channel, (dumps(event) + "\n").encode())

    from IPython.core.interactiveshell import InteractiveShell

    module = types.ModuleType("__main__")
    module.__dict__["__builtins__"] = builtins
    shell = InteractiveShell.instance(user_module=module)
    try:
        for source in job["prelude"]:
            shell.run_cell(source).raise_error()
    except Exception as error:
        tell(end="", status="", why=f"{type(error).__name__}: {error}"[:_MOST])
        return
    _stand_in(shell)
    for source in job["starters"]:
        shell.run_cell(source)
    again = [cell for cell in job["cells"] if _run(shell, cell, tell)]
    for cell in again:  # names of cells that stand further down
        _run(shell, cell, tell)
    for id in job["todos"]:
        tell(begin=f"check {id}")
        runner = _checks()
        todo = runner.todos.find(id)
        if missing := [name for name in todo.names if name not in module.__dict__]:
            status, why = "not attempted", f"No cell defines {', '.join(missing)}."
        else:
            status, why = runner.judge(todo, [module.__dict__[name] for name in todo.names])
        tell(end=f"check {id}", status=str(status), why=why[:_MOST])
    os._exit(0)  # threads that a learner's code has started are not waited for


def _checks() -> types.ModuleType:
    """The checks, read from our files again: nobody has changed these objects yet."""
    for name in list(sys.modules):
        if name == "lab_utils.check" or name.startswith("lab_utils.check."):
            del sys.modules[name]
    return importlib.import_module("lab_utils.check.runner")


def _stand_in(shell: Any) -> None:
    """While the learner's cells run, checks, shell commands and installations do nothing."""

    def nothing(*arguments: Any, **keywords: Any) -> str:
        return ""

    names = dict.fromkeys(_INERT, nothing) | {"working": lambda attempt, *needs: attempt}
    vars(importlib.import_module("lab_utils.check")).update(names)
    shell.user_ns.update(names)
    shell.system = shell.getoutput = nothing
    for name in _MAGICS:
        shell.register_magic_function(nothing, "line", name)


def _run(shell: Any, cell: dict[str, Any], tell: Callable[..., None]) -> bool:
    """Runs a cell; returns whether it asked for a name that there is not yet."""
    tell(begin=cell["label"])
    definitions = _definitions(shell.transform_cell(cell["source"]))
    for _ in range(_MOST_MISSING):
        result = shell.run_cell(cell["source"] if cell["whole"] else definitions)
        error = result.error_before_exec or result.error_in_exec
        if not isinstance(error, ModuleNotFoundError) or not error.name:
            break
        sys.modules[error.name] = MagicMock()  # of another place, such as google.colab
    if error is None:
        tell(end=cell["label"], status="", why="")
        return False
    frames = walk_tb(error.__traceback__)
    lines = [line for frame, line in frames if frame.f_globals is shell.user_ns]
    line = (lines or [getattr(error, "lineno", "?")])[-1]
    message = f"{cell['label'].capitalize()}, line {line} raised {type(error).__name__}: {error}"
    tell(end=cell["label"], status="incorrect", why=message[:_MOST])
    shell.run_cell(definitions)  # what stands below the line that raised
    return isinstance(error, NameError)


def _definitions(source: str) -> str:
    """The imports, functions, classes and constants of a cell."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError):
        return ""
    tree.body = [
        node
        for node in tree.body
        if isinstance(node, _DEFINING)
        or (isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant))
    ]
    return ast.unparse(tree)


if __name__ == "__main__":
    main()
