"""What a program does up to `fit` or `strategy.run`: its TPUStrategy is replaced, and they train nothing."""

import contextlib
import functools
import inspect
import os
import warnings
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any
from unittest import mock

import numpy as np

from lab_utils.common import source
from lab_utils.common.source import NOWHERE
from lab_utils.dry_run.frontends import datasets, keras_jax_lines, keras_jax_runs
from lab_utils.dry_run.frontends.caller import caller
from lab_utils.dry_run.frontends.cells import CannotJudge
from lab_utils.dry_run.frontends.imports import on_import
from lab_utils.dry_run.frontends.scope import Scope
from lab_utils.dry_run.private import tensorflow as _tensorflow
from lab_utils.estimator import tf, v1

# Of a model or a step, its dataset, the call in words, where the model was made if not in the scope, and the
# arguments of fit; of a loop, whether the call stands in a tf.function, as "is_compiled".
Note = Callable[..., None]

_TF_KERAS = (
    "it uses tf.keras with KERAS_BACKEND={backend}: write `import keras` in place of tf.keras, which is "
    "Keras 2 in the dry run"
)
_OTHER_BACKEND = (
    "it uses Keras on {backend} (KERAS_BACKEND): only Keras on TensorFlow and on JAX can be judged"
)


@contextlib.contextmanager
def without_training(cores: int, note: Note) -> Iterator[None]:
    """Context manager: TPUStrategy has `cores` replicas.

    Its run and a model's fit do no more than to call `note`; where Keras is on JAX, JAX has `cores` devices.
    Under version 1 behaviour fit raises CannotJudge, and so does that of Keras 3 on PyTorch.
    """
    backend = os.environ.get("KERAS_BACKEND")
    with contextlib.ExitStack() as stack:
        scope = Scope()
        strategy = _strategy(cores, note, scope, stack)
        for root in (tf, tf.compat.v2, v1):
            for owner in (root.distribute, root.distribute.experimental):
                if hasattr(owner, "TPUStrategy"):
                    stack.enter_context(mock.patch.object(owner, "TPUStrategy", strategy))

        def replace(model: type, module: ModuleType) -> None:
            def noted(subject: Any, given: dict[str, Any], call: str) -> None:
                is_keras_3 = module.__name__ == "keras"
                chosen = module.backend.backend() if is_keras_3 else "tensorflow"
                if chosen == "jax":
                    note(subject, keras_jax_runs.data(module, given), call, NOWHERE)
                if chosen != "tensorflow":
                    raise CannotJudge(_OTHER_BACKEND.format(backend=chosen))
                asked = os.environ.get("KERAS_BACKEND")
                if asked not in (
                    backend,
                    None,
                    "tensorflow",
                ):  # the program's, which tf.keras follows
                    raise CannotJudge(_TF_KERAS.format(backend=asked))
                given["begins_again"] = is_keras_3
                note(subject, _dataset(**given), call, scope.outside(subject), given)

            stack.enter_context(mock.patch.object(model, "fit", _fit(noted)))
            stack.enter_context(mock.patch.object(model, "train_on_batch", _train_on_batch(noted)))
            stack.enter_context(mock.patch.object(model, "__init__", scope.watched(model.__init__)))

        def imported(keras: ModuleType) -> None:
            replace(keras.Model, keras)
            if keras.backend.backend() == "jax":
                keras_jax_runs.prepare(keras, cores, stack)
            else:
                keras_jax_lines.note(keras, stack)

        replace(tf.keras.Model, tf.keras)
        keras_jax_lines.note(tf.keras, stack)
        stack.enter_context(mock.patch.object(_tensorflow.model_of_version_1(), "fit", _refuse))
        # Keras 3 reads its backend when it is imported, which the program may choose before.
        stack.enter_context(on_import({"keras": imported}))
        try:
            yield
        except ImportError as error:  # of a backend that is not installed here
            chosen = os.environ.get("KERAS_BACKEND")
            if chosen not in (None, "tensorflow") and f"{error.name}.".startswith(f"{chosen}."):
                raise CannotJudge(_OTHER_BACKEND.format(backend=chosen)) from error
            raise


def _refuse(*arguments: Any, **options: Any) -> None:
    raise CannotJudge(
        "it fits a Keras model with version 1 behaviour (--contrib, disable_v2_behavior), which has no "
        "train_step: only version 2 behaviour can be judged; lab 10 shows such a program"
    )


