"""Names of NumPy 1 that were only other names of what NumPy 2 has, for programs that use them."""

import functools
from collections.abc import Callable
from types import ModuleType
from typing import Any

from lab_utils.dry_run.frontends.imports import once_imported

TODAY = {
    "Inf": "inf", "Infinity": "inf", "infty": "inf", "PINF": "inf", "NaN": "nan", "float_": "float64",
    "complex_": "complex128", "product": "prod", "cumproduct": "cumprod", "alltrue": "all", "sometrue": "any",
}  # fmt: skip
BUILTINS = {"int": int, "float": float, "complex": complex, "object": object, "str": str}
_used: set[str] = set()


def used() -> list[str]:
    """The old names that the program of this process has used so far."""
    return sorted(_used)


def give() -> None:
    """For the rest of the process NumPy has its old names: a model_fn runs after the program.

    A NumPy that has them itself is not asked for them here.
    """

    def install(numpy: ModuleType) -> None:
        numpy.__getattr__ = functools.partial(_look_up, numpy, numpy.__getattr__)

    once_imported("numpy", install)


def _look_up(numpy: ModuleType, refuse: Callable[[str], Any], name: str) -> Any:
    """What NumPy had under `name`, which it has no more."""
    if name not in TODAY and name not in BUILTINS:
        return refuse(name)
    _used.add(f"np.{name}")
    return getattr(numpy, TODAY[name]) if name in TODAY else BUILTINS[name]
