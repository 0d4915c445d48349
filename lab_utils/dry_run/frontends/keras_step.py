"""The second front door: a compiled Keras model (of Keras 2 or 3) and the dataset that fit is given."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from lab_utils.dry_run.frontends.batches import InputUnfit
from lab_utils.dry_run.frontends.function_step import lower_traced, share, split, trace_step
from lab_utils.dry_run.private import tensorflow as _tensorflow
from lab_utils.dry_run.program import Program
from lab_utils.estimator import tf
from lab_utils.source import place


def lower_keras(
    model: Any, dataset: tf.data.Dataset, *, cores: int, mode: str = "train"
) -> Program:
    """Lowers the model's train_step (or test_step, with mode "eval") as TPUStrategy would run it.

    The dataset's batch is the global one, which TPUStrategy splits over the cores; the gradients
    are averaged over them where the optimizer applies them. The loss is the step's own.

    Raises:
        InputUnfit: the dataset's shapes are not fixed, or its batch does not divide among the cores.
        CannotLower: the step cannot be built or lowered.
    """
    concrete, specs = _traced(model, dataset, cores, mode)

    def read() -> Iterator[list[np.ndarray]]:
        with _tensorflow.eager():
            for batch in dataset.as_numpy_iterator():
                yield [split(np.asarray(array), cores) for array in tf.nest.flatten(batch)]

    program = lower_traced(
        concrete,
        specs,
        ["feature", "label", "label/weight"],
        name=f"{mode} step of {model.name}",
        mode=mode,
        cores=cores,
        trained=_trainable(model),
    )
    program.read, program.where = read, place(type(model)) or model.name
    return program


def trace_keras(model: Any, dataset: tf.data.Dataset, cores: int, mode: str = "train") -> Any:
    """The step as `lower_keras` lowers it: a ConcreteFunction. It raises what that raises."""
    return _traced(model, dataset, cores, mode)[0]


def _traced(model: Any, dataset: tf.data.Dataset, cores: int, mode: str) -> tuple[Any, list[Any]]:
    """The step as a ConcreteFunction, and one core's specs of the batch."""
    spec = dataset.element_spec
    parts = list(spec) if isinstance(spec, tuple) else [spec]
    try:
        specs = tf.nest.map_structure(lambda each: share(each, cores), parts)
    except InputUnfit as error:
        advice = "batch with drop_remainder=True, and a multiple of the number of cores"
        raise InputUnfit(f"{error}: {advice}") from error

    def step(*data: Any) -> Any:
        model.reset_metrics()  # Keras shows the mean of all steps so far; this is one step's loss
        # Keras takes the batch as fit does: a tuple, or the lone features.
        results = (model.train_step if mode == "train" else model.test_step)(
            data if isinstance(spec, tuple) else data[0]
        )
        return results.pop("loss", next(iter(results.values()), tf.constant(0.0)))

    with _tensorflow.averaged_gradients(model.optimizer, cores):
        return trace_step(step, specs, cores), specs


def _trainable(model: Any) -> list[tf.Variable] | None:
    """The model's trainable variables; None before it is built, when none are known yet."""
    found = model.trainable_variables if model.built else []
    # Keras 3 wraps them.
    return [each if isinstance(each, tf.Variable) else each.value for each in found] or None
