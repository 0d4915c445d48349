"""What the grader runs in a learner's kernel, sent as text: nothing imported there is relied on."""

import importlib
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

from IPython import get_ipython

_INSTALLS = re.compile(r"\b(pip3?|conda|mamba|uv|apt|apt-get|brew)\b.*\b(install|add)\b")
_INSTALLERS = ("pip", "conda", "mamba", "uv", "tensorflow_version")


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
    the notebook are made of it.
    """
    names = get_ipython().user_ns
    shown = set(_of_solutions())
    for name in [each for each in sys.modules if f"{each}.".startswith("lab_utils.check.")]:
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
    Path(answer).write_text(ascii(told), encoding="ascii")


def _of_solutions() -> Iterator[int]:
    """The identities of objects of our solutions, which `working` hands out; small values are anybody's."""
    for name, module in list(sys.modules.items()):
        if name.startswith("lab_utils_solution_of"):
            for value in vars(module).values():
                if not isinstance(value, str | int | float | None):
                    yield id(value)
