"""What a Keras program does up to `fit`: its strategy and TPU are stood in for, and fit trains nothing."""

import contextlib
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any
from unittest import mock

import numpy as np

from lab_utils.estimator import tf


class CannotTake(BaseException):
    """The program trains in a way that cannot be judged so; the message says what to do.

    No Exception: AutoGraph would put the program's whole stack into its message.
    """


@contextlib.contextmanager
def standing_in(
    cores: int, fitted: Callable[[Any, Any, str], None], is_keras: bool
) -> Iterator[None]:
    """Context manager: TPUStrategy has `cores` replicas, and `fitted(model, dataset, call)` hears of fit.

    With `is_keras` that is so for Keras 3 too, whose import takes a second.
    """
    with contextlib.ExitStack() as stack:
        for owner, names in (
            (tf.config, ("experimental_connect_to_cluster", "experimental_connect_to_host")),
            (tf.tpu.experimental, ("initialize_tpu_system", "shutdown_tpu_system")),
        ):
            for name in names:
                stack.enter_context(mock.patch.object(owner, name, lambda *a, **k: None))
        strategy = _strategy(cores)
        for owner in (tf.distribute, tf.distribute.experimental):
            stack.enter_context(mock.patch.object(owner, "TPUStrategy", strategy))
        for model in _models(is_keras):
            stack.enter_context(mock.patch.object(model, "fit", _fit(fitted)))
        yield


def _models(is_keras: bool) -> Iterator[type]:
    """Keras' Model classes: that of tf.keras, and that of Keras 3."""
    yield tf.keras.Model
    if is_keras:
        with contextlib.suppress(ImportError):
            import keras

            if keras.Model is not tf.keras.Model:
                yield keras.Model


def _strategy(cores: int) -> type:
    class TPUStrategy:
        """As many replicas as a TPU has cores; what is run in its scope runs here."""

        num_replicas_in_sync = cores

        def __init__(self, *arguments: Any, **options: Any) -> None:
            self._here = tf.distribute.get_strategy()

        def __getattr__(self, name: str) -> Any:
            return getattr(self._here, name)

        def experimental_distribute_dataset(self, dataset: Any, options: Any = None) -> Any:
            return dataset

        def distribute_datasets_from_function(self, function: Callable, options: Any = None) -> Any:
            return function(tf.distribute.InputContext())

        def run(self, *arguments: Any, **options: Any) -> None:
            raise CannotTake(
                "a training loop of its own, by strategy.run: hand its step to "
                "dry_run(step, features, labels) instead"
            )

        experimental_run_v2 = run
        experimental_distribute_datasets_from_function = distribute_datasets_from_function

    return TPUStrategy


def _fit(fitted: Callable[[Any, Any, str], None]) -> Callable:
    def fit(self: Any, x: Any = None, y: Any = None, batch_size: int | None = None, epochs: int = 1,
            *arguments: Any, **options: Any) -> None:  # fmt: skip
        weights = options.get("sample_weight")
        said = {"epochs": epochs, "steps_per_epoch": options.get("steps_per_epoch")}
        words = ", ".join(f"{name}={value}" for name, value in said.items() if value is not None)
        fitted(self, _dataset(x, y, weights, batch_size or 32), f"fit({words})")

    return fit


def _dataset(x: Any, y: Any, weights: Any, batch: int) -> tf.data.Dataset:
    """What fit makes of its data: arrays become batches of `batch`, the last one as it comes."""
    if isinstance(x, tf.data.Dataset):
        return x
    parts = tuple(_arrays(each) for each in (x, y, weights) if each is not None)
    leaves = tf.nest.flatten(parts)
    if not leaves or not all(isinstance(each, np.ndarray) or tf.is_tensor(each) for each in leaves):
        raise CannotTake(f"fit is given a {type(x).__name__}: give it a tf.data.Dataset")
    return tf.data.Dataset.from_tensor_slices(parts if len(parts) > 1 else parts[0]).batch(batch)


def _arrays(data: Any) -> Any:
    """Several inputs in a list are several arrays, not one; tables of pandas are arrays."""
    if isinstance(data, dict):
        return {name: _arrays(each) for name, each in data.items()}
    if (
        isinstance(data, Sequence)
        and not isinstance(data, str)
        and data
        and hasattr(data[0], "shape")
    ):
        return tuple(_arrays(each) for each in data)
    pandas = sys.modules.get("pandas")
    if pandas and isinstance(data, pandas.DataFrame | pandas.Series):
        return data.to_numpy()
    return data
