"""What a learner's notebook expects of another place: Colab's modules, packages, magics, installations.

None of it is needed for an answer, so it takes any use here and does nothing.
"""

import importlib.util
import re
import sys
from typing import Any
from unittest.mock import MagicMock

from lab_utils.runtime import colab

_KAGGLE = ("kaggle_datasets", "kaggle_secrets")
# What would change the grader's own environment, start servers, or ask for a screen.
_MAGICS = (
    "pip", "conda", "mamba", "micromamba", "uv", "tensorboard", "tensorflow_version", "matplotlib",
)  # fmt: skip
_INSTALLS = re.compile(r"(^|[\s;&|/])(pip[\d.]*|conda|mamba|uv|apt|apt-get|brew)\s")
_NO_MAGIC = re.compile(r"(Line magic function|Cell magic) `%(%?\w+)")


class Places:
    """Stands in for other places in an IPython shell."""

    def __init__(self, shell: Any) -> None:
        self._shell = shell
        self._missing: set[str] = set()
        colab.stand_in(lambda name: MagicMock())
        for name in _KAGGLE:
            sys.modules[name] = MagicMock()
        for name in _MAGICS:
            shell.register_magic_function(_nothing, "line", name)
        for name in ("system", "getoutput"):  # what `!` becomes
            setattr(shell, name, _unless_installing(getattr(shell, name)))

    def stood_in(self, error: BaseException | None) -> str:
        """What a cell was missing that stands in from now on, so that it can be run again; else ""."""
        if isinstance(error, ModuleNotFoundError) and error.name:
            root = error.name.partition(".")[0]
            if root not in self._missing and _is_here(root):
                return ""
            self._missing.add(root)
            sys.modules[error.name] = MagicMock()
            return f"imports {root}, which is not installed here"
        if found := _NO_MAGIC.search(str(error)) if type(error).__name__ == "UsageError" else None:
            kind, name = found.groups()
            if kind.startswith("Line"):  # "%time": a cell's magic below the first line
                self._shell.register_magic_function(_nothing, "line", name)
            else:
                self._shell.register_magic_function(self._run_body, "cell", name.strip("%"))
            return f"uses %{name}, which is not here"
        return ""

    def _run_body(self, line: str, body: str) -> None:
        self._shell.run_cell(body, store_history=False).raise_error()


def _nothing(line: str) -> None:
    return None


def _unless_installing(run: Any) -> Any:
    def called(command: str, *arguments: Any, **named: Any) -> Any:
        if not _INSTALLS.search(command):
            return run(command, *arguments, **named)
        return None

    return called


def _is_here(package: str) -> bool:
    try:
        return package in sys.modules or importlib.util.find_spec(package) is not None
    except (ImportError, ValueError):
        return True
