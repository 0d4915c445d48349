"""Every private name of Keras 3 that the dry run uses, for programs of Keras on JAX.

Tried with Keras 3.13.2, as Colab has it, and 3.15.1; tests/test_dry_run_keras_jax.py fails where a name has
moved. Keras is imported where a function is called: the program has chosen its backend by then.
"""

import importlib
import traceback
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest import mock


def adapter(x: Any, y: Any, sample_weight: Any, *, shuffle: bool, **options: Any) -> Any:
    """What fit reads its batches from: the DataAdapter that Keras makes of its arguments.

    Only arrays are shuffled. `options` are batch_size, steps_per_epoch and class_weight.

    Raises:
        ValueError, TypeError: as fit does for data that it does not take.
    """
    adapters = importlib.import_module("keras.src.trainers.data_adapters")
    arrays = adapters.array_data_adapter.can_convert_arrays((x, y, sample_weight))
    return adapters.get_data_adapter(x, y, sample_weight, shuffle=shuffle and arrays, **options)


def without_validation(x: Any, y: Any, sample_weight: Any, share: float) -> tuple[Any, Any, Any]:
    """The arrays that fit trains with where it holds back a share for validation."""
    slicing = importlib.import_module("keras.src.trainers.data_adapters.array_slicing")
    return slicing.train_validation_split((x, y, sample_weight), validation_split=share)[0]


def build(model: Any, batch: Any) -> None:
    """Makes all variables of a compiled model and of its optimizer, as fit does before its first step."""
    model._symbolic_build(data_batch=batch)


@contextmanager
def without_values(variables: list[Any]) -> Iterator[None]:
    """Context manager: the variables hold no values, as while fit trains: its step gets them as arguments."""
    held = [(variable, variable._value) for variable in variables]
    for variable, _ in held:
        variable._value = None
    try:
        yield
    finally:
        for variable, value in held:
            variable._value = value


def lacks_value(error: Exception) -> bool:
    """Whether an error comes from a variable without a value, which the step did not get."""
    frames = traceback.extract_tb(error.__traceback__)
    return isinstance(error, TypeError) and bool(frames) and frames[-1].line == _NO_VALUE


_NO_VALUE = "self._initializer(self._shape, dtype=self._dtype)"  # of a Variable's value, in Keras


def built_sharding(variable: Any) -> Any:
    """The sharding that a variable was made with; None for one that was made without a distribution."""
    layout = variable._layout
    return getattr(layout, "backend_layout", layout)  # before Keras 3.14 it is the sharding itself


def layout_map(distribution: Any) -> Any:
    """The LayoutMap of a ModelParallel distribution; None for others."""
    return getattr(distribution, "_layout_map", None)


def layers(model: Any) -> list[Any]:
    """A model and all the layers in it."""
    return list(model._flatten_layers())


def constant_rate(optimizer: Any) -> float | None:
    """An optimizer's learning rate; None where a schedule gives it, or it has none."""
    rate = getattr(optimizer, "_learning_rate", None)
    return float(rate.value) if hasattr(rate, "value") else None


@contextmanager
def one_copy() -> Iterator[None]:
    """Context manager: variables and batches lie on one device, whatever their layouts, which they keep.

    Eight virtual devices would hold eight copies of a large model. "cpu:3" stands for "tpu:3".
    """
    placing = importlib.import_module("keras.src.backend.jax.distribution_lib")
    variables = importlib.import_module("keras.src.backend.jax.core")
    jax = importlib.import_module("jax")
    distribute, find = placing.distribute_tensor, placing._to_backend_device

    def here(tensor: Any, layout: Any) -> Any:
        return distribute(tensor, layout) if isinstance(tensor, jax.core.Tracer) else tensor

    def found(name: Any) -> Any:
        return find(name.replace("tpu", "cpu", 1) if isinstance(name, str) else name)

    with ExitStack() as stack:
        stack.enter_context(mock.patch.object(placing, "distribute_tensor", here))
        stack.enter_context(mock.patch.object(placing, "_to_backend_device", found))
        data = mock.patch.object(placing, "distribute_data_input", lambda batch, *_, **__: batch)
        stack.enter_context(data)
        if hasattr(variables, "should_shard_at_init"):  # since Keras 3.12
            never = mock.patch.object(variables, "should_shard_at_init", lambda *_: False)
            stack.enter_context(never)
        yield
