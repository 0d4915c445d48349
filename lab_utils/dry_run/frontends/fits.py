"""What a program does up to `fit` or `strategy.run`: its TPUStrategy is replaced, and they train nothing."""

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator
from types import ModuleType
from typing import Any

from lab_utils.dry_run.frontends import keras_jax_runs, keras_lines
from lab_utils.dry_run.frontends.cells import CannotJudge
from lab_utils.dry_run.frontends.imports import ESTIMATOR, on_import
from lab_utils.dry_run.frontends.scope import Scope
from lab_utils.dry_run.frontends.stand_ins import StandIn, patched

# Of a model or a step, its dataset, the call in words, and what is observed besides (fields of Observed).
Note = Callable[..., None]

_TF_KERAS = (
    "it uses tf.keras with KERAS_BACKEND={backend}, but tf.keras is Keras 2 in the dry run: write "
    "`import keras` instead"
)
_OTHER_BACKEND = (
    "it uses Keras on {backend} (KERAS_BACKEND), but only Keras on TensorFlow or on JAX can be "
    "judged"
)


@contextlib.contextmanager
def without_training(cores: int, note: Note) -> Iterator[None]:
    """Context manager: TPUStrategy has `cores` replicas.

    Its run and a model's fit do no more than to call `note`.
    Under version 1 behaviour fit raises CannotJudge, and so does that of Keras 3 on PyTorch.
    """
    backend = os.environ.get("KERAS_BACKEND")
    with contextlib.ExitStack() as stack:
        scope = Scope()

        def replace(table: Iterable[StandIn]) -> None:
            stack.enter_context(patched(table))

        def imported(keras: ModuleType) -> None:
            replace(_of_keras(keras, _noting(keras, backend, note, scope), scope))
            if keras.backend.backend() == "jax":
                keras_jax_runs.prepare(keras, stack)
            else:
                replace(keras_lines.stand_ins(keras))

        def imported_estimator(_: ModuleType) -> None:
            from lab_utils.dry_run.frontends import strategy

            replace(strategy.stand_ins(strategy.Replicas(cores, note, scope, stack)))
            tf_keras, model_of_version_1 = strategy.keras_2()
            replace([(model_of_version_1, "fit", _refuse)])
            replace(_of_keras(tf_keras, _noting(tf_keras, backend, note, scope), scope))
            replace(keras_lines.stand_ins(tf_keras))

        # Keras 3 reads its backend when it is imported, which the program may choose before.
        stack.enter_context(on_import({ESTIMATOR: imported_estimator, "keras": imported}))
        try:
            yield
        except ImportError as error:  # of a backend that is not installed here
            chosen = os.environ.get("KERAS_BACKEND")
            if chosen not in (None, "tensorflow") and f"{error.name}.".startswith(f"{chosen}."):
                raise CannotJudge(_OTHER_BACKEND.format(backend=chosen)) from error
            raise


def _of_keras(
    keras: ModuleType, noted: Callable[[Any, dict[str, Any], str], None], scope: Scope
) -> Iterator[StandIn]:
    """What notes a training of Keras, and what the program makes in its strategy's scope."""
    model, metric = keras.Model, keras.metrics.Metric
    yield model, "fit", _fit(noted)
    yield model, "train_on_batch", _train_on_batch(noted)
    yield model, "__init__", scope.watched(model.__init__)
    yield metric, "__init__", scope.watched(metric.__init__, scope.metrics)


def _noting(
    module: ModuleType, backend: str | None, note: Note, scope: Scope
) -> Callable[[Any, dict[str, Any], str], None]:
    """What notes a fit of the models of Keras that `module` has; `backend` is what the shell asked for."""

    def noted(subject: Any, given: dict[str, Any], call: str) -> None:
        is_keras_3 = module.__name__ == "keras"
        chosen = module.backend.backend() if is_keras_3 else "tensorflow"
        if chosen == "jax":
            note(subject, keras_jax_runs.data(module, given), call)
        if chosen != "tensorflow":
            raise CannotJudge(_OTHER_BACKEND.format(backend=chosen))
        asked = os.environ.get("KERAS_BACKEND")
        if asked not in (
            backend,
            None,
            "tensorflow",
        ):  # the program's, which tf.keras follows
            raise CannotJudge(_TF_KERAS.format(backend=asked))
        from lab_utils.dry_run.frontends.datasets import given_to_fit

        outside = scope.outside(subject)
        shown = {"outside": outside, "fit": given, "begins_again": is_keras_3}
        note(subject, given_to_fit(**given), call, **shown)

    return noted


def _refuse(*arguments: Any, **options: Any) -> None:
    raise CannotJudge(
        "it fits a Keras model with the behaviour of TensorFlow 1 (--contrib, "
        "disable_v2_behavior), where a model has no train_step, so it cannot be judged. Lab 10 "
        "shows a program that uses the behaviour of TensorFlow 2"
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
        note(self, batch | {"batch_size": len(_first_array(x))}, "train_on_batch()")

    return train_on_batch


def _first_array(batch: Any) -> Any:
    """The first array in a nest of dicts and sequences."""
    while isinstance(batch, dict | list | tuple):
        batch = next(iter(batch.values() if isinstance(batch, dict) else batch))
    return batch
