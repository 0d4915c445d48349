"""Names that NumPy 2 and today's JAX have no more, though they have the same under another name."""

import functools
from collections.abc import Callable
from types import ModuleType
from typing import Any

from lab_utils.dry_run.frontends.imports import once_imported

NUMPY = {
    "Inf": "inf", "Infinity": "inf", "infty": "inf", "PINF": "inf", "NaN": "nan", "float_": "float64",
    "complex_": "complex128", "product": "prod", "cumproduct": "cumprod", "alltrue": "all", "sometrue": "any",
}  # fmt: skip
BUILTINS = {"int": int, "float": float, "complex": complex, "object": object, "str": str}
_used: dict[str, set[str]] = {"numpy": set(), "jax": set()}


def told() -> list[str]:
    """Sentences that name the old names which the program of this process has used so far."""
    had = {
        "numpy": "NumPy 2: it lacks {}, which NumPy 1 had",
        "jax": "JAX: it lacks {}, which earlier versions had",
    }
    return [
        f"{had[package].format(', '.join(sorted(names)))}, so the dry run used stand-ins."
        for package, names in _used.items()
        if names
    ]


def give() -> None:
    """For the rest of the process NumPy and JAX have their old names: a model_fn runs after the program.

    A package that has them itself is not asked for them here.
    """
    once_imported("numpy", functools.partial(_install, of_numpy, "np"))
    once_imported("jax", functools.partial(_install, of_jax, "jax"))


def of_numpy(numpy: ModuleType, name: str) -> Any:
    """What NumPy 1 had under `name`; None if it was no other name of what NumPy 2 has."""
    return getattr(numpy, NUMPY[name]) if name in NUMPY else BUILTINS.get(name)


def of_jax(jax: ModuleType, name: str) -> Any:
    """What JAX before 0.10 had under `name`; None if today's has nothing that does the same."""
    names = {
        "tree_map": jax.tree.map,
        "device_put_replicated": functools.partial(_replicated, jax),
        "device_put_sharded": functools.partial(_sharded, jax),
    }
    return names.get(name)


def _replicated(jax: ModuleType, values: Any, devices: list[Any]) -> Any:
    """One copy for each device."""
    return _sharded(jax, [values] * len(devices), devices)


def _sharded(jax: ModuleType, shards: list[Any], devices: list[Any]) -> Any:
    """One of the shards for each device, as JAX's page on the migration of jax.pmap has it."""
    mesh = jax.sharding.Mesh(devices, ("shards",))
    sharding = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("shards"))
    whole = jax.tree.map(lambda *shard: jax.numpy.stack(shard), *shards)
    return jax.device_put(whole, sharding)


def _install(old: Callable[[ModuleType, str], Any], short: str, package: ModuleType) -> None:
    refuse = package.__getattr__

    def look_up(name: str) -> Any:
        if (value := old(package, name)) is None:
            return refuse(name)
        _used[package.__name__].add(f"{short}.{name}")
        return value

    package.__getattr__ = look_up
