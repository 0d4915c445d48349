"""Which frontend takes what a learner hands over."""

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lab_utils.common.source import Place, is_installed, place
from lab_utils.dry_run.frontends.estimator import EstimatorWorkload
from lab_utils.dry_run.frontends.function import FunctionWorkload
from lab_utils.dry_run.frontends.is_jax import is_jax
from lab_utils.dry_run.frontends.keras import KerasWorkload
from lab_utils.dry_run.private import process
from lab_utils.dry_run.trace import listing
from lab_utils.dry_run.workload import Inputs, Workload
from lab_utils.estimator import tf, v1

HOW = (
    "dry_run takes a TPUEstimator and its input_fn, a compiled Keras model and a tf.data dataset, "
    "a function step(features, labels) and an example batch or a dataset, or a JAX step and its arguments"
)


class PlainEstimator(TypeError):
    """The estimator is not a TPUEstimator; `kind` is its class, `where` the learner's line that tells it."""

    def __init__(self, estimator: Any) -> None:
        self.kind = type(estimator).__name__.removesuffix("V2")
        model_fn = getattr(estimator, "_model_fn", None)
        self.where = model_fn and (listing.argument(model_fn, self.kind, "") or place(model_fn))
        if not self.where or is_installed(self.where.file):  # one that TensorFlow brings
            self.where = Place(text=f"the {self.kind} handed to the dry run")
        super().__init__(f"{HOW}; this is of class {self.kind}")


@dataclass(frozen=True)
class HandedOver:
    """What a learner handed over: `inputs` are a TPUEstimator's other input functions."""

    subject: Any
    data: Any
    topology: str
    mesh_axes: Mapping[str, int] | None
    inputs: Mapping[str, Any]


def workload_of(
    subject: Any,
    data: Any,
    *,
    topology: str,
    mesh_axes: Mapping[str, int] | None = None,
    **inputs: Any,
) -> Workload:
    """What `subject` and `data` are to the stages; `inputs` are a TPUEstimator's other input functions.

    A JAX step is laid on `topology`, with the sizes of `mesh_axes`.

    Raises:
        PlainEstimator: `subject` is an Estimator of another kind, which no TPU runs.
        TypeError: `subject` is none of these kinds, or `data` does not go with it.
    """
    handed = HandedOver(subject, data, topology, mesh_axes, inputs)
    workload = next(filter(None, (frontend(handed) for frontend in FRONTENDS)), None)
    if workload is None:
        raise TypeError(f"{HOW}; this is a {type(subject).__name__}")
    return workload


def _estimator(handed: HandedOver) -> Workload | None:
    if isinstance(handed.subject, v1.estimator.tpu.TPUEstimator):
        return EstimatorWorkload(handed.subject, Inputs(handed.data, **handed.inputs))
    if isinstance(handed.subject, v1.estimator.Estimator | tf.estimator.Estimator):
        raise _refused(handed.subject)
    return None


def _keras(handed: HandedOver) -> Workload | None:
    package = _keras_of(handed.subject)
    if not package:
        return None
    backend = sys.modules["keras"].backend.backend() if package == "keras" else "tensorflow"
    if backend != "tensorflow":
        raise TypeError(f"{HOW}; this Keras model runs on {backend}, not on TensorFlow")
    return KerasWorkload(handed.subject, handed.data)


def _jax(handed: HandedOver) -> Workload | None:
    if not is_jax(handed.subject, handed.data):
        return None
    try:
        process.require("jax")
    except process.CompilerMissing as error:  # it is too old
        raise TypeError(str(error)) from error
    from lab_utils.dry_run.frontends.jax import JaxWorkload  # which imports JAX

    return JaxWorkload(handed.subject, handed.data, handed.topology, handed.mesh_axes)


def _function(handed: HandedOver) -> Workload | None:
    if callable(handed.subject) and not isinstance(handed.subject, type):
        return FunctionWorkload(handed.subject, handed.data)
    return None


FRONTENDS = (
    _estimator,
    _keras,
    _jax,
    _function,
)  # the first that knows what was handed over takes it


def _refused(estimator: Any) -> TypeError:
    """Why an Estimator of another class cannot be judged."""
    for kind in type(estimator).__mro__:
        if kind.__name__ == "TPUEstimator":
            return TypeError(
                f"{kind.__module__} has a TPUEstimator of its own, which cannot be judged here: make the "
                "estimator with tf.compat.v1.estimator.tpu.TPUEstimator, and its model_fn and input_fn can"
            )
    return PlainEstimator(estimator)


def _keras_of(subject: Any) -> str:
    """The Keras package ("keras" is Keras 3, "tf_keras" Keras 2) that `subject` is a model of, or ""."""
    packages = (
        cls.__module__.split(".")[0] for cls in type(subject).__mro__ if cls.__name__ == "Model"
    )
    return next((name for name in packages if name in ("keras", "tf_keras")), "")
