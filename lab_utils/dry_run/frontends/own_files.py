"""The files of a notebook's `%%writefile` cells: modules are imported from them, nothing is written."""

import importlib.abc
import importlib.machinery
import linecache
import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath
from types import ModuleType
from typing import Any

_TOLD = "the notebook's %%writefile writes nothing in a dry run: run that cell in Jupyter first"


@dataclass
class _File:
    name: str  # of its code: the cell, so that places name that
    text: str  # with its lines at the numbers that they have there


class Written(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """The files by their path below `folder`, and a finder for the modules among them."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._files: dict[PurePath, _File] = {}

    def write(self, line: str, body: str, cell: str) -> None:
        """`%%writefile` with what follows it on its line, its body, and the name of its cell."""
        words = shlex.split(line)
        if not words:
            return
        path = self._place(words[-1])
        before = ""
        if {"-a", "--append"} & set(words):
            there = self._folder / path
            known = self._files.get(path)
            before = known.text if known else there.read_text() if there.is_file() else ""
        text = before + body if before else "\n" + body
        self._files[path] = _File(cell if not before else f"{cell} and before", text)
        file = self._files[path]
        linecache.cache[file.name] = (len(text), None, text.splitlines(keepends=True), file.name)
        if self not in sys.meta_path:
            sys.meta_path.insert(0, self)
        importlib.invalidate_caches()

    def text(self, path: str) -> tuple[str, str] | None:
        """The text of a file that was written, and the name for its code; None for others."""
        file = self._files.get(self._place(path))
        return (file.text, file.name) if file else None

    def explain(self, error: BaseException) -> None:
        """Has an error about a file that was to be written say so."""
        file = error.filename if isinstance(error, FileNotFoundError) else None
        if isinstance(file, str) and self._place(file) in self._files:
            error.strerror = f"{error.strerror} ({_TOLD})"

    def _place(self, path: str) -> PurePath:
        whole = Path(self._folder, path).absolute()
        return whole.relative_to(self._folder) if whole.is_relative_to(self._folder) else whole

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """As importlib asks for it."""
        place = PurePath(*name.split("."))
        for file in (place / "__init__.py", place.with_suffix(".py")):
            if file in self._files:
                spec = importlib.machinery.ModuleSpec(name, self, origin=str(self._folder / file))
                spec.submodule_search_locations = (
                    [str(self._folder / place)] if file.name == "__init__.py" else None
                )
                spec.has_location = True
                return spec
        if any(place in file.parents for file in self._files):  # a package without __init__.py
            spec = importlib.machinery.ModuleSpec(name, None, is_package=True)
            spec.submodule_search_locations = [str(self._folder / place)]
            return spec
        return None

    def exec_module(self, module: Any) -> None:
        """As importlib asks for it."""
        text, name = self.text(module.__spec__.origin)
        exec(compile(text, name, "exec"), vars(module))
