"""What a Keras program does up to `fit`: its TPUStrategy is replaced, and fit trains nothing."""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

import numpy as np

from lab_utils.dry_run.frontends.cells import CannotJudge
from lab_utils.dry_run.private import tensorflow as _tensorflow
from lab_utils.estimator import tf, v1


@contextlib.contextmanager
def without_training(
    cores: int, note: Callable[[Any, Any, str], None], is_keras: bool
) -> Iterator[None]:
    """Context manager: TPUStrategy has `cores` replicas, and fit calls `note(model, dataset, call)` only.

    Under version 1 behaviour fit raises CannotJudge. `is_keras` is for Keras 3, too: its import takes 1 s.
    """
    models = [tf.keras.Model]
    if is_keras:
        with contextlib.suppress(ImportError):
            import keras

            models.append(keras.Model)
    strategy = _strategy(cores)
    with contextlib.ExitStack() as stack:
        for root in (tf, tf.compat.v2, v1):
            for owner in (root.distribute, root.distribute.experimental):
                if hasattr(owner, "TPUStrategy"):
                    stack.enter_context(mock.patch.object(owner, "TPUStrategy", strategy))
        for model in models:
            stack.enter_context(mock.patch.object(model, "fit", _fit(note)))
        stack.enter_context(mock.patch.object(_tensorflow.model_of_version_1(), "fit", _refuse))
        yield


def _refuse(*arguments: Any, **options: Any) -> None:
    raise CannotJudge(
        "it fits a Keras model with version 1 behaviour (--contrib, disable_v2_behavior), which has no "
        "train_step: only version 2 behaviour can be judged; lab 10 shows such a program"
    )


def _strategy(cores: int) -> type:
    class TPUStrategy:
        """As many replicas as a TPU has cores; what is built in its scope is built here."""

        num_replicas_in_sync = cores

        def __init__(self, *arguments: Any, **options: Any) -> None:
            self._here = tf.distribute.get_strategy()

        def __getattr__(self, name: str) -> Any:
            return getattr(self._here, name)

        def __deepcopy__(self, memo: dict) -> "TPUStrategy":  # an Estimator copies its config
            return self

        def run(self, *arguments: Any, **options: Any) -> None:
            raise CannotJudge(
                "its training loop calls strategy.run: hand the step that it runs to "
                "dry_run(step, (features, labels)) instead"
            )

        def distribute_datasets_from_function(self, *arguments: Any, **options: Any) -> None:
            raise CannotJudge(
                "distribute_datasets_from_function makes batches of one core: give fit a tf.data.Dataset "
                "with batches for all cores"
            )

        experimental_run_v2 = run
        experimental_distribute_datasets_from_function = distribute_datasets_from_function

    return TPUStrategy


def _fit(note: Callable[[Any, Any, str], None]) -> Callable:
    def fit(self: Any, x: Any = None, y: Any = None, batch_size: int | None = None, epochs: int = 1,
            *arguments: Any, **options: Any) -> None:  # fmt: skip
        weights = options.get("sample_weight")
        note(self, _dataset(x, y, weights, batch_size or 32), f"fit(epochs={epochs})")

    return fit


def _dataset(x: Any, y: Any, weights: Any, batch: int) -> tf.data.Dataset:
    """What fit makes of its data: arrays become batches of `batch`, the last one as it comes."""
    if isinstance(x, tf.data.Dataset):
        return x
    parts = tuple(_arrays(part) for part in (x, y, weights) if part is not None)
    leaves = tf.nest.flatten(parts)
    if not leaves or not all(isinstance(leaf, np.ndarray) or tf.is_tensor(leaf) for leaf in leaves):
        raise CannotJudge(f"fit is given a {type(x).__name__}: give it a tf.data.Dataset")
    return tf.data.Dataset.from_tensor_slices(parts if len(parts) > 1 else parts[0]).batch(batch)


def _arrays(data: Any) -> Any:
    """Several inputs in a list are several arrays, not one; tables of pandas are arrays."""
    if isinstance(data, dict):
        return {name: _arrays(value) for name, value in data.items()}
    if isinstance(data, list | tuple) and data and hasattr(data[0], "shape"):
        return tuple(_arrays(value) for value in data)
    return data.to_numpy() if hasattr(data, "to_numpy") else data
