"""What to do as soon as a program imports a package, before which it may choose the package's backend."""

import contextlib
import importlib
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from lab_utils.common import loading

ESTIMATOR = "lab_utils.estimator"  # what gives TensorFlow its Estimator, when that is imported


def give_tensorflow_its_estimator() -> None:
    """From here on TensorFlow has its Estimator, and tf.keras is Keras 2, as soon as it is imported.

    Where lab_utils.estimator cannot be imported TensorFlow stays as it is: its own import says why, where
    somebody needs it.
    """

    def install(tensorflow: ModuleType) -> None:
        with contextlib.suppress(ImportError):
            importlib.import_module(ESTIMATOR)

    loading.prepare()
    once_imported("tensorflow", install)


def once_imported(name: str, action: Callable[[ModuleType], None]) -> None:
    """Calls `action` with the package `name` as soon as it is imported, or now if it is."""
    if name in sys.modules:
        action(sys.modules[name])
    else:
        sys.meta_path.insert(0, _Finder({name: action}))


@contextlib.contextmanager
def on_import(
    actions: dict[str, Callable[[ModuleType], None]],
    within: Callable[[], AbstractContextManager[None]] = contextlib.nullcontext,
) -> Iterator[None]:
    """Context manager: calls `actions[name]` with the package `name` once it is imported, or now if it is.

    The packages are imported in the context that `within` makes.
    """
    finder = _Finder(dict(actions), within)
    for name in [name for name in actions if name in sys.modules]:
        finder.actions.pop(name)(sys.modules[name])
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)


class _Finder(MetaPathFinder):
    """Lets the finders behind it find a package, and adds the action to its loading."""

    def __init__(
        self,
        actions: dict[str, Callable[[ModuleType], None]],
        within: Callable[[], AbstractContextManager[None]] = contextlib.nullcontext,
    ) -> None:
        self.actions, self.within = actions, within

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
            with self.within():
                execute(module)
            if action := self.actions.pop(fullname, None):
                action(module)

        spec.loader.exec_module = exec_module
        return spec
