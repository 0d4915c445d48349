"""What the grader runs in a learner's kernel, sent as text: nothing imported there is relied on."""

import importlib
import inspect
import re
import sys
import types
from collections.abc import Callable, Iterator
from importlib.machinery import SourceFileLoader
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

from IPython import get_ipython

_INSTALLS = re.compile(r"\b(pip3?|conda|mamba|uv|apt|apt-get|brew)\b.*\b(install|add)\b")
_INSTALLERS = ("pip", "conda", "mamba", "uv", "tensorflow_version")
_WRAPPERS = ("__wrapped__", "__func__", "fget", "func")  # where they keep the function


def prepare() -> None:
    """Nobody answers a question, `exit` ends no kernel, and nothing is installed into this environment."""
    shell = get_ipython()

    def nothing(*arguments: Any, **keywords: Any) -> str:
        return ""

    def without_installations(run: Callable) -> Callable:
        return lambda command, **more: None if _INSTALLS.search(command) else run(command, **more)

    shell.user_ns["input"] = shell.ask_exit = nothing
    for name in _INSTALLERS:
        shell.register_magic_function(nothing, "line", name)
    shell.system = without_installations(shell.system)
    shell.getoutput = without_installations(shell.getoutput)


def stand_in(message: str) -> None:
    """Puts a stand-in in the place of a missing module: one of another place, such as google.colab."""
    sys.modules[re.search("'([^']+)'", message)[1]] = MagicMock()


def judge(todo: str, arguments: list[str], root: str, answer: str) -> None:
    """Writes the verdict on a check's arguments into the file `answer`, by checks that no cell has touched.

    The checks are imported again from our files. What else of the package is loaded stays, since objects of
    the notebook are made of it; where a cell has changed it, there is no point.
    """
    names = get_ipython().user_ns
    shown = set(_of_solutions())
    changed = ", ".join(_changed(Path(root)))
    for name in _loaded("lab_utils.check"):
        del sys.modules[name]
    sys.meta_path[:] = [finder for finder in sys.meta_path if finder.__module__ != "__main__"]
    sys.path.insert(0, root)
    importlib.invalidate_caches()
    judges = importlib.import_module("lab_utils.check.judge")
    entry = importlib.import_module("lab_utils.check.todos").find(todo)
    sys.path.remove(root)
    try:
        attempts = [eval(each, names) for each in arguments]
    except NameError as error:
        told = "not attempted", f"No cell defines {error.name}.", False
    else:
        status, why = judges.judge(entry, attempts)
        told = str(status), why, any(id(each) in shown for each in attempts)
    if changed:
        told = "incorrect", f"A cell changes the course's own code: {changed}.", False
    Path(answer).write_text(ascii(told), encoding="ascii")


def _loaded(package: str) -> list[str]:
    return [name for name in sys.modules if f"{name}.".startswith(f"{package}.")]


def _of_solutions() -> Iterator[int]:
    """The identities of objects of our solutions, which `working` hands out; small values are anybody's."""
    for name, module in list(sys.modules.items()):
        if name.startswith("lab_utils_solution_of"):
            for value in vars(module).values():
                if not isinstance(value, str | int | float | None):
                    yield id(value)


def _changed(root: Path) -> Iterator[str]:
    """The functions and methods of this package that are not what our files say, without the checks."""
    for name in sorted({*_loaded("lab_utils")} - {*_loaded("lab_utils.check")}):
        path = root.joinpath(*name.split("."))
        path = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
        code = SourceFileLoader(name, str(path)).get_code(name)
        for inside in _differing(code, vars(sys.modules[name])):
            yield f"{name}.{inside}"


def _differing(code: types.CodeType, there: dict[str, Any]) -> Iterator[str]:
    """The functions that a module or class body defines, and that are something else there."""
    ours: dict[str, list[types.CodeType]] = {}
    for each in code.co_consts:
        if isinstance(each, types.CodeType) and each.co_name.isidentifier():
            ours.setdefault(each.co_name, []).append(each)
    for name, codes in ours.items():
        value, is_class = there.get(name), not codes[-1].co_flags & inspect.CO_OPTIMIZED
        if is_class and isinstance(value, type):
            yield from (f"{name}.{each}" for each in _differing(codes[-1], vars(value)))
            yield from (f"{name}.{each}" for each in _added(codes[-1], value))
        elif _code(value) not in codes:
            yield name


def _added(code: types.CodeType, kind: type) -> set[str]:
    """The public names of a class that its body does not define, and another class of this package does."""
    bases = (vars(base) for base in kind.__mro__[1:] if base.__module__.startswith("lab_utils"))
    theirs = {name for base in bases for name in base if not name.startswith("_")}
    return theirs & vars(kind).keys() - {*code.co_names, *vars(kind).get("__annotations__", ())}


def _code(value: Any) -> types.CodeType | None:
    """The code of a function, of what a decorator made of it, or of a property."""
    for name in _WRAPPERS:
        if not isinstance(value, types.FunctionType) or name == "__wrapped__":
            value = getattr(value, name, value)
    return getattr(value, "__code__", None)
