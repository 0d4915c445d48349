"""Runs one learner's cells and our checks, in a process of its own: `python -P -m lab_utils.grade.worker FD`.

The job comes as JSON on standard input, and what happens goes as lines of JSON to the descriptor FD, each
with the job's token. The process above (`runs`) sets the limits, and starts another one where this
one ends early.
"""

import builtins
import importlib
import json
import os
import re
import sys
import types
from collections.abc import Callable
from typing import Any
from unittest.mock import MagicMock

# Whose functions and classes are put back before a check. Others are changed by libraries themselves.
_KEPT = {
    "builtins",
    "lab_utils",
    "tensorflow",
    "tensorflow_estimator",
    "keras",
    "tf_keras",
    "numpy",
}
_KEPT |= {
    "ast",
    "contextlib",
    "functools",
    "importlib",
    "inspect",
    "json",
    "math",
    "os",
    "posix",
    "re",
    "types",
}
_COLAB = (
    "auth",
    "data_table",
    "drive",
    "files",
    "output",
    "patches",
    "runtime",
    "userdata",
    "widgets",
)
_KINDS = (types.FunctionType, types.BuiltinFunctionType, type)
_MISSING = object()


class Kept:
    """The functions and classes of the process before the learner's code ran."""

    def __init__(self) -> None:
        self._import_system = (list(sys.path), list(sys.meta_path), list(sys.path_hooks))
        self._modules = {
            name: module
            for name, module in sys.modules.items()
            if name.split(".")[0] in _KEPT
            and not name.startswith("lab_utils.check")  # read again each time
            and isinstance(module, types.ModuleType)
        }
        self._names = [
            (module, name, value, getattr(value, "__code__", None))
            for module in self._modules.values()
            for name, value in list(vars(module).items())
            if isinstance(value, _KINDS)
        ]

    def restore(self) -> set[str]:
        """Puts back what is not as it was; returns the names."""
        changed = {
            name for name, module in self._modules.items() if sys.modules.get(name) is not module
        }
        sys.modules.update(self._modules)
        sys.path[:], sys.meta_path[:], sys.path_hooks[:] = self._import_system
        for module, name, value, code in self._names:
            if vars(module).get(name, _MISSING) is not value:
                vars(module)[name] = value
                changed.add(f"{module.__name__}.{name}")
            if code is not None and value.__code__ is not code:
                value.__code__ = code
                changed.add(f"{module.__name__}.{name}")
        return changed


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


def _inert(predictions: dict[str, float]) -> dict[str, Callable]:
    """What stands under the names of lab_utils.check while the learner's cells run."""

    def predict(name: str, value: Any, unit: str = "") -> None:
        if isinstance(value, int | float) and not isinstance(value, bool):
            predictions[str(name)[:200]] = float(value)

    def nothing(*arguments: Any, **named: Any) -> None:
        return None

    def working(attempt: Any, *needs: str) -> Any:
        return attempt

    def nobody_types(prompt: Any = "") -> str:
        return ""

    names = dict.fromkeys(("check", "compare", "hint", "ready", "solution"), nothing)
    return names | {"predict": predict, "working": working, "input": nobody_types}


def _colab() -> None:
    """Modules that Colab alone has: here they take any use, and do nothing."""
    import google  # protobuf's

    google.colab = sys.modules["google.colab"] = MagicMock()
    for name in _COLAB:
        sys.modules[f"google.colab.{name}"] = getattr(google.colab, name)


def _checks() -> types.ModuleType:
    """The checks, read from the package again; nobody has their objects yet."""
    for name in list(sys.modules):
        if name == "lab_utils.check" or name.startswith("lab_utils.check."):
            del sys.modules[name]
    importlib.invalidate_caches()
    return importlib.import_module("lab_utils.check.runner")


def main(descriptor: int) -> None:
    """Does the job of standard input."""
    job = json.loads(sys.stdin.read())
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    token = job["token"]

    def tell(**event: Any) -> None:
        os.write(descriptor, (json.dumps(event | {"token": token}) + "\n").encode())

    from IPython.core.interactiveshell import InteractiveShell

    module = types.ModuleType("__main__")
    module.__dict__["__builtins__"] = builtins
    shell = InteractiveShell.instance(user_module=module)
    tell(begin="lab")
    for source in job["given"]:
        shell.run_cell(source, store_history=False).raise_error()
    _checks().todos.of_lab(job["lab"])  # so that all they import is kept
    kept = Kept()
    sys.path.append(os.getcwd())  # for what a learner has, or writes, beside the notebook
    for name, text in job["beside"].items():
        with open(os.path.basename(name), "w", encoding="utf-8") as file:
            file.write(text)
    predictions: dict[str, float] = {}
    inert = _inert(predictions)
    _stand_in(inert)
    _colab()
    module.__dict__.update(inert)
    finder = _NoSolutions()
    sys.meta_path.insert(0, finder)
    again = [cell for cell in job["cells"] if _run(shell, cell, tell)]
    for cell in again:  # names of cells that stand further down
        _run(shell, cell, tell)
    tell(predictions=predictions)
    for todo in job["todos"]:
        changed = kept.restore()
        runner = _checks()
        todos = runner.todos.of_lab(job["lab"])
        entry = next(each for each in todos if each.id == todo)
        missing = [name for name in entry.names if name not in module.__dict__]
        if missing:
            tell(todo=todo, status="not attempted", why=f"No cell defines {', '.join(missing)}.")
            continue
        sys.meta_path.insert(0, finder)
        runner.progress.record = lambda id: None
        tell(begin=f"check {todo}", changed=sorted(changed))
        outcome = runner.check(todo, *(module.__dict__[name] for name in entry.names))
        tell(todo=todo, status=str(outcome.status), why=outcome.why)
    tell(changed=sorted(kept.restore()))
    tell(end=True)
    os._exit(0)  # threads that a learner's code has started are not waited for


def _stand_in(inert: dict[str, Callable]) -> None:
    """`from lab_utils.check import check`, in a learner's cell, gives what does nothing."""
    vars(sys.modules["lab_utils.check"]).update(inert)


def _run(shell: Any, cell: dict[str, Any], tell: Callable) -> bool:
    """Runs a cell; returns whether it asked for a name that there is not yet."""
    tell(begin=f"cell {cell['label']}")
    shell.execution_count = int(re.match(r"\d+", cell["label"])[0])
    result = shell.run_cell(cell["source"], store_history=False)
    error = result.error_before_exec or result.error_in_exec
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
        tell(cell=cell["label"], error=told)
    else:
        tell(cell=cell["label"], error="")
    return isinstance(error, NameError)


if __name__ == "__main__":
    main(int(sys.argv[1]))
