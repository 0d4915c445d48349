"""Frontend for a compiled Keras model (of Keras 2 or 3) and the dataset that fit is given."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from lab_utils.common.source import Place, place
from lab_utils.dry_run.frontends import datasets
from lab_utils.dry_run.frontends.function import (
    StepWorkload,
    lower_traced,
    share,
    split,
    trace_step,
)
from lab_utils.dry_run.lower.draws import Draw
from lab_utils.dry_run.private import tensorflow as _tensorflow
from lab_utils.dry_run.program import Program
from lab_utils.dry_run.read.stage import read_step
from lab_utils.dry_run.records import Finding, Mode
from lab_utils.dry_run.rules import finding
from lab_utils.dry_run.traced import Trace
from lab_utils.estimator import tf


class KerasWorkload(StepWorkload):
    """A compiled Keras model with the dataset that fit is given."""

    def __init__(self, model: Any, dataset: Any) -> None:
        if not isinstance(dataset, tf.data.Dataset):
            raise TypeError(
                "a Keras model comes with the tf.data dataset that fit is given; "
                f"this is a {type(dataset).__name__}"
            )
        if getattr(model, "optimizer", None) is None:
            raise TypeError(
                f"the Keras model {model.name!r} is not compiled: call compile on it first"
            )
        self.model, self.dataset = model, dataset
        self._batches = whole_batches(dataset)
        self.name = f"Keras model {model.name!r}"

    def read(self, traces: list[Trace], cores: int) -> list[Finding]:
        """What the train step of a core holds that a TPU would refuse, and a batch that does not fit it."""
        if unfit := _unfit(self._batches, self.dataset, self.feed_place, cores):
            return [unfit]
        return read_step(self.traced(cores))

    def traced(self, cores: int, mode: Mode = Mode.TRAIN, global_batch: int | None = None) -> Any:
        """The model's train_step (or test_step), traced as TPUStrategy would run it.

        The dataset's batch is the global one, which TPUStrategy splits over the cores; the optimizer sums the
        gradients over them, of losses that Keras divides by their number. The loss is the step's own.
        """
        model, spec = self.model, self._of_size(global_batch).element_spec
        is_tuple = isinstance(spec, tuple)
        parts = list(spec) if is_tuple else [spec]
        specs = tf.nest.map_structure(lambda each: share(each, cores), parts)

        def step(*data: Any) -> Any:
            model.reset_metrics()  # Keras shows the mean of all steps so far; this is one step's loss
            # Keras takes the batch as fit does: a tuple, or the lone features.
            results = (model.train_step if mode == "train" else model.test_step)(
                data if is_tuple else data[0]
            )
            return results.pop("loss", next(iter(results.values()), tf.constant(0.0)))

        with _tensorflow.strategy(cores):
            return trace_step(step, specs, cores)

    def program(
        self,
        traced: Any,
        cores: int,
        mode: Mode,
        global_batch: int | None,
        draws: dict[str, Draw] | None = None,
    ) -> Program:
        """The step, which reads the dataset."""
        dataset, model = self._of_size(global_batch), self.model

        def read() -> Iterator[list[np.ndarray]]:
            with _tensorflow.eager():
                for batch in dataset.as_numpy_iterator():
                    yield [split(np.asarray(array), cores) for array in tf.nest.flatten(batch)]

        program = lower_traced(
            traced,
            ["feature", "label", "label/weight"],
            name=f"{mode} step of {model.name}",
            mode=mode,
            cores=cores,
            trained=_trainable(model),
            draws=draws,
        )
        program.origin.read, program.where = read, place(type(model)) or Place(text=model.name)
        # A train_step of one's own may divide its loss by the global batch, and return it so.
        own_step = not type(model).train_step.__module__.startswith(("keras.", "tf_keras."))
        program.may_add_up = own_step
        return program

    def _of_size(self, batch: int | None) -> tf.data.Dataset:
        """The dataset's batches, or others of `batch` examples."""
        whole = self._batches
        return whole.unbatch().batch(batch, drop_remainder=True) if batch else whole


def whole_batches(dataset: tf.data.Dataset) -> tf.data.Dataset:
    """The dataset's batches but for the last, where that may hold fewer examples.

    Under TPUStrategy fit takes such a dataset: it compiles the step once more for the last batch.
    """
    shapes = [spec.shape for spec in tf.nest.flatten(dataset.element_spec)]
    inner_known = all(shape.rank and shape[1:].is_fully_defined() for shape in shapes)
    if not (tf.executing_eagerly() and inner_known and any(shape[0] is None for shape in shapes)):
        return dataset
    first = next(iter(dataset), None)
    if first is None:
        return dataset
    size = int(tf.nest.flatten(first)[0].shape[0])
    return dataset.unbatch().batch(size, drop_remainder=True)


def _unfit(
    batches: tf.data.Dataset, dataset: tf.data.Dataset, where: Place, cores: int
) -> Finding | None:
    """The finding for whole batches of a dataset that no TPU accepts or cores cannot share."""
    if datasets.has(dataset, "TPU119"):
        origin = datasets.origin(dataset, "TPU119") or where
        return finding("TPU119", origin, source="the dataset")
    if datasets.has(dataset, "TPU102"):
        return finding("TPU102", datasets.origin(dataset, "TPU102") or where)
    batch = tf.nest.flatten(batches.element_spec)[0].shape[0]
    if batch and batch % cores:
        suggestion = max(cores, round(batch / cores) * cores)
        return finding("TPU106", where, cores=cores, batch=batch, suggestion=suggestion)
    return None


def _trainable(model: Any) -> list[tf.Variable] | None:
    """The model's trainable variables; None before it is built, when none are known yet."""
    found = model.trainable_variables if model.built else []
    # Keras 3 wraps them.
    return [each if isinstance(each, tf.Variable) else each.value for each in found] or None
