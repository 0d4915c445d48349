"""What to do as soon as a program imports a package, before which it may choose the package's backend."""

import contextlib
import sys
from collections.abc import Callable, Iterator, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any


@contextlib.contextmanager
def on_import(actions: dict[str, Callable[[ModuleType], None]]) -> Iterator[None]:
    """Context manager: calls `actions[name]` with the package `name` once it is imported, or now if it is."""
    finder = _Finder(dict(actions))
    for name in [name for name in actions if name in sys.modules]:
        finder.actions.pop(name)(sys.modules[name])
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)


class _Finder(MetaPathFinder):
    """Lets the finders behind it find a package, and adds the action to its loading."""

    def __init__(self, actions: dict[str, Callable[[ModuleType], None]]) -> None:
        self.actions = actions

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname not in self.actions:
            return None
        behind = sys.meta_path[
            sys.meta_path.index(self) + 1 :
        ]  # one before may be another of these
        specs = (finder.find_spec(fullname, path, target) for finder in behind)
        spec = next((spec for spec in specs if spec is not None), None)
        if spec is None or spec.loader is None:
            return spec
        execute = spec.loader.exec_module

        def exec_module(module: Any) -> None:
            execute(module)
            if action := self.actions.pop(fullname, None):
                action(module)

        spec.loader.exec_module = exec_module
        return spec
