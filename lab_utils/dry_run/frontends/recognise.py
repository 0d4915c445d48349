"""Which frontend judges what a learner hands over.

JAX is imported for a step of JAX only, and TensorFlow for what is written with it.
"""

import functools
import importlib
import sys
from collections.abc import Mapping
from typing import Any

from lab_utils.common import command, loading
from lab_utils.common.source import Place, is_installed, place
from lab_utils.dry_run.elsewhere import OWN_COPY
from lab_utils.dry_run.frontends import imports, jax_runs
from lab_utils.dry_run.private import process
from lab_utils.dry_run.unavailable import Unavailable
from lab_utils.dry_run.workload import Inputs, Workload
from lab_utils.runtime import chips

imports.give_tensorflow_its_estimator()  # whoever imports the dry run may use tf.estimator

_JAX = {"jax", "jaxlib", "flax", "equinox", "optax", "haiku"}
HOW = (
    "dry_run takes a TPUEstimator and its input_fn, a compiled Keras model and a tf.data dataset (on JAX, "
    "whatever fit takes), "
    "a function step(features, labels) and an example batch or a dataset, or a JAX step, jitted or with "
    "arrays or shapes of JAX as its arguments"
)


class PlainEstimator(TypeError):
    """The estimator is not a TPUEstimator; `kind` is its class, `where` the learner's line that tells it."""

    def __init__(self, estimator: Any) -> None:
        from lab_utils.dry_run.facts.blame import argument

        self.kind = type(estimator).__name__.removesuffix("V2")
        model_fn = getattr(estimator, "_model_fn", None)
        self.where = model_fn and (argument(model_fn, self.kind, "") or place(model_fn))
        if not self.where or is_installed(self.where.file):  # one that TensorFlow brings
            self.where = Place(text=f"the {self.kind} handed to the dry run")
        super().__init__(f"{HOW}; but this object is of the class {self.kind}")


def default_topology(subject: Any, data: Any) -> str:
    """What `subject` is judged for where nobody names a topology: what its users can get."""
    package = _keras_of(subject)
    in_jax = _backend_of(package) == "jax" if package else is_jax(subject, data)
    return chips.DEFAULTS["JAX" if in_jax else "TensorFlow"]


def workload_of(
    subject: Any,
    data: Any,
    *,
    topology: str,
    of_jax: Mapping[str, Any] | None = None,
    **inputs: Any,
) -> Workload:
    """What `subject` and `data` are to the stages; `inputs` are a TPUEstimator's other input functions.

    A JAX step is laid on `topology`, with what `of_jax` says of it: mesh_axes, state_argnums, batch_argnums.

    Raises:
        PlainEstimator: `subject` is an Estimator of another kind, which no TPU runs.
        TypeError: `subject` is none of these kinds, or `data` does not go with it.
    """
    if package := _keras_of(subject):
        backend = _backend_of(package)
        if backend == "jax":
            return _keras_on_jax(subject, data, topology, (of_jax or {}).get("mesh_axes"))
        if backend != "tensorflow":
            raise TypeError(f"{HOW}; but this Keras model runs on {backend}")
        return _of_tensorflow("keras").KerasWorkload(subject, data)
    if is_jax(subject, data):
        _require_jax()
        from lab_utils.dry_run.frontends.jax import JaxWorkload  # which imports JAX

        return JaxWorkload(subject, data, topology, **(of_jax or {}))
    if loading.tensorflow() and (workload := _estimator(subject, Inputs(data, **inputs))):
        return workload
    if callable(subject) and not isinstance(subject, type):
        return _of_tensorflow("function").FunctionWorkload(subject, data)
    raise TypeError(f"{HOW}; but this is a {type(subject).__name__}")


def _estimator(subject: Any, inputs: Inputs) -> Workload | None:
    """A TPUEstimator's workload; None where `subject` is not an Estimator.

    Raises:
        PlainEstimator, TypeError: it is an Estimator of another kind.
    """
    frontend = _of_tensorflow("estimator")
    from lab_utils.estimator import tf, tpu, v1

    if isinstance(subject, tpu.TPUEstimator):
        return frontend.EstimatorWorkload(subject, inputs)
    if not isinstance(subject, v1.estimator.Estimator | tf.estimator.Estimator):
        return None
    if any(kind.__name__ == "TPUEstimator" for kind in type(subject).__mro__):
        raise TypeError(f"{type(subject).__module__} {OWN_COPY}")
    raise PlainEstimator(subject)


def _of_tensorflow(frontend: str) -> Any:
    """The frontend of that name, which imports TensorFlow.

    Raises:
        TypeError: TensorFlow, or what its Estimators need, is not here.
    """
    try:
        module = importlib.import_module(f"lab_utils.dry_run.frontends.{frontend}")
        from lab_utils.dry_run.private import tensorflow as _tensorflow
    except ImportError as error:
        raise TypeError(
            f"{HOW}; but this object needs TensorFlow: {command.missing(error)}"
        ) from error
    _tensorflow.forget_conversions()
    return module


def _keras_on_jax(model: Any, *arguments: Any) -> Workload:
    _require_jax()
    from lab_utils.dry_run.frontends.keras_jax import (
        KerasJaxWorkload,  # which imports Keras, on JAX
    )

    return KerasJaxWorkload(model, *arguments)


def _require_jax() -> None:
    try:
        process.require("jax")
    except Unavailable as error:  # it is too old
        raise TypeError(str(error)) from error


def _keras_of(subject: Any) -> str:
    """The Keras package ("keras" is Keras 3, "tf_keras" Keras 2) that `subject` is a model of, or ""."""
    packages = (
        cls.__module__.split(".")[0] for cls in type(subject).__mro__ if cls.__name__ == "Model"
    )
    return next((name for name in packages if name in ("keras", "tf_keras")), "")


def _backend_of(package: str) -> str:
    """What computes the models of a Keras package."""
    return sys.modules["keras"].backend.backend() if package == "keras" else "tensorflow"


def is_jax(subject: Any, data: Any) -> bool:
    """Whether `subject` is jitted, or is given JAX's arrays or shapes."""
    if "jax" not in sys.modules or not callable(subject) or isinstance(subject, type):
        return False
    while isinstance(subject, functools.partial):
        subject = subject.func
    if isinstance(data, jax_runs.Step):
        return True
    kinds = [type(subject), *map(type, sys.modules["jax"].tree.leaves(data))]
    # What jax.pmap gives is a plain function that has this method.
    return hasattr(subject, "lower") or any(kind.__module__.split(".")[0] in _JAX for kind in kinds)
