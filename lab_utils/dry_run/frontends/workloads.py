"""The three kinds of port that a dry run takes, behind one interface: what to lower, and what feeds it."""

import functools
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from lab_utils import source
from lab_utils.dry_run.frontends.estimator_step import lower_estimator
from lab_utils.dry_run.frontends.function_step import lower_function, split, trace_function
from lab_utils.dry_run.frontends.keras_step import lower_keras, trace_keras
from lab_utils.dry_run.private import tensorflow as _tensorflow
from lab_utils.dry_run.private import tpu_estimator as _tpu_estimator
from lab_utils.dry_run.program import Program
from lab_utils.dry_run.read.stage import read, read_step
from lab_utils.dry_run.records import Finding
from lab_utils.dry_run.trace.stage import Trace, trace, twin
from lab_utils.estimator import tf

HOW = (
    "dry_run takes a TPUEstimator and its input_fn, a compiled Keras model and a tf.data dataset, "
    "or a function step(features, labels) and an example batch or a dataset"
)


class PlainEstimator(TypeError):
    """The estimator is not a TPUEstimator; `kind` is its class."""

    def __init__(self, estimator: Any) -> None:
        self.kind = type(estimator).__name__.removesuffix("V2")
        super().__init__(f"{HOW}; this is of class {self.kind}")


class EstimatorSubject:
    """A TPUEstimator with its input_fn."""

    traceable = True
    most_steps = None

    def __init__(
        self,
        estimator: Any,
        input_fn: Callable,
        eval_input_fn: Callable | None,
        predict_input_fn: Callable | None,
        serving_input_receiver_fn: Callable | None,
    ) -> None:
        if not callable(input_fn):
            raise TypeError(
                f"a TPUEstimator comes with its input_fn, a function; this is a {type(input_fn).__name__}"
            )
        self.estimator, self.input_fn = estimator, input_fn
        self.eval_input_fn, self.predict_input_fn = eval_input_fn, predict_input_fn
        self.serving_input_receiver_fn = serving_input_receiver_fn
        place = source.place(_tpu_estimator.settings(estimator).model_fn)
        self.name = f"TPUEstimator with the model_fn of {place.split(': ')[0]}"
        self.feed_where = source.place(input_fn)

    def trace(self, cores: int) -> list[Trace]:
        """The genuine graphs of each mode."""
        return trace(
            self.estimator,
            self.input_fn,
            cores=cores,
            eval_input_fn=self.eval_input_fn,
            predict_input_fn=self.predict_input_fn,
            serving_input_receiver_fn=self.serving_input_receiver_fn,
        )

    def read(self, traces: list[Trace], cores: int) -> list[Finding]:
        """What the program of a core holds that a TPU would refuse, or take amiss."""
        return read(
            traces,
            self.estimator,
            self.input_fn,
            eval_input_fn=self.eval_input_fn,
            predict_input_fn=self.predict_input_fn,
        )

    def lower(self, cores: int, mode: str = "train", global_batch: int | None = None) -> Program:
        """One step of `mode`, as each of `cores` cores runs it."""
        input_fn = (self.eval_input_fn if mode == "eval" else None) or self.input_fn
        return lower_estimator(
            self.estimator, input_fn, cores=cores, mode=mode, global_batch=global_batch
        )

    @contextmanager
    def feed(self, cores: int) -> Iterator[tuple[Callable[[], Any], int]]:
        """The training input_fn as one host calls it, and the examples in its batches."""
        with (
            tempfile.TemporaryDirectory() as model_dir,
            _tpu_estimator.tpu_system(cores),
            _tensorflow.caught_log(),
        ):
            built = twin(self.estimator, model_dir)
            batch_size = _tpu_estimator.sharding(built, "train").batch_size
            yield (
                functools.partial(_tpu_estimator.call_input_fn, built, self.input_fn, "train", 0),
                batch_size,
            )


