"""What a program of Keras on JAX meets on its way to fit: as many devices as the topology has cores."""

import contextlib
import types
from typing import Any
from unittest import mock

from lab_utils.dry_run.frontends import keras_jax_lines


def give_devices(jax: types.ModuleType, cores: int) -> None:
    """JAX has `cores` virtual devices of the CPU, if it has not started yet."""
    with contextlib.suppress(RuntimeError):
        jax.config.update("jax_platforms", "cpu")
        jax.config.update("jax_num_cpu_devices", cores)


def prepare(keras: types.ModuleType, cores: int, stack: contextlib.ExitStack) -> None:
    """Until `stack` is left, JAX has `cores` virtual devices, which stand for a TPU's, and lines are noted.

    Called when the program has imported Keras.
    """
    import jax

    from lab_utils.dry_run.private import (
        keras as _keras,
    )  # which a program on TensorFlow need not have

    give_devices(jax, cores)
    devices = jax.devices

    def of_tpu(backend: Any = None) -> list[Any]:
        return devices("cpu" if backend == "tpu" else backend)

    stack.enter_context(mock.patch.object(jax, "devices", of_tpu))
    stack.enter_context(_keras.one_copy(lambda name: name.replace("tpu", "cpu", 1)))
    keras_jax_lines.note(keras, stack)


def data(keras: types.ModuleType, given: dict[str, Any]) -> Any:
    """What fit is given, with the distribution that is set now."""
    from lab_utils.dry_run.frontends.keras_jax_data import FitData

    wanted = {name: given[name] for name in FitData.__dataclass_fields__ if name in given}
    return FitData(**wanted, distribution=keras.distribution.distribution())
