"""What a Keras program does up to `fit`: its strategy and TPU are stood in for, and fit trains nothing.

A training loop of the program's own is run up to its first strategy.run, whose step is then judged.
"""

import contextlib
import functools
import inspect
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any
from unittest import mock

import numpy as np

from lab_utils.dry_run.frontends import made_at
from lab_utils.estimator import tf, v1


class CannotTake(BaseException):
    """The program trains in a way that cannot be judged so; the message says what to do.

    No Exception: AutoGraph would put the program's whole stack into its message.
    """


@contextlib.contextmanager
def standing_in(
    cores: int, fitted: Callable[[Any, Any, str], None], is_keras: bool
) -> Iterator[None]:
    """Context manager: TPUStrategy has `cores` replicas, and training does nothing.

    `fitted(subject, dataset, call)` hears of it; its subject is the model of a fit, or the step of a
    strategy.run. With `is_keras` that is so for Keras 3 too, whose import takes a second.
    """
    with contextlib.ExitStack() as stack:
        stack.callback(tf.config.run_functions_eagerly, tf.config.functions_run_eagerly())
        strategy = _strategy(cores, fitted)
        for root in (tf, tf.compat.v2, v1):
            for owner in (root.distribute, root.distribute.experimental):
                if hasattr(owner, "TPUStrategy"):
                    stack.enter_context(mock.patch.object(owner, "TPUStrategy", strategy))
        models = list(_models(is_keras))
        for model in models:
            stack.enter_context(mock.patch.object(model, "fit", _fit(fitted)))
        stack.enter_context(made_at.noted(_layer(model) for model in models))
        yield


def _layer(model: type) -> type:
    """The base class of all layers of the Keras that `model` belongs to."""
    return next(each for each in reversed(model.__mro__) if each.__name__ == "Layer")


def _models(is_keras: bool) -> Iterator[type]:
    """Keras' Model classes: that of tf.keras, and that of Keras 3."""
    yield tf.keras.Model
    if is_keras:
        with contextlib.suppress(ImportError):
            import keras

            if keras.Model is not tf.keras.Model:
                yield keras.Model


def _strategy(cores: int, ran: Callable[[Any, Any, str], None]) -> type:
    class TPUStrategy:
        """As many replicas as a TPU has cores; what is run in its scope runs here."""

        num_replicas_in_sync = cores

        def __init__(self, *arguments: Any, **options: Any) -> None:
            self._here = tf.distribute.get_strategy()
            self._distributed: list[tf.data.Dataset] = []

        def __getattr__(self, name: str) -> Any:
            return getattr(self._here, name)

        def experimental_distribute_dataset(self, dataset: Any, options: Any = None) -> Any:
            self._distributed.append(dataset)
            # A loop of the program's own follows: its step comes as written, not as AutoGraph writes it.
            tf.config.run_functions_eagerly(True)
            return dataset

        def distribute_datasets_from_function(self, function: Callable, options: Any = None) -> Any:
            context = tf.distribute.InputContext(num_replicas_in_sync=cores)
            return self.experimental_distribute_dataset(_of_all(function(context), cores))

        def run(
            self, fn: Callable, args: Any = (), kwargs: Any = None, options: Any = None
        ) -> None:
            for dataset in () if kwargs else reversed(self._distributed):
                if step := _step_of_batch(fn, args, dataset.element_spec):
                    ran(step, dataset, "strategy.run()")
            raise CannotTake(
                "strategy.run is given something other than a batch of a dataset that the strategy "
                "distributed: hand its step to dry_run(step, features, labels) instead"
            )

        experimental_run_v2 = run
        experimental_distribute_datasets_from_function = distribute_datasets_from_function

    return TPUStrategy


def _of_all(dataset: Any, cores: int) -> Any:
    """Batches of all replicas, of a dataset with batches of one; as it is where their size is not fixed."""
    first = tf.nest.flatten(dataset.element_spec)[0].shape
    if not first.rank or first[0] is None:
        return dataset
    return dataset.unbatch().batch(first[0] * cores, drop_remainder=True)


def _step_of_batch(fn: Callable, args: Any, element: Any) -> Callable | None:
    """`fn`, which is called with `args`, as a function of (features, labels) or of a batch of another form.

    None where `args` are not the batch whose specs are `element`, as one argument or one for each part.
    """
    whole = len(args) == 1 and _alike(args[0], element)
    if not whole and not _alike(tuple(args), element):
        return None

    @functools.wraps(getattr(fn, "python_function", fn))
    def step(*batch: Any) -> Any:
        batch = batch[0] if len(batch) == 1 else batch
        return fn(batch) if whole else fn(*batch)

    step.__signature__ = inspect.Signature(
        [inspect.Parameter("batch", inspect.Parameter.VAR_POSITIONAL)]
    )
    step.of_replica = True  # what each returns is added up or averaged outside of it
    return step


def _alike(values: Any, specs: Any) -> bool:
    try:
        tf.nest.assert_same_structure(values, specs)
    except (ValueError, TypeError):
        return False
    both = zip(tf.nest.flatten(values), tf.nest.flatten(specs), strict=True)
    return all(tf.is_tensor(value) and value.dtype == spec.dtype for value, spec in both)


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
