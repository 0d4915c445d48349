"""The functions and classes of the worker's process as they were before a learner's code ran."""

import builtins
import sys
import types
from typing import Any

# Whose functions and classes are put back before a check. Others are changed by libraries themselves.
_ROOTS = {
    "builtins", "lab_utils", "numpy", "tensorflow", "tensorflow_estimator", "keras", "tf_keras",
    "_frozen_importlib", "_frozen_importlib_external", "importlib", "io", "marshal", "os", "posix",
    "abc", "ast", "collections", "contextlib", "copy", "dataclasses", "enum", "functools", "inspect",
    "itertools", "json", "math", "numbers", "operator", "pathlib", "random", "re", "types",
}  # fmt: skip
_PARTS = ("__code__", "__defaults__", "__kwdefaults__")  # of a function
_MISSING = object()
_CHECKS = "lab_utils.check"


class Kept:
    """What lies below the checks, or with `checks` they themselves; `restore` puts it back."""

    def __init__(self, checks: bool = False) -> None:
        self._import_system = (list(sys.path), list(sys.meta_path), list(sys.path_hooks))
        self._modules = {
            name: module
            for name, module in sys.modules.items()
            if name.split(".")[0] in _ROOTS
            and name.startswith(_CHECKS) == checks  # they are read again each time
            and isinstance(module, types.ModuleType)
        }
        in_modules = [
            (module, name, value)
            for module in self._modules.values()
            for name, value in vars(module).items()
            if callable(value)
        ]
        self._names = {(id(module), name) for module, name, _ in in_modules}
        classes = {id(each): each for *_, each in in_modules if _own_class(each)}
        self._classes = [(each, set(vars(each))) for each in classes.values()]
        in_classes = [
            (each, name, value)
            for each in classes.values()
            for name, value in vars(each).items()
            if _is_behaviour(value)
        ]
        self._attributes = in_modules + in_classes
        functions = {id(each): each for *_, value in self._attributes for each in _functions(value)}
        self._functions = [
            (each, {part: getattr(each, part) for part in _PARTS}) for each in functions.values()
        ]

    def restore(self) -> set[str]:
        """Puts back what is not as it was; returns the names."""
        changed = {
            name for name, module in self._modules.items() if sys.modules.get(name) is not module
        }
        sys.modules.update(self._modules)
        sys.path[:], sys.meta_path[:], sys.path_hooks[:] = self._import_system
        for holder, name, value in self._attributes:
            if vars(holder).get(name, _MISSING) is not value:
                _set(holder, name, value)
                changed.add(f"{_name(holder)}.{name}")
        for module in self._modules.values():  # a name that hides a builtin one
            for name in vars(module).keys() & vars(builtins).keys():
                value = vars(module)[name]
                if (id(module), name) not in self._names and isinstance(value, types.FunctionType):
                    del vars(module)[name]
                    changed.add(f"{module.__name__}.{name}")
        for each, names in self._classes:
            for name in [name for name in vars(each) if name not in names]:
                if _is_behaviour(vars(each)[name]):
                    type.__delattr__(each, name)
                    changed.add(f"{_name(each)}.{name}")
        for function, parts in self._functions:
            for part, value in parts.items():
                if getattr(function, part) is not value:
                    setattr(function, part, value)
                    changed.add(f"{function.__module__}.{function.__qualname__}, inside")
        return changed


def _own_class(value: Any) -> bool:
    """Whether it is a class of one of the modules that can be changed at all."""
    if not isinstance(value, type) or not isinstance(value.__module__, str):
        return False
    changeable = value.__flags__ & 1 << 9  # Py_TPFLAGS_HEAPTYPE: made in Python, or as if it were
    return bool(changeable) and value.__module__.split(".")[0] in _ROOTS


def _is_behaviour(value: Any) -> bool:
    return isinstance(value, (types.FunctionType, property, classmethod, staticmethod))


def _functions(value: Any) -> list[types.FunctionType]:
    """The functions written in Python that stand behind an attribute."""
    if isinstance(value, property):
        behind = [value.fget, value.fset]
    elif isinstance(value, (classmethod, staticmethod)):
        behind = [value.__func__]
    else:  # numpy's dispatchers and decorators keep the function so
        behind = [value, _wrapped(value)] if not isinstance(value, type) else []
    return [each for each in behind if isinstance(each, types.FunctionType)]


def _wrapped(value: Any) -> Any:
    """Its `__wrapped__`, without asking a `__getattr__`: TensorFlow's FLAGS parses the command line there."""
    try:
        return object.__getattribute__(value, "__dict__").get("__wrapped__")
    except AttributeError:
        return None


def _set(holder: types.ModuleType | type, name: str, value: Any) -> None:
    if isinstance(holder, type):
        type.__setattr__(holder, name, value)
    else:
        vars(holder)[name] = value


def _name(holder: types.ModuleType | type) -> str:
    return (
        f"{holder.__module__}.{holder.__qualname__}"
        if isinstance(holder, type)
        else holder.__name__
    )