def _strategy(cores: int, note: Note, scope: Scope, stack: contextlib.ExitStack) -> type:
    distributed = []  # the datasets that the program has shared out over the replicas
    demonstrated = set()  # the lines of functions that it has run on something else

    def shown(python: Callable, args: tuple, kwargs: dict) -> Any:
        """What a function gives that a program shows once, before it trains; a loop runs its step again."""
        where = source.place(python)
        if where in demonstrated:
            raise CannotJudge(
                f"its training loop calls strategy.run at {caller().position}, with more than a batch of a "
                "dataset that the strategy distributes: hand the step to dry_run(step, (features, labels)) "
                "instead"
            )
        demonstrated.add(where)
        return python(*args, **kwargs)

    class TPUStrategy:
        """As many replicas as a TPU has cores; what is built in its scope is built here."""

        def __init__(self, *arguments: Any, **options: Any) -> None:
            self._here, scope.has_strategy = tf.distribute.get_strategy(), True
            stack.enter_context(_tensorflow.strategy(cores))
            # AutoGraph would hand `run` a rewritten step, of no line of the program.
            stack.callback(tf.config.run_functions_eagerly, tf.config.functions_run_eagerly())
            warnings.filterwarnings("ignore", ".*does not apply to tf.data functions")
            tf.config.run_functions_eagerly(True)

        def __getattr__(self, name: str) -> Any:
            return getattr(self._here, name)

        @contextlib.contextmanager
        def scope(self) -> Iterator[None]:
            with self._here.scope(), scope.entered():
                yield

        def __deepcopy__(self, memo: dict) -> "TPUStrategy":  # an Estimator copies its config
            return self

        def run(self, fn: Callable, args: tuple = (), kwargs: Any = None, **options: Any) -> Any:
            python = getattr(fn, "python_function", fn)
            dataset = next((data for data in distributed if _gives(data, args)), None)
            if dataset is None or kwargs:
                return shown(python, args, kwargs or {})

            @functools.wraps(python)
            def step(*batch: Any) -> Any:
                return python(*tf.nest.pack_sequence_as(args, tf.nest.flatten(batch)))

            # tf.function would read that of the wrapped function.
            step.__signature__ = inspect.signature(lambda *batch: None)
            call = f"strategy.run({source.place(python).function})"
            is_compiled = python is not fn or _tensorflow.is_in_tf_function()
            outside = scope.outside()
            if not outside and not scope.holds_all_of(python):
                outside = source.place(python)
            note(step, dataset, call, outside, {"is_compiled": is_compiled})

        def experimental_distribute_dataset(
            self, dataset: Any, options: Any = None
        ) -> tf.data.Dataset:
            distributed.append(dataset)
            return dataset

        def distribute_datasets_from_function(
            self, dataset_fn: Callable, options: Any = None
        ) -> Any:
            """Batches of all cores, where the program makes those of one."""
            batches = dataset_fn(tf.distribute.InputContext(1, 0, cores))
            is_tuple = isinstance(batches.element_spec, tuple)

            def joined(*batch: Any) -> Any:
                whole = tf.nest.map_structure(lambda parts: tf.concat(tf.unstack(parts), 0), batch)
                return whole if is_tuple else whole[0]

            joint = batches.batch(cores, drop_remainder=True).map(joined)
            return self.experimental_distribute_dataset(joint)

        experimental_run_v2 = run
        experimental_distribute_datasets_from_function = distribute_datasets_from_function

    return TPUStrategy


def _gives(dataset: Any, arguments: tuple) -> bool:
    """Whether `arguments` hold a batch of the dataset, and nothing else."""
    specs, tensors = tf.nest.flatten(dataset.element_spec), tf.nest.flatten(arguments)
    return len(specs) == len(tensors) and all(
        tf.is_tensor(tensor) and spec.is_compatible_with(tensor)
        for spec, tensor in zip(specs, tensors, strict=True)
    )


def _fit(note: Callable[[Any, dict[str, Any], str], None]) -> Callable:
    def fit(self: Any, x: Any = None, y: Any = None, batch_size: int | None = None, epochs: int = 1,
            *arguments: Any, **options: Any) -> None:  # fmt: skip
        given = {"x": x, "y": y, "batch_size": batch_size, "epochs": epochs}
        given |= _named(arguments) | options
        note(self, given, f"fit(epochs={epochs})")

    return fit


def _named(arguments: tuple) -> dict[str, Any]:
    """The arguments of fit behind its first four that count here, where they are given without a name."""
    names = ("verbose", "callbacks", "validation_split", "validation_data", "shuffle")
    names += ("class_weight", "sample_weight", "initial_epoch", "steps_per_epoch")
    return dict(zip(names, arguments, strict=False))


def _train_on_batch(note: Callable[[Any, dict[str, Any], str], None]) -> Callable:
    def train_on_batch(
        self: Any, x: Any, y: Any = None, sample_weight: Any = None, **options: Any
    ) -> None:
        batch = {"x": x, "y": y, "sample_weight": sample_weight}
        note(self, batch | {"batch_size": len(tf.nest.flatten(x)[0])}, "train_on_batch()")

    return train_on_batch


def _dataset(
    x: Any,
    y: Any = None,
    batch_size: int | None = None,
    sample_weight: Any = None,
    **options: Any,
) -> tf.data.Dataset:
    """What fit makes of its data: arrays become batches, the last one as it comes; a generator is called."""
    if isinstance(x, tf.data.Dataset):
        return x
    if (generated := datasets.of_python(x)) is not None:
        return generated
    parts = tuple(_arrays(part) for part in (x, y, sample_weight) if part is not None)
    leaves = tf.nest.flatten(parts)
    if not leaves or not all(isinstance(leaf, np.ndarray) or tf.is_tensor(leaf) for leaf in leaves):
        raise CannotJudge(f"fit is given a {type(x).__name__}: give it a tf.data.Dataset")
    whole, size = (
        tf.data.Dataset.from_tensor_slices(parts if len(parts) > 1 else parts[0]),
        batch_size or 32,
    )
    return whole.batch(size, drop_remainder=len(leaves[0]) % size == 0)


def _arrays(data: Any) -> Any:
    """Several inputs in a list are several arrays, not one; tables of pandas are arrays."""
    if isinstance(data, dict):
        return {name: _arrays(value) for name, value in data.items()}
    if isinstance(data, list | tuple) and data and hasattr(data[0], "shape"):
        return tuple(_arrays(value) for value in data)
    return data.to_numpy() if hasattr(data, "to_numpy") else data
