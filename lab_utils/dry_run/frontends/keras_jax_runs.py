"""What a program of Keras on JAX meets on its way to fit: as many devices as the topology has cores."""

import contextlib
import types
from typing import Any

from lab_utils.dry_run.frontends import keras_lines


def prepare(keras: types.ModuleType, cores: int, stack: contextlib.ExitStack) -> None:
    """Until `stack` is left, a variable has one copy, and the lines of layers and layouts are noted.

    JAX gets `cores` virtual devices of the CPU, if it has not started with those that it has.
    """
    import jax

    from lab_utils.dry_run.private import keras as _keras

    with contextlib.suppress(RuntimeError):
        jax.config.update("jax_platforms", "cpu")
        jax.config.update("jax_num_cpu_devices", cores)
    stack.enter_context(_keras.one_copy())
    keras_lines.note(keras, stack)


def data(keras: types.ModuleType, given: dict[str, Any]) -> Any:
    """What fit is given, with the distribution that is set now."""
    from lab_utils.dry_run.frontends.keras_jax_data import FitData

    wanted = {name: given[name] for name in FitData.__dataclass_fields__ if name in given}
    distribution = keras.distribution.distribution()
    return FitData(**wanted, distribution=distribution, keeps_one_copy=True)