class KerasSubject:
    """A compiled Keras model with the dataset that fit is given."""

    traceable = False
    most_steps = None

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
        self.name = f"Keras model {model.name!r}"
        self.feed_where = "the dataset"

    def read(self, traces: list[Trace], cores: int) -> list[Finding]:
        """What the train step of a core holds that a TPU would refuse."""
        return read_step(trace_keras(self.model, self.dataset, cores))

    def lower(self, cores: int, mode: str = "train", global_batch: int | None = None) -> Program:
        """One step of `mode`, as each of `cores` cores runs it."""
        dataset = self.dataset
        if global_batch is not None:
            dataset = dataset.unbatch().batch(global_batch, drop_remainder=True)
        return lower_keras(self.model, dataset, cores=cores, mode=mode)

    @contextmanager
    def feed(self, cores: int) -> Iterator[tuple[tf.data.Dataset, None]]:
        """The dataset as it is."""
        yield self.dataset, None


class FunctionSubject:
    """A function of one batch, with an example batch or a dataset of batches."""

    traceable = False

    def __init__(self, step: Callable, data: Any) -> None:
        self.step = step
        self.dataset = data if isinstance(data, tf.data.Dataset) else None
        self.most_steps = 1 if self.dataset is None else None
        batch = next(iter(data)) if self.dataset is not None else data
        self.features, self.labels = (
            batch if isinstance(batch, tuple) and len(batch) == 2 else (batch, None)
        )
        place = source.place(getattr(step, "python_function", step))
        self.name = f"step function of {place.split(': ')[0]}"
        self.feed_where = "the dataset"

    def read(self, traces: list[Trace], cores: int) -> list[Finding]:
        """What the step of a core holds that a TPU would refuse."""
        return read_step(trace_function(self.step, self.features, self.labels, cores))

    def lower(self, cores: int, mode: str = "train", global_batch: int | None = None) -> Program:
        """The step, as each of `cores` cores runs it."""
        features, labels = self.features, self.labels
        if global_batch is not None:
            features, labels = tf.nest.map_structure(
                lambda tensor: _with_batch(tensor, global_batch), (features, labels)
            )
        program = lower_function(self.step, features, labels, cores=cores)
        if self.dataset is not None:
            program.read = functools.partial(self._read, program.global_batch, cores)
        return program

    def _read(self, batch: int, cores: int) -> Iterator[list[np.ndarray]]:
        examples = self.dataset.unbatch().batch(batch, drop_remainder=True)
        for each in examples.as_numpy_iterator():
            yield [split(array, cores) for array in tf.nest.flatten(each)]

    @contextmanager
    def feed(self, cores: int) -> Iterator[tuple[tf.data.Dataset | None, None]]:
        """The dataset, where one was given."""
        yield self.dataset, None


Subject = EstimatorSubject | KerasSubject | FunctionSubject


def of(
    subject: Any,
    data: Any,
    eval_input_fn: Callable | None = None,
    predict_input_fn: Callable | None = None,
    serving_input_receiver_fn: Callable | None = None,
) -> Subject:
    """The port behind one interface, by the type of `subject`.

    Raises:
        PlainEstimator: `subject` is an Estimator of another kind, which no TPU runs.
        TypeError: `subject` is none of the three kinds, or `data` does not go with it.
    """
    estimators = tf.compat.v1.estimator
    if isinstance(subject, estimators.tpu.TPUEstimator):
        return EstimatorSubject(
            subject, data, eval_input_fn, predict_input_fn, serving_input_receiver_fn
        )
    if isinstance(subject, estimators.Estimator | tf.estimator.Estimator):
        raise PlainEstimator(subject)
    keras = _keras_of(subject)
    if keras == "keras" and _keras_backend() != "tensorflow":
        raise TypeError(f"{HOW}; this Keras model runs on {_keras_backend()}, not on TensorFlow")
    if keras:
        return KerasSubject(subject, data)
    if callable(subject) and not isinstance(subject, type):
        return FunctionSubject(subject, data)
    raise TypeError(f"{HOW}; this is a {type(subject).__name__}")


def _keras_of(subject: Any) -> str:
    """The Keras package ("keras" is Keras 3, "tf_keras" Keras 2) that `subject` is a model of, or ""."""
    packages = (
        cls.__module__.split(".")[0] for cls in type(subject).__mro__ if cls.__name__ == "Model"
    )
    return next((name for name in packages if name in ("keras", "tf_keras")), "")


def _keras_backend() -> str:
    import keras

    return keras.backend.backend()


def _with_batch(tensor: Any, batch: int) -> tf.Tensor:
    """`tensor` cut or repeated along its first axis to `batch` examples."""
    tensor = tf.convert_to_tensor(tensor)
    return tf.gather(tensor, tf.range(batch) % tensor.shape[0])
