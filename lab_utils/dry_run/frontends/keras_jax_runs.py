"""What a program of Keras on JAX meets on its way to fit; jax_runs gives it its devices."""

import contextlib
import types
from typing import Any

from lab_utils.dry_run.frontends import keras_lines
from lab_utils.dry_run.frontends.stand_ins import patched


def prepare(keras: types.ModuleType, stack: contextlib.ExitStack) -> None:
    """Until `stack` is left, a variable has one copy, and the lines of layers and layouts are noted."""
    from lab_utils.dry_run.private import keras as _keras

    stack.enter_context(_keras.one_copy())
    stack.enter_context(patched(keras_lines.stand_ins(keras)))


def data(keras: types.ModuleType, given: dict[str, Any]) -> Any:
    """What fit is given, with the distribution that is set now."""
    from lab_utils.dry_run.frontends.keras_jax_data import FitData

    wanted = {name: given[name] for name in FitData.__dataclass_fields__ if name in given}
    distribution = keras.distribution.distribution()
    return FitData(**wanted, distribution=distribution, keeps_one_copy=True)
