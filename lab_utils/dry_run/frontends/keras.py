"""Frontend for a compiled Keras model (of Keras 2 or 3) and the dataset that fit is given."""

import sys
from typing import Any

from lab_utils.common.source import Place, place
from lab_utils.dry_run.frontends import keras_lines
from lab_utils.dry_run.frontends.datasets import whole_batches
from lab_utils.dry_run.frontends.function import StepWorkload, trace_step
from lab_utils.estimator import tf


class KerasWorkload(StepWorkload):
    """A compiled Keras model with the dataset that fit is given."""

    def __init__(self, model: Any, dataset: Any) -> None:
        if not isinstance(dataset, tf.data.Dataset):
            raise TypeError(
                "a Keras model needs the tf.data dataset that fit gets, but this is a "
                f"{type(dataset).__name__}"
            )
        if getattr(model, "optimizer", None) is None:
            raise TypeError(
                f"the Keras model {model.name!r} is not compiled: call compile on it first"
            )
        self.model, self.dataset = model, dataset
        self.jit_compile = getattr(model, "jit_compile", None)
        self.batches = whole_batches(dataset)
        self.name, self.step_name = f"Keras model {model.name!r}", f"train step of {model.name}"
        self.where = place(type(model)) or Place(text=model.name)
        kinds = {kind.__module__.partition(".")[0] for kind in type(model).__mro__}
        self._package = "tf_keras" if "tf_keras" in kinds else "keras"
        self.framework = f"Keras {sys.modules[self._package].__version__.partition('.')[0]}"

    @property
    def trainable(self) -> list[tf.Variable] | None:
        """The model's trainable variables; None before it is built, when none are known yet."""
        variables = self.model.trainable_variables if self.model.built else []
        # Keras 3 wraps them.
        return [v if isinstance(v, tf.Variable) else v.value for v in variables] or None

    def traced(self, cores: int, batch: int | None = None) -> Any:
        """The model's train_step, traced as TPUStrategy would run it.

        The dataset's batch is the global one, which TPUStrategy splits over the cores; the optimizer sums the
        gradients over them, of losses that Keras divides by their number. The loss is the step's own.
        """
        model, is_tuple = self.model, isinstance(self.batches.element_spec, tuple)

        def step(*data: Any) -> Any:
            model.reset_metrics()  # Keras shows the mean of all steps so far; this is one step's loss
            # Keras takes the batch as fit does: a tuple, or the lone features.
            results = model.train_step(data if is_tuple else data[0])
            return results.pop("loss", next(iter(results.values()), tf.constant(0.0)))

        with keras_lines.shown(sys.modules[self._package]):
            return trace_step(step, self.specs(cores, batch), cores, self.observed.trained_at)
